"""A WebSocket client of our own (RFC 6455), down to the frame, and conversations of /ws/chat over it."""
import base64
import json
import os
import socket
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The upgrade was answered with another status than 101."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


class Closed(Exception):
    """The connection has ended: `code` of the close frame, or 1006 without one."""

    def __init__(self, code, reason=""):
        super().__init__(f"closed with {code} {reason}")
        self.code, self.reason = code, reason


class WebSocket:
    def __init__(self, server, headers, path="/ws/chat", receive_bytes=None):
        self.connection = socket.socket()
        if receive_bytes:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.connection.settimeout(120)
        self.connection.connect((server.host, server.port))
        wanted = {"Host": f"127.0.0.1:{server.port}", "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                  "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in wanted.items())
        self.connection.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self._receive()
        self.head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        status = int(self.head.split(b" ", 2)[1])
        if status != 101:
            self.drop()
            raise Refused(status)

    def _receive(self):
        piece = self.connection.recv(1 << 16)
        if not piece:
            raise Closed(1006)
        self.buffer += piece

    def _take(self, count):
        while len(self.buffer) < count:
            self._receive()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send_frame(self, opcode, payload=b"", last=True, masked=True):
        if isinstance(payload, str):
            payload = payload.encode()
        head, bit = bytes([(0x80 if last else 0) | opcode]), 0x80 if masked else 0
        if len(payload) < 126:
            head += bytes([bit | len(payload)])
        elif len(payload) < 1 << 16:
            head += struct.pack(">BH", bit | 126, len(payload))
        else:
            head += struct.pack(">BQ", bit | 127, len(payload))
        if not masked:
            return self.connection.sendall(head + payload)
        mask = os.urandom(4)
        key = int.from_bytes(mask * (len(payload) // 4 + 1), "big") >> 8 * (4 - len(payload) % 4)
        self.connection.sendall(head + mask + (int.from_bytes(payload, "big") ^ key).to_bytes(len(payload), "big"))

    def receive_frame(self):
        """(opcode, payload); the server sends whole messages without a mask."""
        first, second = self._take(2)
        assert first & 0x80 and not second & 0x80, (first, second)
        count = second & 127
        if count > 125:
            count = int.from_bytes(self._take(2 if count == 126 else 8), "big")
        return first & 15, self._take(count)

    def receive(self):
        """The next text message. Throws Closed behind the last one; answers pings and closes."""
        while True:
            try:
                opcode, payload = self.receive_frame()
            except ConnectionError:
                raise Closed(1006) from None
            if opcode == TEXT:
                return payload.decode()
            if opcode == PING:
                self.send_frame(PONG, payload)
            if opcode == CLOSE:
                code = int.from_bytes(payload[:2], "big") if payload else 1005
                try:
                    self.send_frame(CLOSE, payload[:2])
                except ConnectionError:
                    pass
                raise Closed(code, payload[2:].decode())

    def drop(self, reset=False):
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.drop()


def closes(socket):
    """The code that it is closed with; what comes before is passed over."""
    try:
        while True:
            socket.receive()
    except Closed as end:
        return end.code


class Chat(WebSocket):
    """Frames as dicts; every one of the server's must carry the number behind the last one's."""

    def __init__(self, server, token=None, **more):
        super().__init__(server, {"Authorization": "Bearer " + (token or server.token())}, **more)
        self.seq, self.frames = 0, 0
        self.ready = self.next()
        assert self.ready["type"] == "ready", self.ready
        self.conversation = self.ready["conversation"]

    def next(self):
        frame = json.loads(self.receive())
        assert frame["seq"] == self.seq + 1, (self.seq, frame)
        self.seq = frame["seq"]
        return frame

    def send(self, type, **fields):
        """Sends the frame; its id."""
        self.frames += 1
        fields.setdefault("id", f"{id(self)}-{self.frames}")
        self.send_frame(TEXT, json.dumps({"type": type, **fields}))
        return fields["id"]

    def until(self, *types):
        """The next frame of one of these types, and those before it."""
        before = []
        while True:
            frame = self.next()
            if frame["type"] in types:
                return frame, before
            before.append(frame)

    def answer_to(self, type, **fields):
        """The ack or error of a frame."""
        sent = self.send(type, **fields)
        frame, _ = self.until("ack", "error")
        assert frame["id"] == sent, frame
        return frame

    def turn(self, type="prompt", **fields):
        """Sends a frame that begins a turn; the turn to its end."""
        reply = self.answer_to(type, **fields)
        assert reply["type"] == "ack", reply
        return self.read_turn()

    def read_turn(self):
        return Turn(self)


class Turn:
    def __init__(self, chat):
        self.start, self.before = chat.until("turn_start")
        self.end, self.frames = chat.until("turn_end")
        assert all(f.get("turn", self.start["turn"]) == self.start["turn"] for f in self.frames + [self.end])
        self.message, self.reason = self.start["message"], self.end["reason"]
        self.text = "".join(f["text"] for f in self.frames if f["type"] == "text_delta")
        self.errors = [f for f in self.frames if f["type"] == "error"]
