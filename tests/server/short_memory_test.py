"""A front that has too little memory for a request: it says so, and nothing else suffers (R-05)."""
import pathlib
import re
import resource

import pytest
from running import Server

# Four bytes a piece, each an array in an array: some hundred MB once they are values.
WIDE = b'{"model": "%s", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}], "ignored": [' + b",".join([b"[0]"] * 900_000) + b"]}"
ROOM = 24 << 20  # for the body, and for the first of them


@pytest.fixture
def short(tmp_path, model_file):
    """A server, and what takes memory from its front: the bound of its address space."""
    with Server(tmp_path, model_file("smollm2"), "--context", "512", "--batch", "2") as server:
        server.chat("Hi", max_tokens=1)
        pid = server.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_AS)
        size = int(re.search(r"^VmSize:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]) << 10
        resource.prlimit(pid, resource.RLIMIT_AS, (size + ROOM, hard))
        yield server, lambda: resource.prlimit(pid, resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_request_that_memory_is_too_little_for(short, path):
    server, give_back = short
    worker, body = server.workers(), WIDE % server.get("/v1/models").json()["data"][0]["id"].encode()
    for _ in range(3):
        answer = server.post(path, body)
        error = answer.json()["error"]
        assert answer.status == 503 and "memory" in error["message"] and int(answer.headers["retry-after"]) > 0, answer.body
        assert error["type"] == ("overloaded_error" if path == "/v1/messages" else "server_error"), error
        assert server.get("/health").status == 200
        assert server.chat("Hi", max_tokens=2).status == 200, "what is small goes on"
    give_back()
    assert server.post(path, body).status == 200, "the same body, once there is memory"
    assert server.workers() == worker
