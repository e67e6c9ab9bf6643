"""Clients of a completions server: one thread, plain sockets, so that both cores stay with the server.

A burst is N streaming requests of raw completions, sent at once on connections made before; it ends with the last
client's last event. Times are those at which bytes arrive here.
"""

import dataclasses
import json
import re
import selectors
import socket
import time

TEXT = re.compile(rb'"text":\s*"(?!")')  # an event with a piece of the answer in it
USAGE = re.compile(rb'"completion_tokens":\s*(\d+)')
TIMINGS = re.compile(rb'"(?:queue|prefill)_ms":\s*([0-9.eE+-]+)')  # of hearth's own answers
PROMPT = re.compile(rb'"prompt_tokens":\s*(\d+)')
WAIT_S = 600
TICK_S = 1e-6  # of an answer that came in one piece
WORDS = (
    "river stone light winter garden paper window quiet letter morning harbor field copper silver road bridge market "
    "train lamp cloud forest island mirror sugar butter wagon candle velvet summer kitchen ladder pocket meadow thunder"
).split()


class LoadError(RuntimeError):
    """A server refused a request, cut a stream, or answered another number of tokens than was asked for."""


@dataclasses.dataclass
class Burst:
    tokens: int  # of all answers
    seconds: float  # from the first byte sent to the last one read
    ttft_ms: list  # by client: request sent to first piece of text
    added_ms: list  # by client: the same less queue and prefill by the server's own clock; empty where it tells none
    decode_tps: list  # by client: tokens behind the first, by the time since it
    prompt_tokens: int  # of the longest prompt, as the server counts


def prompt(number: int, words: int = 72) -> str:
    """About 90 tokens. The number stands in front: no two prompts share more than a token."""
    start = number * 7919
    chosen = (WORDS[(start * (i + 3) + i * i) % len(WORDS)] for i in range(words))
    return f"{number}{chr(97 + number % 26)}: " + " ".join(chosen) + ". The story begins"


def body(text: str, tokens: int, end_ids) -> dict:
    """Greedy, exactly `tokens` long: the end ids are pushed out of reach, which both servers do by logit_bias."""
    return dict(
        prompt=text, max_tokens=tokens, temperature=0, stream=True, stream_options=dict(include_usage=True),
        logit_bias={str(i): -100 for i in end_ids},
    )  # fmt: skip


class Client:
    """One request on a connection of its own."""

    def __init__(self, host: str, port: int, request: dict):
        content = json.dumps(request).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.bytes = head.encode() + f"Content-Length: {len(content)}\r\n\r\n".encode() + content
        self.socket = socket.create_connection((host, port), timeout=WAIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.read, self.sent, self.first, self.last, self.seen = bytearray(), 0.0, 0.0, 0.0, 0

    def send(self) -> None:
        self.sent = time.perf_counter()
        self.socket.sendall(self.bytes)

    def receive(self) -> bool:
        """Takes what has come; false at the end."""
        piece = self.socket.recv(1 << 16)
        now = time.perf_counter()
        self.read += piece
        if not self.first and (found := TEXT.search(self.read, max(0, self.seen - 16))):
            self.first = now
            self.seen = found.end()
        elif not self.first:
            self.seen = len(self.read)
        if piece:
            self.last = now
        return bool(piece) and b"data: [DONE]" not in self.read[-64:]

    def result(self, tokens: int) -> int:
        """Tokens of its prompt. Throws LoadError where the answer is not whole."""
        if not self.read.startswith(b"HTTP/1.1 200"):
            raise LoadError(f"the server answers {bytes(self.read[:300])!r}")
        counted = USAGE.findall(self.read)
        if b"data: [DONE]" not in self.read or not self.first or not counted:
            raise LoadError(f"a stream ends early: ...{bytes(self.read[-200:])!r}")
        if int(counted[-1]) != tokens:
            raise LoadError(f"the server answered {int(counted[-1])} tokens, asked for were {tokens}")
        return int(PROMPT.findall(self.read)[-1])

    def added_ms(self) -> list:
        told = TIMINGS.findall(self.read)
        return [1e3 * (self.first - self.sent) - sum(float(t) for t in told[-2:])] if told else []

    def text(self) -> bytes:
        """The answer's pieces as they came, escapes and all."""
        return b"".join(re.findall(rb'"text":\s*"((?:[^"\\]|\\.)*)"', self.read))


def burst(host: str, port: int, requests: list, tokens: int) -> Burst:
    clients = [Client(host, port, request) for request in requests]
    waiting = selectors.DefaultSelector()
    try:
        for client in clients:
            waiting.register(client.socket, selectors.EVENT_READ, client)
        begin = time.perf_counter()
        for client in clients:
            client.send()
        open_clients = len(clients)
        while open_clients:
            ready = waiting.select(WAIT_S)
            if not ready:
                raise LoadError(f"nothing came for {WAIT_S} s")
            for key, _ in ready:
                if not key.data.receive():
                    waiting.unregister(key.data.socket)
                    open_clients -= 1
        prompts = [client.result(tokens) for client in clients]
    finally:
        waiting.close()
        for client in clients:
            client.socket.close()
    return Burst(
        tokens=tokens * len(clients),
        seconds=max(c.last for c in clients) - begin,
        ttft_ms=[1e3 * (c.first - c.sent) for c in clients],
        added_ms=[ms for c in clients for ms in c.added_ms()],
        decode_tps=[(tokens - 1) / max(c.last - c.first, TICK_S) for c in clients],
        prompt_tokens=max(prompts),
    )
