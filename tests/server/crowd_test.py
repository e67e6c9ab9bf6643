"""How many may ask at once: streams of one key, requests that wait (reliability.md section 3), below, at and above."""
import time

import pytest
from asking import KEY, OTHER, is_silent, refusal, start
from running import Server

STREAMS_OF_A_KEY, WAITING, ROWS = 64, 256, 2


@pytest.fixture
def crowd():
    connections = []
    yield connections
    for connection in connections:
        connection.close()


@pytest.mark.full  # at its default; limits_test.py has it at a small bound
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
