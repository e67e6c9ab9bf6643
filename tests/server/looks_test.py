"""Status routes change neither what is loaded nor when it goes (spec server 8, 9); lists tell of what is not loaded."""
import datetime
import os
import pathlib
import signal
import threading
import time

import pytest
from library_test import add, serve
from oracle import adapters


@pytest.fixture(scope="module")
def store(tmp_path_factory, model_file):
    cache = tmp_path_factory.mktemp("looks")
    add(cache, "org/one", model_file("smollm2"))
    add(cache, "org/two", model_file("smollm2"))
    return cache


def loaded(server):
    return {m["id"] for m in server.get("/stats").json()["models"] if m["state"] == "ready"}


def control(server):
    return {"Authorization": "Bearer " + server.token()}


def test_looks_keep_no_model_loaded(tmp_path, store):
    with serve(tmp_path, store, "org/one", "--context", "256", "--batch", "2", "--ttl", "2s") as server:
        folder = adapters.smollm2_style(tmp_path / "style")
        mounted = server.post("/v1/adapters", {"path": str(folder), "model": "org/two"}, headers=control(server))
        assert mounted.status == 200, mounted.body
        assert server.post("/api/models/pin", {"model": "org/one", "pinned": False}, headers=control(server)).status == 200
        assert loaded(server) == {"org/one", "org/two"}
        paths = ["/v1/adapters", "/stats", "/v1/stats", "/metrics", "/api/ps", "/v1/models", "/v1/models/org%2Ftwo", "/library", "/fit?model=org/two",
                 "/v1/adapters/available?model=org/two", "/ready", "/"]
        deadline = time.monotonic() + 20
        while loaded(server) and time.monotonic() < deadline:
            for path in paths:
                assert server.get(path, headers=control(server)).status in (200, 503), path
        assert loaded(server) == set(), "they were kept awake"
        for path in paths:
            server.get(path, headers=control(server))
        assert loaded(server) == set(), "and none is loaded by a look"
        (listed,) = server.get("/v1/adapters").json()["data"]
        assert (listed["id"], listed["resident"], listed["uses"]) == ("style", False, 0)


def test_available_adapters_need_no_load(tmp_path, store):
    root = tmp_path / "adapters"
    style = adapters.smollm2_style(root / "a-style")
    for number in range(255):
        copy = root / f"b{number:03}"
        copy.mkdir()
        for file in style.iterdir():
            os.link(file, copy / file.name)
    os.unlink(root / "b100" / "adapter_config.json")
    (root / "b100" / "adapter_config.json").write_text("no json")
    with serve(tmp_path, store, "org/one", "--context", "256", "--batch", "2", "--adapters-dir", root) as server:
        (worker,) = server.workers()
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(server.get("/v1/adapters/available?model=org/two"))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for answer in answers:
            assert answer.status == 200, answer.body
            rows = {row["id"]: row for row in answer.json()["data"]}
            assert len(rows) == 256
            assert all(row["compatible"] for name, row in rows.items() if name != "b100")
            assert "adapter_config.json" in rows["b100"]["problem"] and str(root) not in answer.body.decode()
        assert loaded(server) == {"org/one"} and worker in server.workers(), "nothing was loaded for it, and nobody was lost"
        assert server.get("/stats").json()["models"][0]["restarts"] == 0


def test_models_tell_when_their_files_came(tmp_path, model_file):
    cache = tmp_path / "hub"
    cache.mkdir()
    add(cache, "org/one", model_file("smollm2"))
    add(cache, "org/folder", model_file("minilm"))
    when = int(pathlib.Path(model_file("smollm2")).stat().st_mtime)
    with serve(tmp_path, cache, "org/one", "--context", "256", "--batch", "2") as server:
        rows = {row["id"]: row for row in server.get("/v1/models").json()["data"]}
        for row in rows.values():
            assert row["created"] > 1_500_000_000
            told = datetime.datetime.fromisoformat(row["created_at"].replace("Z", "+00:00"))
            assert told == datetime.datetime.fromtimestamp(row["created"], datetime.timezone.utc)
        assert rows["org/one"]["created"] == when
        assert server.get("/v1/models/org%2Fone").json()["created"] == when


# --- a worker that is killed ---

def engine(server):
    """The process of the loaded model; one that only spells tokens may stand beside it."""
    (pid,) = [pid for pid in server.workers() if b"text" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    return pid


def test_a_request_right_behind_a_kill_waits_for_the_next_worker(tmp_path, store):
    """Spec server 3: what the dead worker had ends with 503; what it never got does not."""
    with serve(tmp_path, store, "org/one", "--context", "256", "--batch", "2") as server:
        for number in range(10):
            os.kill(engine(server), signal.SIGKILL)
            answer = server.chat("Hi", max_tokens=2) if number % 2 else server.post("/v1/tokenize", {"content": "x"})
            assert answer.status == 200, (number, answer.body)
            assert server.chat("Hi", max_tokens=2, stream=True).status == 200
        assert server.get("/stats").json()["models"][0]["restarts"] == 10


@pytest.mark.parametrize("path, body", [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "stream": True}),
    ("/v1/tokenize", {"content": "x"}),
])
def test_a_request_that_the_worker_never_read_goes_to_the_next_one(tmp_path, store, path, body):
    with serve(tmp_path, store, "org/one", "--context", "256", "--batch", "2") as server:
        worker = engine(server)
        os.kill(worker, signal.SIGSTOP)  # the request lies in its socket
        answers = []
        thread = threading.Thread(target=lambda: answers.append(server.post(path, body)))
        thread.start()
        while server.get("/api/ps", headers=control(server)).json()["models"][0]["open_requests"] == 0:
            time.sleep(0.01)
        os.kill(worker, signal.SIGKILL)
        thread.join()
        assert answers[0].status == 200, answers[0].body
        assert server.get("/stats").json()["models"][0]["restarts"] == 1
