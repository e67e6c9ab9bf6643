"""Tickets for /ws/chat: browsers send no credential with a WebSocket, so the first frame says what POST /api/ws-ticket gave."""
import json
import signal
import time

import pytest
from running import Server, write_keys
from ws import BINARY, TEXT, Chat, WebSocket, closes

STAYS, GOES = "admin-that-stays-0123456789", "admin-that-goes-9876543210"


def ticket_of(server, token=None):
    answer = server.post("/api/ws-ticket", {}, headers={"Authorization": "Bearer " + (token or server.token())})
    assert answer.status == 200 and answer.json()["expires_ms"] == 30_000, answer.body
    return answer.json()["ticket"]


def said(socket, **frame):
    socket.send_frame(TEXT, json.dumps(frame))
    return socket


def test_a_ticket_lets_in_once(server):
    ticket = ticket_of(server)
    page = {"Origin": f"http://127.0.0.1:{server.port}"}
    with WebSocket(server, page) as socket:
        said(socket, type="auth", id=1, ticket=ticket)
        ack, ready = json.loads(socket.receive()), json.loads(socket.receive())
        assert (ack["type"], ack["id"], ack["seq"], ready["type"], ready["seq"]) == ("ack", 1, 1, "ready", 2)
        said(socket, type="ping", id="x" * 60, ignored="y" * 100_000)  # it is known now: messages may be long
        assert json.loads(socket.receive())["type"] == "ack"
        with WebSocket(server, page) as replay:
            assert closes(said(replay, type="auth", id=1, ticket=ticket)) == 4401
        said(socket, type="auth", id=2, ticket=ticket_of(server))
        assert json.loads(socket.receive())["type"] == "ack", "the same credential once more"
        assert closes(said(socket, type="auth", id=3, ticket=ticket)) == 4401


# a message before auth.
@pytest.mark.parametrize("opcode, text", [(TEXT, '{"type": "ping", "id": 1}'), (TEXT, '{"type": "prompt", "id": 1, "text": "Hi"}'), (TEXT, "{"), (TEXT, ""),
                                          (BINARY, '{"type": "auth", "id": 1, "ticket": "x"}'), (TEXT, '{"type": "auth", "id": 1}'),
                                          (TEXT, '{"type": "auth", "ticket": "x"}'), (TEXT, '{"type": "auth", "id": 1, "ticket": ""}'),
                                          (TEXT, '{"type": "auth", "id": 1, "ticket": ["x"]}'), (TEXT, json.dumps({"type": "auth", "id": 1, "ticket": "0" * 64}))])
def test_whatever_comes_before_a_good_ticket_ends_it(server, opcode, text):
    before = server.get("/stats").json()["batch"]["submitted_rows"]
    with WebSocket(server, {}, path="/ws/chat?token=" + server.token()) as socket:
        socket.send_frame(opcode, text)
        assert closes(socket) == 4401
    with WebSocket(server, {}) as socket:
        socket.send_frame(TEXT, " " * 5000)
        assert closes(socket) == 4413, "who is not known has little room"
    assert server.get("/stats").json()["batch"]["submitted_rows"] == before


def test_tickets_are_for_those_who_may_control(server):
    for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Origin": "http://evil.example"}, 403)):
        assert server.post("/api/ws-ticket", {}, headers=headers, source="127.0.2.1").status == status


@pytest.mark.full
def test_a_ticket_and_the_wait_for_one_end_in_time(server):
    ticket = ticket_of(server)
    with WebSocket(server, {}) as silent:
        begin = time.monotonic()
        assert closes(silent) == 4401
        assert 9 < time.monotonic() - begin < 15
    time.sleep(21)
    with WebSocket(server, {}) as late:
        assert closes(said(late, type="auth", id=1, ticket=ticket)) == 4401


def test_a_ticket_is_that_of_its_credential(tmp_path, model_file):
    """R-09: another's conversation stays closed, and what a taken-back credential opened by a ticket ends with it."""
    admins = write_keys(tmp_path / "admins", STAYS, GOES)
    with Server(tmp_path, model_file("smollm2"), "--context", "512", "--batch", "2", "--admin-key-file", admins) as server:
        with Chat(server, STAYS) as mine, WebSocket(server, {}) as other:
            assert closes(said(mine, type="auth", id=1, ticket=ticket_of(server, GOES))) == 4401, "who it is does not change"
            said(other, type="auth", id=1, ticket=ticket_of(server, GOES))
            assert [json.loads(other.receive())["type"] for _ in range(2)] == ["ack", "ready"]
            said(other, type="resume", id=2, conversation=mine.conversation, after_seq=0)
            assert json.loads(other.receive())["kind"] == "not_found"
            unused = ticket_of(server, GOES)
            write_keys(admins, STAYS)
            begin = time.monotonic()
            server.process.send_signal(signal.SIGHUP)
            assert closes(other) == 4409
            assert time.monotonic() - begin < 1
        with WebSocket(server, {}) as late:
            assert closes(said(late, type="auth", id=1, ticket=unused)) == 4401
