"""R-33: nothing of hearth calls anybody. Server, workers and commands run where a process that makes an IPv4 or IPv6 socket is killed by it;
they are reached by a Unix socket. With `--offline` the kernel refuses them such sockets."""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest
from running import BINARY, Server

WITHOUT_INTERNET = [sys.executable, pathlib.Path(__file__).parents[1] / "tools" / "without_internet.py"]
MESSAGES = [{"role": "user", "content": "Hello there."}]


class Local(http.client.HTTPConnection):
    """HTTP by a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def ask(path, method, target, body=None, token=None):
    connection = Local(path)
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, target, body=None if body is None else json.dumps(body), headers=headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_the_guard_ends_who_makes_a_socket(family):
    for code in (f"socket.socket(socket.{family})", f"os.fork() or socket.socket(socket.{family}); os._exit(os.waitstatus_to_exitcode(os.wait()[1]) + 256)"):
        done = subprocess.run([*WITHOUT_INTERNET, sys.executable, "-c", f"import os, socket; {code}"])
        assert done.returncode in (-signal.SIGSYS, 256 - signal.SIGSYS), code
    done = subprocess.run([*WITHOUT_INTERNET, sys.executable, "-c", "import socket; socket.socketpair(); socket.socket(socket.AF_UNIX)"])
    assert done.returncode == 0


def test_a_server_calls_nobody(tmp_path, model_file):
    path = tmp_path / "s"
    environment = {"HTTP_PROXY": "http://192.0.2.1:1", "HTTPS_PROXY": "http://192.0.2.1:1", "HF_HUB_CACHE": str(tmp_path / "hub")}
    with Server(tmp_path, model_file("smollm2"), f"--host={path}", "--context", "256", "--batch", "2", env=environment,
                wrap=WITHOUT_INTERNET) as server:
        workers = server.workers()
        for target, body, status in [("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 2}, 200),
                                     ("/v1/messages", {"messages": MESSAGES, "max_tokens": 2}, 200),
                                     ("/v1/chat/completions", {"messages": MESSAGES, "model": "org/never-heard-of"}, 404),
                                     ("/v1/messages/count_tokens", {"messages": MESSAGES}, 200),
                                     ("/v1/tokenize", {"content": "Hello"}, 200),
                                     ("/signal", {"prompt": "One"}, 200),
                                     ("/v1/embeddings", {"input": "Hello"}, 400)]:
            got, text = ask(path, "POST", target, body)
            assert got == status, (target, got, text)
        image = {"type": "image_url", "image_url": {"url": "http://192.0.2.1/cat.png"}}
        assert ask(path, "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": [image]}]})[0] == 400
        for target in ("/health", "/ready", "/v1/models", "/library", "/stats", "/metrics", "/openapi.json", "/version", "/"):
            got, text = ask(path, "GET", target)
            assert got == 200, (target, got, text)
        got, text = ask(path, "GET", "/api/ps", token=server.token())
        assert got == 200, text
        assert server.workers() == workers
        for words in (["ps"], ["stop"]):
            done = subprocess.run([*WITHOUT_INTERNET, BINARY, *words], env=server.env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, (words, done)
        assert server.process.wait(40) == 0, server.log


def test_with_offline_all_works_and_no_process_may_call(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), "--context", "256", "--batch", "2", "--offline") as server:
        assert server.chat("Hello", max_tokens=2).status == 200
        [worker] = server.workers()
        os.kill(worker, signal.SIGKILL)  # another is started by threads that have given the network up
        assert server.chat("Hello", max_tokens=2).status == 200
        for process in (server.process.pid, *server.workers()):
            for status in pathlib.Path(f"/proc/{process}/task").glob("*/status"):
                lines = dict(line.split(":\t") for line in status.read_text().splitlines() if ":\t" in line)
                assert lines["NoNewPrivs"] == "1" and lines["Seccomp"] == "2", (status, lines)
        assert subprocess.run([BINARY, "stop"], env=server.env, cwd=tmp_path, timeout=60).returncode == 0
        assert server.process.wait(40) == 0, server.log


@pytest.mark.parametrize("words", [
    ["version"], ["ls"], ["doctor"], ["config"], ["fit", "MODEL"], ["show", "MODEL"], ["tokenize", "MODEL", "hello"],
    ["generate", "MODEL", "hello", "-n", "2"], ["bench", "MODEL", "--prompt", "8", "--tokens", "2", "--runs", "1"],
    ["import", "MODEL", "--name", "toys/one", "--link"], ["probe", "cpu"],
], ids=lambda words: words[0])
def test_a_command_calls_nobody(tmp_path, model_file, words):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "hub"), "HEARTH_THREADS": "1",
                   "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(pathlib.Path.home() / ".cache"))}
    stand = {"MODEL": str(model_file("smollm2"))}
    done = subprocess.run([*WITHOUT_INTERNET, BINARY, *[stand.get(w, w) for w in words]], env=environment, cwd=tmp_path, capture_output=True,
                          text=True, timeout=600, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done
