"""R-06, R-29: a worker holds no secret of the front and cannot reach out; it ends with the front."""
import os
import pathlib
import re
import signal
import time

import pytest
from running import Server, open_files

KEY = "key-canary-5f1c93ab20"
TOKEN = "hf_canaryTokenOfTheFront4711"
PROMPT = "prompt-canary-of-another-person-90817"
HEADERS = {"Authorization": "Bearer " + KEY}


def memory_of(pid):
    """All that a process may write to: heap, stacks, anonymous maps, data of its libraries."""
    parts = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line)
            begin, end = int(found[1], 16), int(found[2], 16)
            if not found[3].startswith("rw") or "[vvar" in line:
                continue
            while begin < end:
                try:
                    memory.seek(begin)
                    part = memory.read(min(end - begin, 16 << 20))
                except OSError:
                    break
                if not part:
                    break
                parts.append(part)
                begin += len(part)
    return b"\0".join(parts)


@pytest.fixture(scope="module")
def two(tmp_path_factory, model_file):
    """One server, two workers of the same weights under two names."""
    folder = tmp_path_factory.mktemp("two")
    keys = folder / "keys"
    keys.write_text(KEY + "\n")
    keys.chmod(0o600)
    other = folder / "other" / "other.gguf"
    other.parent.mkdir()
    other.symlink_to(model_file("smollm2"))
    with Server(folder, model_file("smollm2"), "--context", "256", "--batch", "2", "--api-key-file", keys, "--allow-models", other,
                env={"HF_TOKEN": TOKEN, "AWS_SECRET_ACCESS_KEY": TOKEN}) as running:
        names = [m["id"] for m in running.get("/v1/models", headers=HEADERS).json()["data"]]
        assert len(names) == 2 and names[1] == "other", names
        running.names = names
        (first,) = running.workers()
        assert ask(running, names[1], "Hello").status == 200
        (second,) = set(running.workers()) - {first}
        running.pids = [first, second]
        yield running


def ask(server, model, content):
    return server.post("/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 4,
                                                "temperature": 0}, headers=HEADERS)


def test_no_secret_of_the_front_is_in_a_worker(two):
    assert ask(two, two.names[0], PROMPT).status == 200
    session = two.token()
    front = memory_of(two.process.pid)
    assert KEY.encode() in front and session.encode() in front, "the search finds nothing where there is something"
    for pid in two.pids:
        seen = memory_of(pid)
        for name in ("environ", "cmdline"):
            seen += pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
        assert b"hearth" in seen
        for secret in (KEY, TOKEN, session):
            assert secret.encode() not in seen, f"{secret} is in worker {pid}"
    assert PROMPT.encode() not in memory_of(two.pids[1]), "the prompt of one model's client is in another's worker"


def test_every_thread_of_a_worker_is_in_the_sandbox(two):
    for pid in two.pids:
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        assert len(tasks) >= 4
        for task in tasks:
            status = (task / "status").read_text()
            assert re.search(r"^Seccomp:\s+2$", status, re.M) and re.search(r"^NoNewPrivs:\s+1$", status, re.M), status
            assert int(re.search(r"^Seccomp_filters:\s+(\d+)$", status, re.M)[1]) >= 2, "one for the load, one for serving"
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        assert re.search(r"^Max core file size\s+0\s+0\s", limits, re.M), limits
        sockets = [name for name in open_files(pid) if name.startswith("socket:")]
        assert len(sockets) == 1, f"the wire alone: {sockets}"


@pytest.mark.full
def test_a_worker_in_the_sandbox_keeps_repacked_weights(tmp_path, model_file):
    """The one folder that it may write to while it loads."""
    with Server(tmp_path, model_file("qwen-0.5b"), "--context", "256", "--batch", "2", env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as running:
        assert running.chat("Hi", max_tokens=2).status == 200
        log = "".join(running.log)
    assert list((tmp_path / "cache" / "hearth" / "packed").glob("*")), log


@pytest.mark.parametrize("stopped", [False, True])
def test_workers_end_with_a_killed_front(tmp_path, model_file, stopped):
    server = Server(tmp_path, model_file("smollm2"), "--context", "256", "--batch", "2").start()
    (worker,) = server.workers()
    if stopped:
        os.kill(worker, signal.SIGSTOP)
    server.process.kill()
    server.process.wait()
    deadline = time.monotonic() + 2
    while pathlib.Path(f"/proc/{worker}").exists() and "Z" not in pathlib.Path(f"/proc/{worker}/stat").read_text().split(") ")[1][:1]:
        assert time.monotonic() < deadline, f"worker {worker} lives on"
        time.sleep(0.02)
    # what the killed one left behind is no obstacle.
    with Server(tmp_path, model_file("smollm2"), "--context", "256", "--batch", "2") as again:
        assert again.get("/health").status == 200
