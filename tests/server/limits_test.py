"""How many may ask at once: streams of one key, requests that wait (reliability.md section 3), below, at and above."""
import json
import socket
import time

import pytest
from running import Server

STREAMS_OF_A_KEY, WAITING, ROWS = 64, 256, 2
KEY, OTHER = "key-of-many-streams-0123", "key-of-another-one-45678"


def start(server, key=None):
    """A chat stream that goes on until its client closes it."""
    body = json.dumps({"messages": [{"role": "user", "content": "Count for ever."}], "max_tokens": 900, "temperature": 0, "stream": True,
                       "logit_bias": {str(i): -100 for i in (0, 2)}}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    if key:
        head += f"Authorization: Bearer {key}\r\n"
    connection = socket.create_connection((server.host, server.port), timeout=60)
    connection.sendall(head.encode() + b"\r\n" + body)
    return connection


def refusal(connection):
    """Status and head of an answer that comes at once."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return int(data[9:12]), data.split(b"\r\n\r\n")[0].decode()


def is_silent(connection, seconds=0.3):
    connection.settimeout(seconds)
    try:
        return connection.recv(1, socket.MSG_PEEK) is None
    except TimeoutError:
        return True
    finally:
        connection.settimeout(60)


@pytest.fixture
def crowd():
    connections = []
    yield connections
    for connection in connections:
        connection.close()


def test_streams_of_one_key(tmp_path, model_file, crowd):
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n{OTHER}\n")
    keys.chmod(0o600)
    with Server(tmp_path, model_file("smollm2"), "--context", "1024", "--batch", str(ROWS), "--api-key-file", keys) as server:
        for i in range(STREAMS_OF_A_KEY):
            crowd.append(start(server, KEY))
            if i < ROWS:
                assert refusal(crowd[-1])[0] == 200
        assert is_silent(crowd[-2]) and is_silent(crowd[-1]), "63 and 64 wait their turn"
        one_more = start(server, KEY)
        status, head = refusal(one_more)
        assert status == 429 and "Retry-After: " in head, head
        one_more.close()
        crowd.append(start(server, OTHER))
        assert is_silent(crowd[-1]), "another key has streams of its own"
        crowd.pop(0).close()
        for _ in range(100):
            crowd.append(start(server, KEY))
            if is_silent(crowd[-1], 0.1):
                break
            assert refusal(crowd.pop())[0] == 429, "its place is free in a moment"
        else:
            raise AssertionError("the place of the one that went stays taken")


def test_requests_that_wait(tmp_path, model_file, crowd):
    with Server(tmp_path, model_file("smollm2"), "--context", "1024", "--batch", str(ROWS)) as server:
        for _ in range(ROWS):
            crowd.append(start(server))
            assert refusal(crowd[-1])[0] == 200
        for _ in range(WAITING):
            crowd.append(start(server))
        assert is_silent(crowd[-2]) and is_silent(crowd[-1]), "255 and 256 wait"
        assert server.get("/stats").json()["batch"]["pending_rows"] == WAITING
        one_more = start(server)
        status, head = refusal(one_more)
        assert status == 503 and "Retry-After: " in head, head
        one_more.close()
        name = server.get("/v1/models").json()["data"][0]["id"]
        anthropic = server.post("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "model": name})
        assert anthropic.status == 529, anthropic.body
        for connection in crowd:
            connection.close()
        deadline = time.monotonic() + 60
        while server.get("/stats").json()["batch"]["pending_rows"] > 0:
            assert time.monotonic() < deadline, "those who went away still wait"
            time.sleep(0.05)
        assert server.chat("Hi", max_tokens=2).status == 200


# --- what one request may hold (server: the module's shared one) ---

def said(answer):
    error = answer.json()["error"] if answer.status >= 400 else {}
    return answer.status, error.get("param"), error.get("message", "")


def accepted(answer, param):
    """Not refused for this field; so many messages may still be too many for the context or for the template's time."""
    return answer.status == 200 or answer.status == 400 and answer.json()["error"]["param"] != param


def tools(n):
    return [{"type": "function", "function": {"name": f"f{i}", "parameters": {"type": "object", "properties": {}}}} for i in range(n)]


def messages(n):
    return [{"role": "user" if i % 2 == 0 else "assistant", "content": "a"} for i in range(n)]


FIELDS = {
    "n": (8, lambda k: {"n": k}),
    "stop": (16, lambda k: {"stop": [f"stop-{i}" for i in range(k)]}),
    "stop, bytes": (256, lambda k: {"stop": ["s" * k]}),
    "top_logprobs": (20, lambda k: {"logprobs": True, "top_logprobs": k}),
    "logit_bias": (1024, lambda k: {"logit_bias": {str(i): 0 for i in range(k)}}),
    "tools": (256, lambda k: {"tools": tools(k), "tool_choice": "none"}),
    "messages": (8192, lambda k: {"messages": messages(k)}),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_at_their_bounds(server, name):
    bound, fields = FIELDS[name]
    for k in (bound - 1, bound):
        answer = server.chat("Hi", **{"max_tokens": 1, **fields(k)})
        assert accepted(answer, name.split(",")[0]), (k, said(answer))
    status, param, message = said(server.chat("Hi", **{"max_tokens": 1, **fields(bound + 1)}))
    assert status == 400 and param == name.split(",")[0] and str(bound) in message, message


@pytest.mark.parametrize("path, bound", [("/v1/chat/completions", 32 << 20), ("/api/models/pin", 1 << 20)])
def test_bodies_at_their_bounds(server, path, bound):
    name = server.get("/v1/models").json()["data"][0]["id"]
    fields = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1} if "chat" in path else {"model": name, "pinned": True}
    headers = {"Authorization": "Bearer " + server.token()}
    empty = len(json.dumps({**fields, "ignored": ""}))
    for size, status in ((bound - 1, 200), (bound, 200), (bound + 1, 413)):
        body = json.dumps({**fields, "ignored": "x" * (size - empty)})
        assert len(body) == size
        answer = server.post(path, body, headers=headers)
        assert answer.status == status, (size, answer.body[:300])


def test_depth_at_its_bound(server):
    """96 levels, the body's own object among them."""
    for depth, status in ((95, 200), (96, 200), (97, 400)):
        nested = "[" * (depth - 1) + "]" * (depth - 1)
        body = '{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "ignored": %s}' % nested
        answer = server.post("/v1/chat/completions", body)
        assert answer.status == status, (depth, answer.body[:300])
