"""As a service: what systemd is told and when, sockets that it hands over, and the units in contrib/ (dependencies 5.3)."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from running import BINARY, ROOT, Server

SMALL = ("--context", "256", "--batch", "2")


class Manager:
    """The end of NOTIFY_SOCKET where systemd would listen."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(30)

    def next(self):
        return self.socket.recv(4096).decode().split("\n")

    def until(self, state):
        """All messages up to the first one that says so."""
        seen = [self.next()]
        while state not in seen[-1]:
            seen.append(self.next())
        return seen

    def close(self):
        self.socket.close()


@pytest.fixture
def manager(tmp_path):
    made = Manager(str(tmp_path / "notify"))
    yield made
    made.close()


def test_the_manager_hears_of_every_change(tmp_path, model_file, manager):
    server = Server(tmp_path, model_file("smollm2"), *SMALL, env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
    with server:
        ready = manager.next()
        assert ready[0] == "READY=1" and server.url in ready[1], ready
        assert server.get("/ready").status == 200, "it said so"
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        server.process.send_signal(signal.SIGHUP)
        reloading = manager.next()
        assert reloading[0] == "RELOADING=1", reloading
        stamp = int(re.fullmatch(r"MONOTONIC_USEC=(\d+)", reloading[1])[1])
        assert before <= stamp <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        assert manager.next()[0] == "READY=1"
        server.process.send_signal(signal.SIGTERM)
        assert manager.next() == ["STOPPING=1"]
        assert server.process.wait(30) == 0


def test_an_abstract_socket_is_one_too(tmp_path, model_file):
    name = f"hearth-test-{os.getpid()}"
    manager = Manager("\0" + name)
    with Server(tmp_path, model_file("smollm2"), *SMALL, env={"NOTIFY_SOCKET": "@" + name}):
        assert manager.next()[0] == "READY=1"
    manager.close()


def test_signs_of_life_come_while_the_front_lives(tmp_path, model_file, manager):
    """They are the front's I/O thread's, not a timer's: stopped, it sends none."""
    with Server(tmp_path, model_file("smollm2"), *SMALL,
                env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}) as server:
        manager.until("READY=1")
        assert [manager.next() for _ in range(3)] == [["WATCHDOG=1"]] * 3
        server.process.send_signal(signal.SIGSTOP)
        try:
            manager.socket.settimeout(0.5)
            with pytest.raises(TimeoutError):
                for _ in range(20):  # those on their way
                    manager.next()
        finally:
            server.process.send_signal(signal.SIGCONT)
        manager.socket.settimeout(30)
        assert manager.next() == ["WATCHDOG=1"]


def test_signs_of_life_for_another_process_are_not_sent(tmp_path, model_file, manager):
    with Server(tmp_path, model_file("smollm2"), *SMALL,
                env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}) as server:
        manager.until("READY=1")
        server.process.send_signal(signal.SIGHUP)
        assert [line for message in manager.until("READY=1") for line in message if line == "WATCHDOG=1"] == []


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGHUP, signal.SIGINT]])
def test_a_load_does_not_hold_up_the_end(tmp_path, model_file, manager, signals):
    """The worker is stopped while it loads: the server ends all the same, and says so."""
    server = Server(tmp_path, model_file("smollm2"), *SMALL, "--port", "0", env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
    process = subprocess.Popen([BINARY, "serve", *server.args], env=server.env, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    server.process = process
    worker = None
    while worker is None:
        assert process.poll() is None, process.stderr.read()
        for pid in server.workers():
            if b"\0worker\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():  # else it is being started
                os.kill(pid, signal.SIGSTOP)
                worker = pid
    for s in signals:
        process.send_signal(s)
    assert process.wait(20) == 0, process.stderr.read()
    assert not pathlib.Path(f"/proc/{worker}").exists()
    assert ["STOPPING=1"] in manager.until("STOPPING=1")


def activated(tmp_path, listener, *args, env=None):
    """hearth serve with that socket at descriptor 3, as systemd starts it: not yet told that it is ready."""
    server = Server(tmp_path, *args, env=env)
    command = ["/bin/bash", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3<&%d' % listener.fileno(), BINARY, "serve", *server.args]
    server.process = subprocess.Popen(command, env=server.env, cwd=tmp_path, pass_fds=[listener.fileno()], stderr=subprocess.PIPE, text=True)
    return server


def test_a_socket_that_the_manager_opened_is_served(tmp_path, model_file):
    """A client that came before the server waits for it, and is not turned away."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    early = socket.create_connection(("127.0.0.1", port))
    early.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    server = activated(tmp_path, listener, model_file("smollm2"), *SMALL)
    try:
        listener.close()
        early.settimeout(60)
        assert b"200 OK" in early.recv(4096)
        for line in server.process.stderr:
            if "is ready at" in line:
                break
        assert f"http://127.0.0.1:{port}" in line
        server.host, server.port = "127.0.0.1", port
        assert server.chat("Hi", max_tokens=2).status == 200
        listed = subprocess.run([BINARY, "ps", "--json"], env=server.env, capture_output=True, text=True)
        assert listed.returncode == 0, listed.stderr
    finally:
        server.stop()
    assert server.process.returncode == 0


def test_a_unix_socket_that_the_manager_opened_stays_its_own(tmp_path, model_file):
    path = tmp_path / "hearth.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    server = activated(tmp_path, listener, model_file("smollm2"), *SMALL)
    try:
        listener.close()
        for line in server.process.stderr:
            if "is ready at" in line:
                break
        assert f"unix:{path}" in line, line
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in client.recv(4096)
    finally:
        server.stop()
    assert path.exists(), "the manager's file is not the server's to remove"


def test_a_handed_over_socket_that_others_reach_needs_a_key(tmp_path, model_file):
    listener = socket.create_server(("0.0.0.0", 0))
    server = activated(tmp_path, listener, model_file("smollm2"), *SMALL)
    listener.close()
    said = server.process.communicate(timeout=60)[1]
    assert server.process.returncode == 2 and "lets other machines in, and there is no key" in said, said


def test_callers_from_elsewhere_get_the_named_model_alone(tmp_path, model_file):
    """As with --host 0.0.0.0: another model of the store is not theirs to load."""
    keys = tmp_path / "keys"
    keys.write_text("key-for-the-socket-0123\n")
    keys.chmod(0o600)
    listener = socket.create_server(("0.0.0.0", 0))
    port = listener.getsockname()[1]
    store = tmp_path / "hub"
    env = {**os.environ, "HF_HUB_CACHE": str(store)}
    subprocess.run([BINARY, "import", model_file("smollm2"), "--name", "org/other"], env=env, check=True, capture_output=True)
    server = activated(tmp_path, listener, model_file("smollm2"), *SMALL, "--api-key-file", keys, env={"HF_HUB_CACHE": str(store)})
    try:
        listener.close()
        for line in server.process.stderr:
            if "is ready at" in line:
                break
        server.host, server.port = "127.0.0.1", port
        refused = server.post("/v1/chat/completions", {"model": "org/other", "messages": [{"role": "user", "content": "Hi"}]},
                              headers={"x-api-key": "key-for-the-socket-0123"})
        assert refused.status == 404, refused.body
    finally:
        server.stop()


# --- the units ---

UNITS = {"hearth.service": "--user", "hearth-system.service": "--system", "hearth.socket": "--user"}


def settings(name):
    lines = (ROOT / "contrib" / name).read_text().splitlines()
    return {k: v for k, v in (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))}


@pytest.mark.parametrize("name", UNITS)
def test_systemd_finds_no_fault_with_the_unit(tmp_path, name):
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    for other in UNITS:
        text = (ROOT / "contrib" / other).read_text()
        text = re.sub(r"^ExecStart=\S+", f"ExecStart={BINARY}", text, flags=re.M)
        (tmp_path / other.replace("hearth-system.service", "hearth-system.service")).write_text(text)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_LOG_LEVEL": "warning"}
    done = subprocess.run(["systemd-analyze", "verify", UNITS[name], "--man=no", str(tmp_path / name)], env=env, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "hearth" in line]
    assert done.returncode == 0 and not said, done.stderr


@pytest.mark.parametrize("name", ["hearth.service", "hearth-system.service"])
def test_the_unit_asks_for_what_the_server_gives(name):
    unit = settings(name)
    assert unit["Type"] == "notify" and int(unit["WatchdogSec"]) >= 10
    assert unit["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert int(unit["TimeoutStopSec"]) > 30, "the server cuts what is open itself, within 30 s"
    assert unit["NoNewPrivileges"] == "yes" and unit["ProtectSystem"] == "strict" and unit["UMask"] == "0077"
    assert unit["MemoryHigh"] and unit["ReadWritePaths" if name == "hearth.service" else "StateDirectory"]
    assert ("DynamicUser" in unit) == (name == "hearth-system.service")
    words = unit["ExecStart"].split()
    help_text = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    assert words[1] == "serve"
    for word in words[2:]:
        if word.startswith("--"):
            assert word.split("=")[0] in help_text, word
