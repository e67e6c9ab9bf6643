"""One request on a connection of its own, its answer read event by event as bytes, and ends as rude clients make them."""
import http.client
import json
import pathlib
import re
import socket
import struct
import time


class Asking:
    def __init__(self, server, body, path="/v1/chat/completions", part=1.0, timeout=600):
        """part: how much of the body is sent, of the length that is announced."""
        whole = json.dumps(body).encode()
        self.http = http.client.HTTPConnection(server.host, server.port, timeout=timeout)
        self.http.connect()
        self.http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self.http.sock
        self.http.putrequest("POST", path)
        self.http.putheader("Content-Type", "application/json")
        self.http.putheader("Content-Length", str(len(whole)))
        self.http.endheaders(whole[:int(len(whole) * part)])
        self.response = None

    def answer(self):
        """The answer's head; its body is still to be read."""
        if self.response is None:
            self.response = self.http.getresponse()
        return self.response

    def events(self):
        """The data of each event, as bytes; comments and names are left out."""
        for line in self.answer():
            if line.startswith(b"data: "):
                yield line[6:].rstrip(b"\n")

    def cut(self, reset=False):
        """The end of the connection, now: RST or FIN."""
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self.response is not None:
            self.response.close()
        self.http.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()


def story(rng, words, tokens, streamed):
    """A request of a random length, for an answer of one of `tokens`, streamed in so many of the cases."""
    return {"messages": [{"role": "user", "content": "Tell a story. " + "word " * rng.choice([1, 1, words])}], "temperature": 0,
            "max_tokens": rng.choice(tokens), "stream": rng.random() < streamed}


def end_of(asking, body):
    """How an answer ended, with its error: "whole", "refused" by a 503, or "told" of in the middle of a stream."""
    answer = asking.answer()
    if answer.status == 503:
        error = json.loads(answer.read())["error"]
        assert error["message"], error
        return "refused", error
    assert answer.status == 200, answer.read()
    if not body["stream"]:
        document = json.loads(answer.read())
        assert document["choices"][0]["finish_reason"] in ("stop", "length") and document["usage"]["prompt_tokens"] > 0, document
        return "whole", None
    *_, last = asking.events()
    if last == b"[DONE]":
        return "whole", None
    error = json.loads(last)["error"]
    assert error["message"], last
    return "told", error


def text_of(event):
    """What a chat chunk adds to the answer. The bytes must be UTF-8 by themselves, the text free of halves of characters."""
    added = "".join(c["delta"].get("content") or "" for c in json.loads(event.decode("utf-8"))["choices"])
    added.encode("utf-8")  # a half of a surrogate pair ends here
    return added


def load_of(server):
    """(rows that run or wait, the whole of the figures of the batch)"""
    batch = server.get("/stats").json()["batch"]
    return batch["active_rows"] + batch["pending_rows"], batch


def figures(pids):
    """Threads, descriptors and MiB of each process."""
    rows = []
    for pid in pids:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        number = lambda key: int(re.search(rf"^{key}:\s+(\d+)", status, re.M)[1])  # noqa: E731
        rows.append((number("Threads"), len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())), number("VmRSS") / 1024))
    return rows


def idle_figures(server, pids):
    """Once nothing runs and the server has seen the clients' connections end."""
    deadline, last = time.monotonic() + 60, None
    while True:
        rows = [row[:2] for row in figures(pids)]
        if load_of(server)[0] == 0 and rows == last or time.monotonic() > deadline:
            return rows
        last = rows
        time.sleep(0.5)
