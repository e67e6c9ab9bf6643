"""`hearth ps`: what a server of two models, a running and a waiting request looks like to a person and to a script."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from running import BINARY, Server  # noqa: E402

FIRST, SECOND = "toys/first", "toys/second"


@pytest.fixture(scope="module")
def server(tmp_path_factory, model_file):
    home = tmp_path_factory.mktemp("ps")
    for name in (FIRST, SECOND):
        snapshot = home / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / "1"
        snapshot.mkdir(parents=True)
        shutil.copy(model_file("smollm2"), snapshot / "model.gguf")
        (snapshot.parents[1] / "refs").mkdir()
        (snapshot.parents[1] / "refs" / "main").write_text("1")
    with Server(home, FIRST, "--context", "2048", "--batch", "1", "--ttl", "1h", env={"HF_HUB_CACHE": str(home / "hub")}) as running:
        yield running


def ps(server, *args):
    return subprocess.run([BINARY, "ps", *args], env=server.env, capture_output=True, text=True, timeout=60)


def document(server):
    return json.loads(ps(server, "--json").stdout)


def model(server, name=FIRST):
    return {m["model"]: m for m in document(server)["models"]}[name]


def table(server):
    """Rows by model, each a mapping of the titles to words."""
    lines = ps(server).stdout.splitlines()
    titles = lines[0].split()
    rows = {}
    for line in lines[1:]:
        cells = re.split(r"\s{2,}", line)
        assert len(cells) == len(titles), (lines[0], line)
        rows[cells[0]] = dict(zip(titles, cells))
    return rows


def until(what, seconds=30):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_idle_model_and_its_server(server):
    row = table(server)[FIRST]
    assert (row["STATE"], row["DEVICE"], row["CONTEXT"], row["REQUESTS"], row["UNLOAD"], row["RESTARTS"]) == (
        "ready", "cpu", "2048", "idle", "never", "0")  # fmt: skip
    assert re.fullmatch(r"[\d.]+ [MG]B", row["SIZE"])
    told = ps(server)
    assert told.stderr == f"hearth: the server is at {server.url} (process {server.process.pid})\n"
    assert ps(server, "--quiet").stderr == ""
    everything = document(server)
    assert everything["server"] == {"url": server.url, "pid": server.process.pid}
    assert everything["stats"]["batch"]["configured"] == 1
    first = everything["models"][0]
    assert first["pid"] in server.workers() and first["batch"] == 1 and first["threads"] == 1
    assert first["memory_bytes"] > first["weights_bytes"] > 10**7


@pytest.mark.parametrize("stream", [True, False])
def test_requests_that_run_and_wait_and_their_speed(server, stream):
    endless = {"max_tokens": 400, "logit_bias": {"2": -100, "0": -100}, "stream": stream}
    asking = [threading.Thread(target=server.chat, kwargs=endless) for _ in range(2)]
    for thread in asking:
        thread.start()
    until(lambda: (m := model(server))["running"] == 1 and m["waiting"] == 1)
    for thread in asking:
        thread.join()
    idle = model(server)
    assert idle["running"] == idle["waiting"] == 0 and idle["tokens_per_second"] > 0
    assert float(table(server)[FIRST]["TOK/S"]) > 0


def test_another_model_goes_after_its_time(server):
    assert server.chat(model=SECOND, keep_alive="10m").status == 200
    row = table(server)[SECOND]
    assert row["UNLOAD"] == "in 10 min" and row["STATE"] == "ready"
    assert 0 < model(server, SECOND)["unload_in_ms"] <= 600_000
    assert model(server)["unload_in_ms"] is None
    control = {"headers": {"Authorization": f"Bearer {server.token()}"}}
    server.post("/api/models/unload", {"model": SECOND}, **control)
    until(lambda: SECOND not in table(server))


def test_asking_keeps_no_model_awake(server):
    assert server.chat(model=SECOND, keep_alive="2s").status == 200
    until(lambda: SECOND not in table(server), 20)


def test_a_worker_that_died_shows(server):
    os.kill(model(server)["pid"], signal.SIGKILL)
    until(lambda: FIRST in (rows := table(server)) and rows[FIRST]["STATE"] == "ready" and rows[FIRST]["RESTARTS"] == "1")
    assert model(server)["restarts"] == 1
