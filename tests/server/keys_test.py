"""R-09: what guessing keys costs, what a key that is taken back ends; and ports and models that are not to be had."""
import http.client
import json
import os
import signal
import socket
import threading
import time

import pytest
from running import Server, raw, write_keys

GOOD, OTHER = "key-that-stays-0123456789", "key-that-goes-9876543210"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory, model_file):
    folder = tmp_path_factory.mktemp("keys")
    with Server(folder, model_file("smollm2"), "--context", "1024", "--batch", "4", "--api-key-file",
                write_keys(folder / "keys", GOOD, OTHER)) as running:
        yield running


def get(server, key, source):
    """Status and seconds of one call from that address of this machine."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=30, source_address=(source, 0))
    begin = time.monotonic()
    connection.request("GET", "/v1/models", headers={"Authorization": "Bearer " + key} if key else {})
    status = connection.getresponse().status
    connection.close()
    return status, time.monotonic() - begin


def test_the_eleventh_wrong_key_costs_a_second(keyed):
    for i in range(10):
        status, seconds = get(keyed, f"guess-{i}", "127.0.0.21")
        assert status == 401 and seconds < 0.5, i
    for i in range(2):
        status, seconds = get(keyed, f"guess-more-{i}", "127.0.0.21")
        assert status == 401 and seconds >= 0.95, seconds
    assert get(keyed, GOOD, "127.0.0.21")[1] < 0.5, "the right key waits for nothing"
    status, seconds = get(keyed, "guess", "127.0.0.22")
    assert status == 401 and seconds < 0.5, "another address has tries of its own"
    for _ in range(15):
        status, seconds = get(keyed, None, "127.0.0.23")
        assert status == 401 and seconds < 0.5, "no key is no guess"


def open_stream(server, key):
    body = json.dumps({"messages": [{"role": "user", "content": "Count for ever."}], "max_tokens": 900, "temperature": 0, "stream": True,
                       "logit_bias": {str(i): -100 for i in (0, 2)}}).encode()
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    connection = socket.create_connection((server.host, server.port), timeout=30)
    connection.sendall(head.encode() + body)
    assert b"200 OK" in connection.recv(4096)
    return connection


def ends_after(connection, seconds):
    """Seconds until the server closes it; None: it does not."""
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        connection.settimeout(max(0.01, seconds - (time.monotonic() - begin)))
        try:
            if not connection.recv(65536):
                return time.monotonic() - begin
        except ConnectionError:
            return time.monotonic() - begin
        except socket.timeout:
            return None
    return None


def test_a_key_that_is_taken_back_ends_its_streams(keyed):
    stays, goes = open_stream(keyed, GOOD), open_stream(keyed, OTHER)
    write_keys(keyed.home / "keys", GOOD)
    keyed.process.send_signal(signal.SIGHUP)
    took = ends_after(goes, 3)
    assert took is not None and took < 1, took
    assert ends_after(stays, 0.5) is None, "a stream of another key goes on"
    stays.close()
    assert get(keyed, OTHER, "127.0.0.24")[0] == 401 and get(keyed, GOOD, "127.0.0.24")[0] == 200
    deadline = time.monotonic() + 5
    while keyed.get("/stats", headers={"x-api-key": GOOD}).json()["batch"]["active_rows"] > 0:
        assert time.monotonic() < deadline, "its row still runs"
        time.sleep(0.02)
    write_keys(keyed.home / "keys", GOOD, OTHER)
    keyed.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert get(keyed, OTHER, "127.0.0.24")[0] == 200


def test_keys_that_cannot_be_read_change_nothing(keyed):
    (keyed.home / "keys").chmod(0o644)
    keyed.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert get(keyed, GOOD, "127.0.0.25")[0] == 200 and "keys stay as they were" in "".join(keyed.log)
    (keyed.home / "keys").chmod(0o600)


def test_a_port_in_use_is_named_with_its_owner(tmp_path, model_file):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = Server(tmp_path, model_file("smollm2"), "--port", str(port))
        with pytest.raises(AssertionError):
            server.start()
    log = "".join(server.log)
    assert server.process.returncode == 1 and f"127.0.0.1:{port}: the port is in use by process {os.getpid()} (" in log, log


def test_a_model_that_cannot_be_loaded_is_a_422_and_no_harm(tmp_path, model_file):
    """A corrupt file beside a good one: cut, scribbled over, and one that is no model at all."""
    good = model_file("smollm2").read_bytes()
    head = bytearray(good[: 4 << 20])
    names = {"cut": bytes(head), "empty": b"", "text": b"this is no model\n" * 100}
    head[4:8] = b"\xff\xff\xff\x7f"
    names["version"] = bytes(head)
    allowed = []
    for name, content in names.items():
        (tmp_path / f"{name}.gguf").write_bytes(content)
        allowed += ["--allow-models", tmp_path / f"{name}.gguf"]
    with Server(tmp_path, model_file("smollm2"), "--context", "256", "--batch", "2", *allowed) as server:
        workers = server.workers()
        for name in names:
            for _ in range(2):
                answer = server.chat("Hi", model=name)
                assert answer.status == 422, (name, answer.body)
                error = answer.json()["error"]
                assert error["code"] == "model_not_loadable" and ".gguf" in error["message"], error
                assert str(tmp_path) not in error["message"], error
        deadline = time.monotonic() + 5
        while server.workers() != workers and time.monotonic() < deadline:  # that of the refused load is on its way out
            time.sleep(0.02)
        assert server.workers() == workers
        assert server.chat("Hi", max_tokens=2).status == 200


def test_a_thousand_connections_that_close_at_once_leave_nothing(keyed):
    """R-15 in small: slow and rude clients; a healthy one is served meanwhile and descriptors return."""
    fds = lambda: len(os.listdir(f"/proc/{keyed.process.pid}/fd"))  # noqa: E731
    before = fds()
    slow = []
    for i in range(100):
        connection = socket.create_connection((keyed.host, keyed.port), timeout=30)
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n" if i % 2 else
                           b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer "
                           + GOOD.encode() + b"\r\nContent-Length: 1000\r\n\r\n{")
        slow.append(connection)
    failures = []

    def rude():
        for _ in range(250):
            with raw(keyed) as connection:
                connection.sendall(b"GET")

    threads = [threading.Thread(target=rude) for _ in range(4)]
    for t in threads:
        t.start()
    for _ in range(20):
        begin = time.monotonic()
        if keyed.get("/health").status != 200 or time.monotonic() - begin > 5:
            failures.append(time.monotonic() - begin)
    for t in threads:
        t.join()
    assert not failures
    for connection in slow:
        connection.close()
    deadline = time.monotonic() + 15
    while fds() > before + 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert fds() <= before + 2


def test_a_missing_key_is_refused_in_the_shape_of_the_path(keyed):
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        for headers in ({}, {"x-api-key": "key-of-nobody"}):
            answer = keyed.post(path, {}, headers=headers, source="127.9.0.1")
            body = answer.json()
            assert answer.status == 401 and body["type"] == "error" and body["error"]["type"] == "authentication_error", body
            assert answer.headers["request-id"] == answer.headers["x-request-id"] == body["request_id"]
    assert set(keyed.post("/signal", {}, source="127.9.0.1").json()) == {"error"}
