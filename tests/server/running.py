"""A running `hearth serve`, and requests to it without any client library."""
import contextlib
import http.client
import json
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth").absolute()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def events(self):
        """(event name, data) of a stream of server-sent events; comments are left out."""
        found = []
        for block in self.body.decode().split("\n\n"):
            name, data = "", []
            for line in block.split("\n"):
                if line.startswith("event: "):
                    name = line[7:]
                if line.startswith("data: "):
                    data.append(line[6:])
            if data:
                found.append((name, "\n".join(data)))
        return found


class Server:
    def __init__(self, home, *args, env=None, wrap=()):
        """wrap: words in front of the command."""
        self.wrap = [str(w) for w in wrap]
        self.home = pathlib.Path(home)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(pathlib.Path.home() / ".cache")),
            "HEARTH_THREADS": os.environ.get("HEARTH_THREADS", "1"),
            **{name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")},
            **(env or {}),
        }
        self.args = [str(a) for a in args]
        self.lines = queue.Queue()
        self.log = []
        self.process = self.reader = None
        self.url = None

    def start(self, timeout=120):
        command = [*self.wrap, BINARY, "serve", *self.args]
        if not any(a.startswith("--port") or a.startswith("--host") and "/" in a for a in self.args):
            command += ["--port", "0"]
        self.process = subprocess.Popen(command, env=self.env, cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                line = self.lines.get(timeout=0.2)
            except queue.Empty:
                if self.process.poll() is not None:
                    break
                continue
            found = re.search(r" is ready at (\S+)", line)
            if found:
                self.url = found.group(1)
                if self.url.startswith("http://"):
                    self.host, self.port = self.url[7:].rsplit(":", 1)
                    self.port = int(self.port)
                return self
        self.stop()
        raise AssertionError(f"the server did not start: {self.log}")

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)
            self.lines.put(line)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.reader:
            self.reader.join(10)
        for number, line in enumerate(self.log):
            if re.search(r"(WARNING|ERROR): \w+Sanitizer", line):
                raise AssertionError("".join(self.log[number:number + 80]))
        return self.process.returncode if self.process else None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def token(self):
        return (self.home / "run" / "hearth" / "session.token").read_text().strip()

    def workers(self):
        """Process ids of the workers."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for file in children for pid in file.read_text().split()]

    def connection(self, timeout=120, source=None):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout, source_address=source and (source, 0))

    def request(self, method, path, body=None, headers=None, timeout=120, source=None):
        """source: the address of this machine that the call comes from; wrong keys of one address cost time."""
        connection = self.connection(timeout, source)
        try:
            headers = dict(headers or {})
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            if body is not None:
                headers.setdefault("Content-Type", "application/json")
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def chat(self, content="Why is the sky blue?", **fields):
        return self.post("/v1/chat/completions",
                         {"messages": [{"role": "user", "content": content}], "temperature": 0, "max_tokens": 16, **fields})


def open_files(pid):
    """What its descriptors lead to; those that close meanwhile are left out."""
    found = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(fd))
    return found


@contextlib.contextmanager
def raw(server):
    connection = socket.create_connection((server.host, server.port), timeout=60)
    try:
        yield connection
    finally:
        connection.close()


def write_keys(path, *keys):
    path.write_text("".join(k + "\n" for k in keys))
    path.chmod(0o600)
    return path


def streamed_text(answer):
    """Content of a chat stream, joined; the stream must be whole."""
    events = answer.events()
    assert events[-1][1] == "[DONE]", events[-3:]
    text = ""
    for _, data in events[:-1]:
        for choice in json.loads(data)["choices"]:
            text += choice["delta"].get("content") or ""
    return text
