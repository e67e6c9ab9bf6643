"""R-11, R-12, R-33: every field of every route at its edges, bodies that mean harm, and nobody is ever called."""
import http.client
import json
import os
import pathlib
import re
import socket
import threading
import time

import pytest
from running import Answer, Server, open_files, raw

TIER = os.environ.get("HEARTH_TEST_TIER", "quick")
TEXT = {"content": "Hi"}
MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def target(tmp_path_factory, model_file):
    with Server(tmp_path_factory.mktemp("target"), model_file("smollm2"), "--context", "256", "--batch", "8") as running:
        yield running


class Connection:
    """Kept alive, made again when the server has closed it; with the session token."""

    def __init__(self, server):
        self.server, self.token, self.http = server, server.token(), None

    def post(self, path, body):
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + self.token}
        for attempt in (0, 1):
            if self.http is None:
                self.http = http.client.HTTPConnection(self.server.host, self.server.port, timeout=120)
            try:
                self.http.request("POST", path, body=body, headers=headers)
                response = self.http.getresponse()
                answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
                if response.will_close:
                    self.http = None
                return answer
            except (ConnectionError, http.client.HTTPException):
                self.http = None
                if attempt:
                    raise


def base_of(path, model):
    """A small valid body."""
    if path.startswith("/api/models"):
        return {"model": "no/such-model" if path.endswith("unload") else model}
    if "detokenize" in path:
        return {"tokens": [1, 2]}
    if "tokenize" in path:
        return dict(TEXT)
    if path == "/generate":
        return {"prompt": "Hi", "points": [{"x_pct": 1, "y_pct": 1}, {"x_pct": 100, "y_pct": 100}], "n": 1, "max_tokens": 1}
    if path.endswith("/completions") and "chat" not in path:
        return {"prompt": "Hi", "max_tokens": 1, "temperature": 0}
    return {"messages": MESSAGES, "max_tokens": 1, "temperature": 0}


def edges(schema):
    low, high = schema.get("minimum"), schema.get("maximum")
    numbers = [-1, 0, 2**31, 2**63, -(2**63) - 1, 1e308, -1e308, 0.5, "1", None, [], {}, True, float("nan"), float("inf")]
    numbers += [low - 1, low] if low is not None else []
    numbers += [high, high + 1] if high is not None else []
    strings = ["", "x" * (1 << 20), "a\0b", "\u202eabc\u202c", "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 50, "\ufffe", "%s%n", "../../etc/passwd", "\ud800"]
    lists = [[None], [[]], [{}], [""], [0], ["x"] * 300, [[[[]]]], {"": ""}, {"a": {"b": []}}, [1e308], [-1], [2**63]]
    return numbers + strings + lists


def fields_of(operation):
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return {name: field for part in schema["allOf"] for name, field in part["properties"].items()}


def restarts(server):
    found = re.search(r"^hearth_worker_restarts_total (\d+)", server.get("/metrics").body.decode(), re.M)
    return int(found[1])


def test_every_field_of_every_route_at_its_edges(target):
    """No answer of 5xx, every refusal in its dialect's shape, no worker lost."""
    worker, before = target.workers(), restarts(target)
    model = target.get("/v1/models").json()["data"][0]["id"]
    paths = target.get("/openapi.json").json()["paths"]
    connection, cells, accepted = Connection(target), 0, 0
    for path, methods in paths.items():
        for method, operation in methods.items():
            if "requestBody" not in operation:
                continue
            assert method == "post"
            fields = fields_of(operation)
            assert len(fields) >= 2
            for name, schema in fields.items():
                for value in edges(schema):
                    if name == "keep_alive" and value in (0, 0.5, "1"):
                        continue  # these are valid and unload the model
                    if name == "pinned" and value is True:
                        continue
                    body = json.dumps({**base_of(path, model), name: value})
                    answer = connection.post(path, body)
                    where = (path, name, repr(value)[:60], answer.status, answer.body[:300])
                    assert answer.status < 500, where
                    assert answer.status in (200, 400, 404, 413), where
                    if answer.status >= 400:
                        error = answer.json()["error"]
                        assert error["message"] and "type" in error, where
                        if path.startswith("/v1/messages"):
                            assert answer.json()["type"] == "error", where
                        else:
                            assert set(error) >= {"message", "type", "param", "code"}, where
                    accepted += answer.status == 200
                    cells += 1
    assert cells > 1000 and accepted > 50, (cells, accepted)
    assert target.workers() == worker and restarts(target) == before
    assert target.chat("Hi", max_tokens=2).status == 200


def rss(server, key="VmRSS"):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"^{key}:\s+(\d+) kB", status, re.M)[1]) / 1024


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def sized(body):
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def keys(count, name):
    return b"{" + b",".join(b'"%s":1' % (name % i if b"%d" in name else name) for i in range(count)) + b"}"


HOSTILE = {
    "100k arrays": sized(b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "100k objects": sized(b'{"messages":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}"),
    "a million keys": sized(keys(1_000_000, b"k%d")),
    "a million times one key": sized(keys(1_000_000, b"k")),
    "16 million items": sized(b'{"messages":[' + b"0," * 16_000_000 + b"0]}"),
    "8 million arrays in an array": sized(b'{"messages":[' + b"[]," * 8_000_000 + b"0]}"),
    "16 million items of a schema": sized(b'{"messages":[],"response_format":{"type":"json_schema","json_schema":{"schema":{"enum":[' + b"0," * 16_000_000 + b"0]}}}}"),
    "33 MiB": sized(b" " * (33 << 20)),
    "lying length, short": HEAD + b"Content-Length: 3\r\n\r\n" + b'{"messages": []}',
    "length and chunks": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a length of words": HEAD + b"Content-Length: ten\r\n\r\n{}",
    "a negative length": HEAD + b"Content-Length: -1\r\n\r\n{}",
    "a huge length": HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "chunks twice": HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "another coding": HEAD + b"Transfer-Encoding: gzip\r\n\r\n{}",
    "bare LF": HEAD.replace(b"\r\n", b"\n") + b"Content-Length: 2\n\n{}",
    "obs-fold": HEAD + b"X-Folded: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    "space before colon": HEAD + b"Content-Length : 2\r\n\r\n{}",
    "NUL in a header": HEAD + b"X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    "101 headers": HEAD + b"".join(b"X-%d: 1\r\n" % i for i in range(101)) + b"Content-Length: 2\r\n\r\n{}",
    "17 KiB of headers": HEAD + b"X: " + b"a" * (17 << 10) + b"\r\nContent-Length: 2\r\n\r\n{}",
    "bad chunk size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "huge chunk size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
}


def status_of(connection, sent):
    """Sends in the background, for the answer may come before all is taken."""
    def send():
        try:
            for piece in [sent] if isinstance(sent, bytes) else sent:
                connection.sendall(piece)
        except OSError:
            pass

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    answer = b""
    try:
        while b"\r\n" not in answer:
            piece = connection.recv(65536)
            if not piece:
                break
            answer += piece
    except ConnectionError:
        pass
    connection.close()
    thread.join(30)
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(found[1]) if found else None


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_bodies_are_refused_in_bounded_memory(target, kind):
    target.chat("Hi", max_tokens=1)
    worker, before = target.workers(), rss(target)
    with raw(target) as connection:
        begin = time.monotonic()
        status = status_of(connection, HOSTILE[kind])
        assert status is not None and (400 <= status < 500 or status == 501), status
        assert time.monotonic() - begin < 15
    assert target.get("/health").status == 200
    assert rss(target) - before <= 40, f"{rss(target) - before:.0f} MiB more after {kind}"
    assert target.workers() == worker


def test_endless_chunks_end(target):
    before = rss(target)

    def endless():
        yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        for _ in range(40):
            yield (b"100000\r\n" + b" " * (1 << 20) + b"\r\n")

    with raw(target) as connection:
        assert status_of(connection, endless()) == 413
    assert rss(target) - before <= 40


def test_chunks_of_one_byte_are_a_body_like_any(target):
    body = json.dumps({"messages": [{"role": "user", "content": "Hi " + "x" * 2000}], "max_tokens": -1}).encode()
    with raw(target) as connection:
        assert status_of(connection, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(b"1\r\n%c\r\n" % b for b in body) + b"0\r\n\r\n") == 400


def test_a_body_that_never_ends_does_not_hold_its_place(target):
    """A length that is never reached: the connection is no obstacle to others."""
    with raw(target) as connection:
        connection.sendall(HEAD + b"Content-Length: 100000\r\n\r\n{")
        assert target.get("/health").status == 200
        connection.settimeout(0.5)
        with pytest.raises(socket.timeout):
            connection.recv(100)


def test_large_documents_in_a_row_keep_the_memory_flat(target):
    """One connection; each document is 64 KiB and refused after it was parsed."""
    rounds = 10_000 if TIER == "full" else 2_000
    body = json.dumps({"messages": [], "tools": [{"type": "function", "function": {"name": "a" * 60, "description": "x" * 4000}}] * 15})
    connection = Connection(target)
    for _ in range(200):
        assert connection.post("/v1/chat/completions", body).status == 400
    before, first = rss(target), connection.http
    for _ in range(rounds):
        assert connection.post("/v1/chat/completions", body).status == 400
    assert connection.http is first, "it was another connection"
    assert rss(target) - before <= 4, f"{rss(target) - before:.1f} MiB more after {rounds} documents"


RULES = "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(5000)) + 'r5000 ::= "a"\n'
GRAMMARS = {
    "60,000 groups of an expression": ({"guided_regex": "(" * 60_000 + "a" + ")" * 60_000}, "nested more than"),
    "60,000 groups of a grammar": ({"guided_grammar": "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000}, "nested more than"),
    "5,000 rules in a chain": ({"guided_grammar": RULES}, "rules"),
    "left recursion": ({"guided_grammar": 'root ::= root "a" | "a"'}, "left recursion"),
    "unbounded repeats": ({"guided_regex": "(a+)+b"}, "unbounded"),
    "256 KiB and a byte": ({"guided_regex": "a" * ((256 << 10) + 1)}, "the limit is 262144"),
}


@pytest.mark.parametrize("kind", GRAMMARS)
def test_hostile_grammars_are_refused_and_cost_the_worker_nothing(target, kind):
    """R-14: by the worker, which lives on and has not grown."""
    fields, words = GRAMMARS[kind]
    (worker,) = target.workers()
    target.chat("Hi", max_tokens=1)
    answer = target.chat("Hi", max_tokens=1, **fields)
    assert answer.status == 400 and words in answer.json()["error"]["message"], answer.body[:500]
    assert len(answer.body) < 2000, "the refusal repeats what it refuses"
    assert target.chat("Hi", max_tokens=1).status == 200 and target.workers() == [worker]


def remote_addresses(pids):
    """Foreign ends of all TCP and UDP sockets of these processes, as hexadecimal words of /proc/net."""
    inodes = set()
    for pid in pids:
        inodes.update(found[1] for name in open_files(pid) if (found := re.match(r"socket:\[(\d+)\]", name)))
    remotes = set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[9] in inodes:
                remotes.add(words[2].rsplit(":", 1)[0])
    return remotes


def test_nobody_is_called(tmp_path, model_file):
    """R-33: from its start to its end no process of the server has a socket to another machine."""
    server = Server(tmp_path, model_file("smollm2"), "--context", "256", "--batch", "2")
    seen, over = set(), threading.Event()

    def watch():
        while not over.is_set():
            try:
                if server.process:
                    seen.update(remote_addresses([server.process.pid, *server.workers()]))
            except OSError:
                pass
            time.sleep(0.005)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        with server:
            server.chat("Hi", max_tokens=4)
            server.post("/v1/chat/completions", {"model": "org/never-heard-of", "messages": MESSAGES})
            with raw(server) as connection:
                connection.sendall(b"GET /he")
                time.sleep(0.1)
    finally:
        over.set()
        thread.join()
    loopback = {"00000000", "0100007F", "0" * 32, "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
    assert "0100007F" in seen, "the watch saw nothing"
    assert seen <= loopback, seen
