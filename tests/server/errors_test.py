"""What is wrong with a request is said in its dialect's shape, names the field and never an internal path."""
import json
import re
import socket

import pytest
from running import raw

MESSAGES = [{"role": "user", "content": "Hi"}]


def refused(answer, status, param=None, words=""):
    assert answer.status == status, answer.body
    error = answer.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    if param:
        assert error["param"] == param, error
    assert words in error["message"], error
    assert "/work" not in error["message"] and "/home" not in error["message"] and ".cpp" not in error["message"]
    assert answer.headers["x-request-id"]
    return error


@pytest.mark.parametrize("fields, param, words", [
    ({"messages": []}, "messages", "between 1 and 8192"),
    ({"messages": None}, "messages", "required"),
    ({"messages": "Hi"}, "messages", "array"),
    ({"messages": [{"role": "pirate", "content": "x"}]}, "messages", "role"),
    ({"messages": [{"content": "x"}]}, "messages", "role"),
    ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content", "string"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content", "image"),
    ({"temperature": "hot"}, "temperature", "number"),
    ({"temperature": -1}, "temperature", "between 0 and 5"),
    ({"temperature": 5.1}, "temperature", "between"),
    ({"top_p": 1.1}, "top_p", "between"),
    ({"top_k": 0.5}, "top_k", "int"),
    ({"max_tokens": -1}, "max_tokens", "between"),
    ({"max_tokens": 1e308}, "max_tokens", ""),
    ({"n": 9}, "n", "between 1 and 8"),
    ({"n": 0}, "n", "between"),
    ({"stop": [""]}, "stop", "bytes"),
    ({"stop": ["x"] * 17}, "stop", "16"),
    ({"stop": ["x" * 257]}, "stop", "256"),
    ({"logprobs": "yes"}, "logprobs", "logprobs must be of type bool"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "top_logprobs"),
    ({"logit_bias": {"a": 1}}, "logit_bias", "logit_bias must be a dict of int to float"),
    ({"logit_bias": [1]}, "logit_bias", "logit_bias must be a dict of int to float"),
    ({"best_of": 3}, "best_of", "best_of"),
    ({"echo": True}, "echo", "echo"),
    ({"suffix": "x"}, "suffix", "suffix"),
    ({"reasoning_budget": -1}, "reasoning_budget", "between 0"),
    ({"any_whitespace": 1}, "any_whitespace", "bool"),
    ({"hlg": {"width": "wide"}}, "hlg", "hlg.width"),
    ({"hlg": {"pivot": "mode"}}, "hlg", "top, entropy, median"),
    ({"curve": {"points": [{"x_pct": 1, "y_pct": 2}, {"x_pct": 2, "y_pct": 1}]}}, "curve", "falls"),
    ({"curve": {"points": [{"x_pct": 1, "y_pct": 1}, {"x_pct": 9, "y_pct": 9}]}, "hlg": {}}, "curve", "both"),
    ({"logit_bias": {"49152": 1}}, "logit_bias", "49152"),
    ({"repetition_penalty": 0.001}, "repetition_penalty", "0.01"),
    ({"keep_alive": "soon"}, "keep_alive", "10m"),
    ({"chat_template_kwargs": {"tools": []}}, "chat_template_kwargs", "tools"),
    ({"chat_template_kwargs": {"bos_token": "x"}}, "chat_template_kwargs", "bos_token"),
    ({"chat_template_kwargs": {"add_generation_prompt": False}}, "chat_template_kwargs", "add_generation_prompt"),
    ({"logprobs": True, "logprobs_format": "mlx", "stream": True}, "logprobs_format", "streamed"),
    ({"response_format": {"type": "yaml"}}, "response_format", "json_object"),
    ({"tools": [{"function": {}}]}, "tools", "tools[0].function.name"),
    ({"tool_choice": "required"}, "tool_choice", "no tools"),
    ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs", "messages"),
])
def test_fields_are_checked(server, fields, param, words):
    refused(server.post("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 4, **fields}), 400, param, words)


@pytest.mark.parametrize("body, words", [
    (b"", "JSON"),
    (b"{", "JSON"),
    (b"[]", "object"),
    (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', ""),
    (b'{"a": 1, "a": 2}', "duplicate"),
    (b'{"temperature": NaN}', "JSON"),
    (b"[" * 200_000, "JSON"),
])
def test_bodies_are_checked(server, body, words):
    refused(server.post("/v1/chat/completions", body), 400, None, words)


def test_unknown_things_are_404_and_405(server):
    refused(server.get("/v1/nothing"), 404)
    answer = server.get("/v1/chat/completions")
    refused(answer, 405)
    assert answer.headers["allow"] == "POST"
    error = refused(server.post("/v1/chat/completions", {"model": "no/such-model", "messages": MESSAGES}), 404)
    assert "there" in error["message"] and error["code"] == "model_not_found"
    for path in ("/etc/passwd", "../../etc/passwd", "./x"):
        refused(server.post("/v1/chat/completions", {"model": path, "messages": MESSAGES}), 404)


def test_bodies_that_are_no_json_by_their_type_are_415(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        refused(server.post("/v1/chat/completions", json.dumps({"messages": MESSAGES}), headers={"Content-Type": kind}), 415)


def test_a_prompt_beyond_the_context_is_refused_in_words_that_clients_know(server):
    answer = server.chat("word " * 4000)
    error = refused(answer, 400, None, "maximum context length")
    assert error["code"] == "context_length_exceeded" and error["type"] == "memory_admission"
    assert error["detail_code"] == "context_over_budget" and "exceeds the available context" in error["message"]


# More text than a template takes is not even counted in tokens; 8 MiB is the bound.
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/tokenize", "/apply-template",
                                  "/v1/messages", "/v1/messages/count_tokens"])
def test_more_text_than_a_prompt_takes_is_the_requests_fault(server, path):
    text = "word " * ((8 << 20) // 5 + 1)
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 4}
    if path == "/v1/responses":
        body = {"input": text, "max_output_tokens": 4}
    answer = server.post(path, body)
    assert answer.status == 400, answer.body[:500]
    error = answer.json()["error"]
    told = int(re.search(r"(\d+) bytes", error["message"].replace(str(8 << 20), "")).group(1))  # the names of the roles count too
    assert len(text) <= told <= len(text) + 100 and str(8 << 20) in error["message"], error
    if path.startswith("/v1/messages"):
        assert error["type"] == "invalid_request_error" and error["message"].startswith("prompt is too long: "), error
    else:
        assert error["type"] == "memory_admission" and error["code"] == "context_length_exceeded", error
        assert "maximum context length" in error["message"] and "exceeds the available context" in error["message"], error
        assert "n_prompt_tokens" not in error, error
    assert server.get("/health").status == 200


def test_a_large_body_is_413(server):
    refused(server.post("/v1/chat/completions", b" " * (33 << 20)), 413)
    assert server.get("/health").status == 200


def sent(server, data):
    """The head and the body of the answer to these bytes."""
    with raw(server) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.decode(), json.loads(body)


JSON_TYPE = "Content-Type: application/json\r\n"
AHEAD_OF_ROUTING = [
    ("POST", "HTTP/9.9", "Host: localhost\r\n", 505),
    ("POST", "HTTP/1.1", "", 400),
    ("PO,ST", "HTTP/1.1", "Host: localhost\r\n", 400),
    ("POST", "HTTP/1.1", "Host: localhost\r\nfolded\r\n", 400),
    ("POST", "HTTP/1.1", "Host: localhost\r\nA: " + "a" * 17_000 + "\r\n", 431),
    ("POST", "HTTP/1.1", "Host: localhost\r\n" + "A: b\r\n" * 120, 431),
    ("POST", "HTTP/1.1", "Host: localhost\r\nTransfer-Encoding: gzip\r\n", 501),
    ("POST", "HTTP/1.1", "Host: localhost\r\nExpect: a miracle\r\n", 417),
    ("POST", "HTTP/1.1", "Host: evil.example\r\n", 421),
    ("POST", "HTTP/1.1", "Host: localhost\r\nOrigin: http://evil.example\r\n", 403),
    ("POST", "HTTP/1.1", "Host: localhost\r\nContent-Length: 2\r\n", 415),
    ("POST", "HTTP/1.1", "Host: localhost\r\n" + JSON_TYPE + f"Content-Length: {33 << 20}\r\n", 413),
    ("GET", "HTTP/1.1", "Host: localhost\r\n", 405),
]


@pytest.mark.parametrize("method, version, headers, status", AHEAD_OF_ROUTING)
def test_errors_ahead_of_routing_have_the_shape_of_the_path(server, method, version, headers, status):
    for path in ("/v1/messages", "/v1/messages?beta=true", "/v1/messages/count_tokens", "/v1/mess%61ges"):
        head, body = sent(server, f"{method} {path} {version}\r\n{headers}\r\n".encode())
        assert head.split()[1] == str(status), (path, head)
        assert set(body) == {"type", "error", "request_id"} and body["type"] == "error", (path, body)
        assert body["error"]["type"] and body["error"]["message"]
        assert f"x-request-id: {body['request_id']}" in head and f"\r\nrequest-id: {body['request_id']}" in head
    for path in ("/v1/chat/completions", "/v1/messagesque"):
        head, body = sent(server, f"{method} {path} {version}\r\n{headers}\r\n".encode())
        assert set(body) == {"error"} and set(body["error"]) >= {"message", "type", "param", "code"}, (path, body)
        assert "\r\nrequest-id:" not in head


def test_bodies_in_broken_chunks_have_the_shape_of_the_path(server):
    request = "POST {} HTTP/1.1\r\nHost: localhost\r\n" + JSON_TYPE + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"
    assert sent(server, request.format("/v1/messages").encode())[1]["type"] == "error"
    assert "type" not in sent(server, request.format("/v1/completions").encode())[1]


def test_health_is_exactly_this(server):
    answer = server.get("/health")
    assert answer.body == b'{"status": "ok"}' and answer.status == 200
    assert server.get("/ready").status == 200


def test_every_route_is_described(server):
    paths = server.get("/openapi.json").json()["paths"]
    index = server.get("/v1").json()["data"]
    assert {(r["method"].lower(), r["path"]) for r in index} == {(m, p) for p, ms in paths.items() for m in ms}
    assert "hearth_requests_total" in server.get("/metrics").body.decode()
    assert server.get("/stats").json()["batch"]["configured"] == 16


@pytest.mark.parametrize("path, schema_at", [
    ("/v1/chat/completions", lambda s: {"messages": MESSAGES, "guided_json": s}),
    ("/v1/chat/completions", lambda s: {"messages": MESSAGES, "json_schema": json.dumps(s)}),
    ("/v1/completions", lambda s: {"prompt": "x", "guided_json": json.dumps(s)}),
    ("/v1/messages", lambda s: {"messages": MESSAGES, "tools": [{"name": "f", "input_schema": s}]}),
    ("/v1/responses", lambda s: {"input": "x", "tools": [{"type": "function", "name": "f", "parameters": s}]}),
])
def test_a_schema_as_deep_as_a_body_may_be_costs_no_worker(server, path, schema_at):
    """Some fields lie deeper in the worker's frame than in the body."""
    workers = server.workers()
    for depth in (80, 90, 91, 92, 93, 94, 95, 96):
        schema = {}
        for _ in range(depth // 2 - 1):
            schema = {"properties": {"a": schema}}
        body = schema_at(schema) | {"max_tokens" if path != "/v1/responses" else "max_output_tokens": 1}
        answer = server.post(path, body)
        assert answer.status in (200, 400), (depth, answer.body[:300])
    assert server.workers() == workers
