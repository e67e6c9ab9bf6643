"""R-15: clients that send or read slowly, or come and go, hinder nobody and leave nothing.

HEARTH_SLOW_SECONDS sets how long slowhttptest is at it; 60 by default.
"""
import os
import shutil
import socket
import statistics
import struct
import subprocess
import threading
import time

import pytest
from running import Server
from soak_test import idle_figures
from streams import Asking

SECONDS = int(os.environ.get("HEARTH_SLOW_SECONDS") or 60)
pytestmark = [pytest.mark.full, pytest.mark.timeout(SECONDS + 1200)]

# 1,200 connections at once, more than the 1,024 that the server has.
ATTACKS = {
    "slow heads": ["-H", "-c", "500", "-i", "2", "-x", "24"],
    "slow bodies": ["-B", "-c", "500", "-i", "5", "-s", "8192", "-f", "application/json"],
    "slow readers": ["-X", "-c", "200", "-w", "10", "-y", "20", "-n", "5", "-z", "32", "-k", "10"],
}
PATHS = {"slow heads": "/", "slow bodies": "/v1/chat/completions", "slow readers": "/openapi.json"}


@pytest.fixture(scope="module")
def besieged(tmp_path_factory, model_file):
    with Server(tmp_path_factory.mktemp("slow"), model_file("smollm2"), "--context", "512", "--batch", "4") as running:
        yield running


def first_token_seconds(server):
    """Of one healthy client on a new connection."""
    begin = time.monotonic()
    with Asking(server, {"messages": [{"role": "user", "content": "Hi"}], "temperature": 0, "max_tokens": 2, "stream": True}) as asking:
        assert asking.answer().status == 200, asking.answer().read()
        events = asking.events()
        next(events), next(events)
        seconds = time.monotonic() - begin
        assert [*events][-1] == b"[DONE]"
    return seconds


def test_slow_clients_do_not_hinder_others(besieged):
    assert shutil.which("slowhttptest"), "the package slowhttptest is not installed"
    first_token_seconds(besieged)
    pids = [besieged.process.pid, *besieged.workers()]
    before = idle_figures(besieged, pids)
    idle = [first_token_seconds(besieged) for _ in range(200)]
    attackers = {}
    for name, flags in ATTACKS.items():
        # What the attackers themselves take of the processor is not what is asked.
        command = ["nice", "-n", "19", "slowhttptest", *flags, "-r", "200", "-l", str(SECONDS), "-u", besieged.url + PATHS[name], "-p", "10", "-v", "1"]
        attackers[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    outputs = {}
    readers = [threading.Thread(target=lambda n=name, p=process: outputs.update({n: p.communicate()[0]})) for name, process in attackers.items()]
    for reader in readers:
        reader.start()
    beside, most = [], 0
    try:
        while any(process.poll() is None for process in attackers.values()):
            beside.append(first_token_seconds(besieged))
            assert besieged.get("/health").status == 200
            most = max(most, len(os.listdir(f"/proc/{besieged.process.pid}/fd")))
    finally:
        for process in attackers.values():
            process.kill() if process.poll() is None else None
        for reader in readers:
            reader.join()
    assert most > 300, (most, outputs)  # they were there
    p99 = lambda times: sorted(times)[int(len(times) * 0.99)]  # noqa: E731
    print(f"first token: idle median {statistics.median(idle):.3f} p99 {p99(idle):.3f} s, beside {most} descriptors "
          f"{statistics.median(beside):.3f}, {p99(beside):.3f} s, {len(beside)} answers")
    assert len(beside) >= 100 and p99(beside) <= 1.5 * p99(idle)
    assert idle_figures(besieged, pids) == before, "threads or descriptors"


def test_coming_and_going_leaves_nothing(besieged):
    """2,000 connections that end at once, then a hundred that never say a word: those end within the time for a head."""
    pids = [besieged.process.pid, *besieged.workers()]
    before = idle_figures(besieged, pids)
    for n in range(2000):
        connection = socket.create_connection((besieged.host, besieged.port))
        if n % 2:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if n % 3 == 0:
            connection.sendall(b"GET /he")
        connection.close()
    assert besieged.get("/health").status == 200
    silent = [socket.create_connection((besieged.host, besieged.port)) for _ in range(100)]
    for connection in silent:
        connection.settimeout(60)
        assert connection.recv(1) == b""
        connection.close()
    assert idle_figures(besieged, pids) == before, "threads or descriptors"
