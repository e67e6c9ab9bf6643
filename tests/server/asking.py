"""Those who ask in tests of limits: streams that go on, refusals, and how often each limit was passed."""
import json
import re
import socket
import time

KEY, OTHER = "key-of-many-streams-0123", "key-of-another-one-45678"
BEARER = {"Authorization": "Bearer " + KEY}


def passed(server):
    while (answer := server.get("/metrics", headers=BEARER)).status == 503:
        time.sleep(0.02)  # all connections are taken, in one of the tests
    text = answer.body.decode()
    return {name: int(count) for name, count in re.findall(r'^hearth_limit_refusals_total\{limit="(\S+)"\} (\d+)$', text, re.M)}


def option(values, unit=""):
    return ",".join(f"{name}={value}{unit}" for name, value in values.items())


def start(server, key=None):
    """A chat stream that goes on until its client closes it."""
    body = json.dumps({"messages": [{"role": "user", "content": "Count for ever."}], "max_tokens": 900, "temperature": 0, "stream": True,
                       "logit_bias": {str(i): -100 for i in (0, 2)}}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    if key:
        head += f"Authorization: Bearer {key}\r\n"
    connection = socket.create_connection((server.host, server.port), timeout=60)
    connection.sendall(head.encode() + b"\r\n" + body)
    return connection


def refusal(connection):
    """Status and head of an answer that comes at once."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return int(data[9:12]), data.split(b"\r\n\r\n")[0].decode()


def is_silent(connection, seconds=0.3):
    connection.settimeout(seconds)
    try:
        return connection.recv(1, socket.MSG_PEEK) is None
    except TimeoutError:
        return True
    finally:
        connection.settimeout(60)
