"""R-08, R-09, R-29: what other sites and callers without a key can do, over every route of the table."""
import hashlib
import itertools
import json
import re
import socket

import pytest
from running import Server

KEY = "key-of-the-test-0123456789"
PUBLIC = {"/health", "/ready", "/", "/page.js", "/page.css", "/status", "/chat", "/quantize", "/finetune", "/dataset"}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory, model_file):
    folder = tmp_path_factory.mktemp("keyed")
    keys = folder / "keys"
    keys.write_text(f"# keys\n{KEY}\n")
    keys.chmod(0o600)
    with Server(folder, model_file("smollm2"), "--context", "256", "--batch", "2", "--api-key-file", keys) as running:
        yield running


def table(server, **more):
    return server.get("/v1", **more).json()["data"]


CALLS = itertools.count()


def call(server, route, headers):
    """From another address each time, so that wrong keys cost no time."""
    path = route["path"].replace("{id}", "x")
    body = b"{}" if route["method"] == "POST" else None
    answer = server.request(route["method"], path, body=body, headers=headers, source=f"127.0.1.{next(CALLS) % 250 + 1}")
    assert answer.status < 500, (route, headers, answer.body)
    return answer


FOREIGN_HOSTS = ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:80", "[::ffff:1.2.3.4]", "10.0.0.1",
                 "0x7f000001", "", "localhost@evil.example", "127.0.0.1.", "xn--lcalhost-0ya.example", "1.1.1.1:8080"]
FOREIGN_ORIGINS = ["null", "http://evil.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "https://localhost",
                   "http://127.0.0.1:1", "http://localhost:1", "file://", "chrome-extension://abcdef", "http://[::1]:1",
                   "http://user@127.0.0.1", "HTTP://EVIL.EXAMPLE"]
SITES = ["cross-site", "same-site", "nonsense"]


SIMPLE = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None]  # what a form can send
CELLS = {}


def state(server):
    """Digest of every file of the server's folders but its log."""
    return {str(f): hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(server.home.rglob("*")) if f.is_file()}


# routes x what pages of other sites may try.
@pytest.mark.parametrize("kind", ["host", "origin", "site", "simple", "upgrade", "preflight"])
def test_no_other_site_gets_in(server, kind):
    cells = 0
    files = state(server)
    before = server.get("/stats").json()["batch"]["submitted_rows"]
    for route in table(server):
        if kind == "host":
            for host in FOREIGN_HOSTS:
                answer = call(server, route, {"Host": host})
                assert answer.status in (421, 400), (route, host, answer.status)
                cells += 1
        elif kind == "origin":
            for origin in FOREIGN_ORIGINS:
                for more in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Content-Type": "text/plain"}, {"Authorization": "Bearer x"}):
                    answer = call(server, route, {"Origin": origin, **more})
                    assert answer.status == 403, (route, origin, answer.status)
                    assert not any(h.startswith("access-control") for h in answer.headers)
                    cells += 1
        elif kind == "site":
            for site in SITES:
                answer = call(server, route, {"Sec-Fetch-Site": site})
                assert answer.status == 403 or route["path"] in PUBLIC, (route, site, answer.status)
                cells += 1
        elif kind == "simple":
            for content_type in SIMPLE:
                for more in ({}, {"Authorization": "Bearer x"}):
                    if route["method"] != "POST":
                        continue
                    connection = server.connection(source=f"127.0.1.{next(CALLS) % 250 + 1}")
                    headers = {**more, **({"Content-Type": content_type} if content_type else {})}
                    connection.request("POST", route["path"], body=b"{}", headers=headers)
                    assert connection.getresponse().status in (401, 415), (route, content_type)
                    connection.close()
                    cells += 1
        elif kind == "upgrade":
            headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                       "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": "http://evil.example"}
            assert call(server, route, headers).status == 403
            cells += 1
        else:
            for origin in FOREIGN_ORIGINS:
                answer = server.request("OPTIONS", route["path"], headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
                assert answer.status in (403, 405) and not any(h.startswith("access-control") for h in answer.headers)
                cells += 1
    assert cells >= len(table(server)) or kind == "simple" and cells > 50
    CELLS[kind] = cells
    assert len(CELLS) < 6 or sum(CELLS.values()) >= 2000, CELLS
    assert state(server) == files, "a refused request wrote something"
    assert server.get("/stats").json()["batch"]["submitted_rows"] == before, "a refused request was run"


def test_without_a_key_control_routes_need_the_session_token(server):
    for route in table(server):
        if not route["path"].startswith(("/api/", "/ws/")):
            continue
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"x-api-key": ""}, {"Authorization": server.token()},
                        {"Authorization": "Basic " + server.token()}):
            assert call(server, route, headers).status == 401
        assert server.request(route["method"], route["path"] + "?token=" + server.token(), body=b"{}" if route["method"] == "POST"
                              else None).status == 401
    assert server.get("/api/ps", headers={"Authorization": "Bearer " + server.token()}).status == 200


def test_with_a_key_nothing_but_health_answers_without_it(keyed):
    good = {"Authorization": "Bearer " + KEY}
    for route in table(keyed, headers=good):
        if route["path"] in PUBLIC:
            assert call(keyed, route, {}).status in (200, 302, 503)
            continue
        for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer " + KEY[:-1]}, {"Authorization": "Bearer " + KEY.upper()},
                        {"x-api-key": "x"}, {"Authorization": "Bearer " + KEY, "x-api-key": "x"}, {"Authorization": KEY}):
            answer = call(keyed, route, headers)
            assert answer.status == 401, (route, headers)
            assert KEY not in answer.body.decode()
    assert keyed.get("/v1/models", headers={"x-api-key": KEY}).status == 200
    assert keyed.get("/v1/models?api_key=" + KEY).status == 401
    assert keyed.get("/api/ps", headers=good).status == 401, "a client's key is no admin key"


def test_a_credential_that_is_given_twice_is_none(keyed):
    """R-09, in bytes: client libraries join headers."""
    key, bad = f"Authorization: Bearer {KEY}\r\n", "Authorization: Bearer x\r\n"
    for headers, status in ((key, 200), (key + key, 401), (key + bad, 401), (bad + key, 401), (f"x-api-key: {KEY}\r\n", 200),
                            (f"x-api-key: {KEY}\r\nX-API-Key: {KEY}\r\n", 401), (key + f"x-api-key: {KEY}\r\n", 200)):
        with socket.create_connection((keyed.host, keyed.port), timeout=30) as connection:
            connection.sendall(f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
            assert connection.recv(4096).split()[1] == str(status).encode(), headers
    assert re.fullmatch(r"[0-9a-f]{64}", keyed.token()), "256 bits"


def test_a_public_bind_without_a_key_does_not_start(tmp_path, model_file):
    for host in ("0.0.0.0", "::", "192.168.0.1"):
        server = Server(tmp_path, model_file("smollm2"), "--host", host, "--port", "0")
        with pytest.raises(AssertionError):
            server.start()
        assert server.process.wait(10) == 2 and "key" in "".join(server.log), server.log


def test_keys_do_not_leak(keyed):
    """R-29 for the server: not in its log, its arguments, its workers' environment or its answers."""
    keyed.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "canary-prompt-4711"}], "max_tokens": 2},
               headers={"Authorization": "Bearer " + KEY})
    seen = "".join(keyed.log)
    for pid in [keyed.process.pid, *keyed.workers()]:
        for name in ("cmdline", "environ"):
            seen += open(f"/proc/{pid}/{name}", "rb").read().decode(errors="replace")
    seen += keyed.get("/metrics", headers={"x-api-key": KEY}).body.decode()
    seen += keyed.get("/stats", headers={"x-api-key": KEY}).body.decode()
    assert KEY not in seen and keyed.token() not in seen and "canary-prompt-4711" not in seen
    token = keyed.home / "run" / "hearth" / "session.token"
    assert token.stat().st_mode & 0o777 == 0o600 and token.parent.stat().st_mode & 0o777 == 0o700


# the second one says whose the folder is.
def test_two_servers_of_one_state_do_not_meet(server, model_file):
    second = Server(server.home, model_file("smollm2"))
    with pytest.raises(AssertionError):
        second.start()
    assert second.process.wait(10) == 1 and str(server.process.pid) in "".join(second.log)
    assert server.get("/health").status == 200


def test_a_session_belongs_to_its_origin(server):
    """Pages of this very server may call."""
    answer = server.post("/tokenize", {"content": "x"}, headers={"Origin": f"http://127.0.0.1:{server.port}"})
    assert answer.status == 200, answer.body
    json.loads(answer.body)
