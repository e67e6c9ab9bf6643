"""The table of limits: each below, at and above it; small ones here, which shows that they can be set (reliability.md section 3). Those of templates
stand in template_limits_test.py, who may ask at once at its defaults in crowd_test.py."""
import json
import re
import signal
import socket
import subprocess
import time

import pytest
from asking import BEARER, KEY, OTHER, is_silent, option, passed, refusal, start
from running import BINARY, ROOT, Server, raw, write_keys
from template_limits_test import TEMPLATE_CASES, TEMPLATES
from ws import PING, TEXT, Chat, Closed

ROWS = 2


def table():
    """name -> default, least, most, as --limit takes them."""
    lines = subprocess.run([BINARY, "serve", "--limit", "help"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {words[0]: words[1:4] for words in (line.split() for line in lines[1:])}


# reliability.md section 3
DEFAULTS = {"request-line": "8KiB", "head": "16KiB", "headers": "100", "head-time": "10s", "body-idle": "30s", "body": "32MiB",
            "control-body": "1MiB", "json-depth": "96", "connections": "1024", "streams-per-key": "64", "queue": "256",
            "stream-buffer": "256KiB", "slow-reader": "60s", "websocket-message": "1MiB", "websocket-ping": "20s", "websocket-idle": "60s",
            "websockets": "8", "n": "8", "stop": "16", "stop-bytes": "256B", "top-logprobs": "20", "logit-bias": "1024", "tools": "256",
            "messages": "8192", "grammar-bytes": "256KiB", "grammar-depth": "64", "grammar-work": "8000000", "template-steps": "2000000",
            "template-output": "8MiB", "template-range": "100000", "template-recursion": "100", "template-time": "250ms"}

SMALL = {"request-line": 300, "head": 2048, "headers": 20, "body": 8192, "control-body": 2048, "json-depth": 20, "json-members": 300,
         "json-items": 300, "raw-text": 1024, "connections": 24, "streams-per-key": 3, "queue": 3, "stream-buffer": 16384,
         "websocket-message": 2048, "websockets": 3, "n": 3, "stop": 4, "stop-bytes": 16, "top-logprobs": 5, "logit-bias": 10, "tools": 6,
         "messages": 12, "grammar-bytes": 300, "grammar-depth": 6}
HASTY = {"head-time": 0.6, "body-idle": 0.6, "slow-reader": 1, "websocket-ping": 0.1, "websocket-idle": 0.8}
# In units of work or of time that no request shows.
ELSEWHERE = {"grammar-work": "tests/text/limits_test.cpp", "template-time": "tests/text/limits_test.cpp"}


def test_no_limit_is_without_its_test():
    assert {name: row[0] for name, row in table().items()} == {**DEFAULTS, "json-members": "200000", "json-items": "2000000", "raw-text": "4MiB"}
    assert set(SMALL) | set(HASTY) | set(TEMPLATES) | set(ELSEWHERE) == set(table())
    for name, file in ELSEWHERE.items():
        assert f'"{name}"' in (ROOT / file).read_text(), name
    assert set(CASES) == set(SMALL) | set(HASTY) and set(TEMPLATE_CASES) == set(TEMPLATES)


@pytest.fixture(scope="module")
def small(tmp_path_factory, model_file):
    folder = tmp_path_factory.mktemp("small")
    keys = write_keys(folder / "keys", KEY, OTHER)
    with Server(folder, model_file("smollm2"), "--context", "1024", "--batch", str(ROWS), "--api-key-file", keys,
                "--limit", option({n: SMALL[n] for n in list(SMALL)[:9]}), "--limit", option({n: SMALL[n] for n in list(SMALL)[9:]})) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(tmp_path_factory, model_file):
    folder = tmp_path_factory.mktemp("hasty")
    with Server(folder, model_file("smollm2"), "--context", "1024", "--batch", str(ROWS), "--api-key-file", write_keys(folder / "keys", KEY),
                "--limit", option(HASTY, "s")) as running:
        yield running


def chat(server, **fields):
    return server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "temperature": 0, "max_tokens": 1, **fields},
                       headers=BEARER)


def status_of(server, *pieces, pause=0.0):
    """Of a request in raw bytes, with a pause between its pieces."""
    with raw(server) as connection:
        for i, piece in enumerate(pieces):
            time.sleep(pause if i else 0)
            try:
                connection.sendall(piece)
            except ConnectionError:
                break
        return refusal(connection)[0]


def head(first="GET /health HTTP/1.1", *headers):
    return "\r\n".join([first, "Host: 127.0.0.1", *headers, "", ""]).encode()


def around(server, name, send, refused):
    """send(n) below and at the bound is taken, above it refused, and counted there alone."""
    bound, before = SMALL[name], passed(server)[name]
    for n in (bound - 1, bound):
        status = send(n)
        assert status == 200, (name, n, status)
    assert passed(server)[name] == before
    status = send(bound + 1)
    assert status == refused, (name, status)
    assert passed(server)[name] == before + 1


def request_line(server, name):
    around(server, name, lambda n: status_of(server, head("GET /health?" + "a" * (n - 21) + " HTTP/1.1")), 414)


def head_bytes(server, name):
    around(server, name, lambda n: status_of(server, head("GET /health HTTP/1.1", "X: " + "a" * (n - len(head()) - 5))), 431)


def headers(server, name):
    around(server, name, lambda n: status_of(server, head("GET /health HTTP/1.1", *["X: y"] * (n - 1))), 431)


def padded(size, **fields):
    empty = len(json.dumps({**fields, "ignored": ""}))
    return json.dumps({**fields, "ignored": "x" * (size - empty)})


def body(server, name):
    fields = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    around(server, name, lambda n: server.post("/v1/chat/completions", padded(n, **fields), headers=BEARER).status, 413)
    # In chunks nobody says how long it will be.
    text = padded(SMALL[name] + 1, **fields)
    before = passed(server)[name]
    chunked = head("POST /v1/chat/completions HTTP/1.1", "Content-Type: application/json", "Authorization: Bearer " + KEY, "Transfer-Encoding: chunked")
    assert status_of(server, chunked + f"{len(text):x}\r\n{text}\r\n0\r\n\r\n".encode()) == 413
    assert passed(server)[name] == before + 1


def control_body(server, name):
    model = server.get("/v1/models", headers=BEARER).json()["data"][0]["id"]
    admin = {"Authorization": "Bearer " + server.token()}
    around(server, name, lambda n: server.post("/api/models/pin", padded(n, model=model, pinned=True), headers=admin).status, 413)


def json_depth(server, name):
    """The body's own object is one of them."""
    def send(n):
        nested = "[" * (n - 1) + "]" * (n - 1)
        return server.post("/v1/chat/completions", '{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "ignored": %s}' % nested,
                           headers=BEARER).status
    around(server, name, send, 400)


def json_members(server, name):
    """Six of them are the request's."""
    around(server, name, lambda n: chat(server, temperature=0, ignored={f"k{i}": 1 for i in range(n - 6)}).status, 400)


def json_items(server, name):
    """One of them is the message."""
    around(server, name, lambda n: chat(server, ignored=[0] * (n - 51), more=[[], {}] * 25).status, 400)


RAW = {"/v1/completions": ("prompt", {"max_tokens": 1}), "/tokenize": ("content", {}), "/v1/tokenize": ("content", {}), "/signal": ("prompt", {}),
       "/generate": ("prompt", {"max_tokens": 1, "n": 1, "points": [{"x_pct": 10, "y_pct": 10}, {"x_pct": 100, "y_pct": 100}]})}


def raw_text(server, name):
    for path, (field, more) in RAW.items():
        def send(n):
            answer = server.post(path, {field: ("word " * n)[:n], **more}, headers=BEARER)
            if answer.status == 400:
                error = answer.json()["error"]
                assert error["param"] == field and str(SMALL[name]) in error["message"], error
            return answer.status
        around(server, name, send, 400)
    before = passed(server)[name]
    answer = server.post("/v1/embeddings", {"input": ["a", "b" * (SMALL[name] + 1)]}, headers=BEARER)
    assert answer.status == 400 and answer.json()["error"]["param"] == "input" and passed(server)[name] == before + 1, answer.body


def hold(server):
    """A connection whose head the server has read and whose body is under way; it may wait until one that closed is gone."""
    half = head("POST /v1/chat/completions HTTP/1.1", "Content-Type: application/json", "Authorization: Bearer " + KEY, "Content-Length: 99",
                "Expect: 100-continue")
    for _ in range(1000):
        connection = socket.create_connection((server.host, server.port), timeout=60)
        try:
            connection.sendall(half)
            if refusal(connection)[0] == 100:
                connection.sendall(b"{")
                return connection
        except ConnectionError:  # refused before all of it was sent
            pass
        connection.close()
        time.sleep(0.02)
    raise AssertionError("no place for one more")


def connections(server, name):
    """Those whose body is under way make no room."""
    held, bound = [], SMALL[name]
    try:
        for n in (bound - 1, bound):
            while len(held) < n - 1:
                held.append(hold(server))
            wait(lambda: status_of(server, head()) == 200)  # the one before may not have gone yet
        settle = passed(server)[name]
        held.append(hold(server))
        assert status_of(server, head()) == 503
    finally:
        for connection in held:
            connection.close()
    wait(lambda: passed(server)[name] > settle)


def wait(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def rows(server):
    batch = server.get("/stats", headers=BEARER).json()["batch"]
    return batch["active_rows"] + batch["pending_rows"]


def crowded(server, name, owners, status):
    """One more than these is refused; with them all rows and places are taken."""
    wait(lambda: rows(server) == 0)
    before, askings = passed(server)[name], []
    try:
        for i, key in enumerate(owners):
            askings.append(start(server, key))
            if i < ROWS:
                assert refusal(askings[-1])[0] == 200
        assert is_silent(askings[-1]) and is_silent(askings[-2]) or len(owners) - ROWS < 2
        assert passed(server)[name] == before
        askings.append(start(server, owners[-1]))
        assert refusal(askings[-1])[0] == status
        assert passed(server)[name] == before + 1
    finally:
        for asking in askings:
            asking.close()


def streams_per_key(server, name):
    crowded(server, name, [KEY] * SMALL[name], 429)


def queue(server, name):
    crowded(server, name, [KEY] * 3 + [OTHER] * (ROWS + SMALL[name] - 3), 503)


# More than the system's buffers take of a client that does not read.
LONG = {"max_tokens": 900, "logprobs": True, "top_logprobs": 5, "n": 2, "stream": True, "logit_bias": {str(i): -100 for i in (0, 2)}}


def unread(server, wait_for):
    """A long stream that is not read until then: what it was in the end; b"" where the server has cut it."""
    text = json.dumps({"messages": [{"role": "user", "content": "Count for ever."}], "temperature": 0, **LONG}).encode()
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect((server.host, server.port))
    with connection:
        connection.sendall(head("POST /v1/chat/completions HTTP/1.1", "Content-Type: application/json", "Authorization: Bearer " + KEY,
                                f"Content-Length: {len(text)}") + text)
        wait_for()
        received = b""
        try:
            while not received.endswith(b"0\r\n\r\n"):
                piece = connection.recv(1 << 16)
                if not piece:
                    return b""
                received += piece
        except ConnectionError:
            return b""
        return received


def stream_buffer(server, name):
    """It waits, loses nothing, and one that reads does not wait."""
    wait(lambda: chat(server).status == 200)  # the streams of the case before have gone
    before = passed(server)[name]
    assert b"[DONE]" in server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], **LONG, "max_tokens": 20},
                                    headers=BEARER).body
    assert passed(server)[name] == before
    assert b"[DONE]" in unread(server, lambda: wait(lambda: passed(server)[name] > before, 60))


def slow_reader(server, name):
    before = passed(server)[name]
    assert unread(server, lambda: wait(lambda: passed(server)[name] > before, 60)) == b""
    assert passed(server)[name] == before + 1


def head_time(server, name):
    timed(server, name, lambda pause: status_of(server, b"GET /health HTT", b"P/1.1\r\nHost: 127.0.0.1\r\n\r\n", pause=pause))


def body_idle(server, name):
    text = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}).encode()
    begin = head("POST /v1/chat/completions HTTP/1.1", "Content-Type: application/json", "Authorization: Bearer " + KEY, f"Content-Length: {len(text)}")
    timed(server, name, lambda pause: status_of(server, begin + text[:5], text[5:9], text[9:], pause=pause))


def timed(server, name, send):
    before = passed(server)[name]
    assert send(HASTY[name] / 3) == 200
    assert passed(server)[name] == before
    assert send(HASTY[name] * 2) == 408
    assert passed(server)[name] == before + 1


def websocket_message(server, name):
    def send(n):
        with Chat(server) as socket_:
            socket_.send_frame(TEXT, '{"type": "ping", "id": 1}'.ljust(n))
            try:
                return 200 if socket_.next()["type"] == "ack" else 0
            except Closed as end:
                return end.code
    around(server, name, send, 4413)


def websockets(server, name):
    open_ones = []
    try:
        def send(n):
            while len(open_ones) < n:
                try:
                    open_ones.append(Chat(server))
                except Closed as end:
                    return end.code
            return 200
        wait(lambda: send(1) == 200)  # those of tests before this one have gone
        around(server, name, send, 1013)
    finally:
        for one in open_ones:
            one.drop()


def websocket_ping(server, name):
    with Chat(server) as one:
        begin = time.monotonic()
        for _ in range(5):
            opcode, payload = one.receive_frame()
            assert opcode == PING
            one.send_frame(10, payload)
        assert time.monotonic() - begin >= 3 * HASTY[name]


def websocket_idle(server, name):
    before = passed(server)[name]
    with Chat(server) as alive, Chat(server) as silent:
        deadline = time.monotonic() + 3 * HASTY[name]
        while time.monotonic() < deadline:
            opcode, payload = alive.receive_frame()
            alive.send_frame(10, payload)
        with pytest.raises(Closed):
            while True:
                silent.receive_frame()
        assert alive.answer_to("ping")["type"] == "ack"
    assert passed(server)[name] == before + 1


def tools(n):
    return [{"type": "function", "function": {"name": f"f{i}", "parameters": {"type": "object", "properties": {}}}} for i in range(n)]


def messages(n):
    return [{"role": "user" if i % 2 == 0 else "assistant", "content": "a"} for i in range(n)]


FIELDS = {
    "n": ("n", lambda k: {"n": k}),
    "stop": ("stop", lambda k: {"stop": [f"stop-{i}" for i in range(k)]}),
    "stop-bytes": ("stop", lambda k: {"stop": ["s" * k]}),
    "top-logprobs": ("top_logprobs", lambda k: {"logprobs": True, "top_logprobs": k}),
    "logit-bias": ("logit_bias", lambda k: {"logit_bias": {str(i): 0 for i in range(k)}}),
    "tools": ("tools", lambda k: {"tools": tools(k), "tool_choice": "none"}),
    "messages": ("messages", lambda k: {"messages": messages(k)}),
    "grammar-bytes": ("guided_regex", lambda k: {"guided_regex": "a" * k}),
    "grammar-depth": ("guided_regex", lambda k: {"guided_regex": "(" * k + "a" + ")" * k}),
}


def field(server, name):
    """The refusal names the field and the bound."""
    param, fields = FIELDS[name]

    def send(k):
        answer = chat(server, **fields(k))
        if answer.status == 400:
            error = answer.json()["error"]
            assert error["param"] == param and str(SMALL[name]) in error["message"], error
        return answer.status
    around(server, name, send, 400)


CASES = {"request-line": request_line, "head": head_bytes, "headers": headers, "head-time": head_time, "body-idle": body_idle, "body": body,
         "control-body": control_body, "json-depth": json_depth, "json-members": json_members, "json-items": json_items,
         "raw-text": raw_text, "connections": connections,
         "streams-per-key": streams_per_key, "queue": queue, "stream-buffer": stream_buffer, "slow-reader": slow_reader,
         "websocket-message": websocket_message, "websocket-ping": websocket_ping, "websocket-idle": websocket_idle, "websockets": websockets,
         **dict.fromkeys(FIELDS, field)}


# numbers of requests at their bounds, in the shape of their dialect.
@pytest.mark.parametrize("name", SMALL)
def test_a_limit_below_at_and_above(small, name):
    CASES[name](small, name)


@pytest.mark.parametrize("name", HASTY)
def test_a_time_that_is_kept_and_one_that_is_not(hasty, name):
    CASES[name](hasty, name)


def test_the_description_shows_the_bounds_that_hold(small):
    paths = small.get("/openapi.json", headers=BEARER).json()["paths"]

    def fields_of(path):
        schema = paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        return {k: v for part in schema["allOf"] for k, v in part["properties"].items()}
    fields = fields_of("/v1/chat/completions")
    assert fields["n"]["maximum"] == SMALL["n"] and fields["tools"]["maxItems"] == SMALL["tools"]
    assert fields_of("/v1/completions")["prompt"]["maxLength"] == SMALL["raw-text"]
    assert fields["logit_bias"]["maxProperties"] == SMALL["logit-bias"] and fields["messages"]["minItems"] == 1


@pytest.mark.parametrize("path, fields, param", [
    ("/v1/messages", {"stop_sequences": ["a"] * 5}, None), ("/v1/messages", {"messages": messages(13)}, None),
    ("/v1/messages/count_tokens", {"messages": messages(13)}, None), ("/v1/responses", {"input": messages(13)}, "input"),
    ("/v1/completions", {"prompt": "x", "n": 4}, "n"), ("/apply-template", {"messages": messages(13)}, "messages")])
def test_every_dialect_has_them_in_its_own_shape(small, path, fields, param):
    base = {} if "prompt" in fields else {"input": "x"} if path == "/v1/responses" else {"messages": messages(1)}
    answer = small.post(path, {**base, "max_tokens": 1, **fields}, headers=BEARER)
    error = answer.json()["error"]
    assert answer.status == 400 and ("12" in error["message"] or "4" in error["message"] or "3" in error["message"]), answer.body
    if path.startswith("/v1/messages"):
        assert answer.json()["type"] == "error" and error["type"] == "invalid_request_error"
    else:
        assert error["param"] == param, error


# --- the figures of the specification themselves ---

def accepted(answer, param):
    """Not refused for this field; so many messages may still be too many for the context or for the template's time."""
    return answer.status == 200 or answer.status == 400 and answer.json()["error"]["param"] != param


@pytest.mark.parametrize("name", [n for n in FIELDS if not n.startswith("grammar-bytes")])
def test_fields_at_their_defaults(server, name):
    (param, fields), bound = FIELDS[name], int(DEFAULTS[name].rstrip("B"))
    for k in (bound - 1, bound):
        answer = server.chat("Hi", **{"max_tokens": 1, **fields(k)})
        assert accepted(answer, param), (k, answer.body[:300])
    answer = server.chat("Hi", **{"max_tokens": 1, **fields(bound + 1)})
    error = answer.json()["error"]
    assert answer.status == 400 and error["param"] == param and str(bound) in error["message"], error


@pytest.mark.parametrize("path, bound", [("/v1/chat/completions", 32 << 20), ("/api/models/pin", 1 << 20)])
def test_bodies_at_their_defaults(server, path, bound):
    name = server.get("/v1/models").json()["data"][0]["id"]
    fields = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1} if "chat" in path else {"model": name, "pinned": True}
    for size, status in ((bound - 1, 200), (bound, 200), (bound + 1, 413)):
        answer = server.post(path, padded(size, **fields), headers={"Authorization": "Bearer " + server.token()})
        assert answer.status == status, (size, answer.body[:300])


def test_depth_at_its_default(server):
    for depth, status in ((95, 200), (96, 200), (97, 400)):
        nested = "[" * (depth - 1) + "]" * (depth - 1)
        body = '{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "ignored": %s}' % nested
        answer = server.post("/v1/chat/completions", body)
        assert answer.status == status, (depth, answer.body[:300])


# --- how they are set ---

@pytest.mark.parametrize("text, words", [("messges=4", "did you mean messages?"), ("zzz=4", "--limit help"), ("n", "from 1 to 8"), ("n=9", "from 1 to 8"),
                                         ("n=0", "from 1 to 8"), ("n=many", "a whole number"), ("body=64MiB", "32MiB"), ("head-time=1", "a duration"),
                                         ("n=2,stopp=3", "did you mean stop")])
def test_a_limit_that_is_none_ends_the_start(tmp_path, model_file, text, words):
    if text == "head-time=1":
        text = "head-time=soon"
    server = Server(tmp_path, model_file("smollm2"), "--limit", text)
    with pytest.raises(AssertionError):
        server.start()
    assert server.process.wait(10) == 2 and words in "".join(server.log), server.log


def test_limits_from_the_environment_and_a_file(tmp_path, model_file):
    (tmp_path / "hearth.toml").write_text('[serve]\nlimit = ["n=4", "stop=3"]\n')
    bound = lambda server, field, fields: re.search(r"(\d+)(?: items)?, not", chat(server, **fields).json()["error"]["message"])[1]  # noqa: E731
    with Server(tmp_path, model_file("smollm2"), "--context", "256", "--batch", "2") as server:
        assert bound(server, "n", {"n": 8}) == "4" and bound(server, "stop", {"stop": ["a"] * 9}) == "3"
    with Server(tmp_path, model_file("smollm2"), "--context", "256", "--batch", "2", env={"HEARTH_LIMIT": "n=5, tools=7"}) as server:
        assert bound(server, "n", {"n": 8}) == "5" and bound(server, "tools", {"tools": tools(9)}) == "7"
        assert chat(server, stop=["a"] * 9).status == 200, "the file does not count where the environment does"
        server.process.send_signal(signal.SIGHUP)
        (tmp_path / "hearth.toml").write_text("")
        assert bound(server, "n", {"n": 8}) == "5"
