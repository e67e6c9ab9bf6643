"""One request on a connection of its own, its answer read event by event as bytes, and ends as rude clients make them."""
import http.client
import json
import socket
import struct


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


def text_of(event):
    """What a chat chunk adds to the answer. The bytes must be UTF-8 by themselves, the text free of halves of characters."""
    added = "".join(c["delta"].get("content") or "" for c in json.loads(event.decode("utf-8"))["choices"])
    added.encode("utf-8")  # a half of a surrogate pair ends here
    return added


def load_of(server):
    """(rows that run or wait, the whole of the figures of the batch)"""
    batch = server.get("/stats").json()["batch"]
    return batch["active_rows"] + batch["pending_rows"], batch
