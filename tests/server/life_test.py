"""Streams beside each other, clients that vanish, workers that die, the end of the server (R-06, R-17, R-18, R-30)."""
import json
import os
import random
import signal
import socket
import struct
import threading
import time

import pytest
from running import Server, raw, streamed_text

PROMPTS = [f"Write about the number {i} and what canary-{i * 7919} means to it." for i in range(16)]


def tokens_of(i):
    return 6 + i % 11


@pytest.fixture(scope="module")
def alone(server):
    """The greedy answer to each prompt, asked one at a time."""
    return [server.chat(p, max_tokens=tokens_of(i)).json()["choices"][0]["message"]["content"] for i, p in enumerate(PROMPTS)]


def test_streams_are_exact_beside_each_other(server, alone):
    """R-17: every stream equals its solo run, usage equals counted tokens, no event is cut inside a character."""
    failures, done = [], []
    deadline = time.monotonic() + 15

    def client(number):
        rng = random.Random(number)
        while time.monotonic() < deadline and not failures:
            i = rng.randrange(len(PROMPTS))
            try:
                answer = server.chat(PROMPTS[i], max_tokens=tokens_of(i), stream=rng.random() < 0.8)
                document = answer.json() if answer.headers["content-type"] == "application/json" else None
                text = document["choices"][0]["message"]["content"] if document else streamed_text(answer)
                usage = document["usage"] if document else json.loads(answer.events()[-2][1])["usage"]
                if text != alone[i] or usage["completion_tokens"] != tokens_of(i):
                    failures.append((i, text, alone[i], usage))
                done.append(i)
            except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                failures.append((i, repr(error)))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[:3]
    assert len(done) >= 16


def settled(server, within=5.0):
    """Rows and open requests once all is quiet."""
    deadline = time.monotonic() + within
    while True:
        stats = server.get("/stats").json()
        batch = stats["batch"]
        if batch["active_rows"] == 0 and batch["pending_rows"] == 0 or time.monotonic() > deadline:
            return batch
        time.sleep(0.02)


def test_a_client_that_goes_away_ends_its_request_and_no_other(server, alone):
    """R-18: at random moments, by FIN or RST, streamed or not."""
    rng = random.Random(1)
    for n in range(200):
        body = json.dumps({"messages": [{"role": "user", "content": "word " * rng.randrange(1, 700)}], "max_tokens": 2000, "temperature": 0,
                           "stream": rng.random() < 0.5}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with raw(server) as connection:
            connection.sendall(head.encode() + body)
            time.sleep(rng.choice([0, 0.001, 0.01, 0.05, 0.1]))
            if rng.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if n % 50 == 25:
            i = rng.randrange(len(PROMPTS))
            assert streamed_text(server.chat(PROMPTS[i], max_tokens=tokens_of(i), stream=True)) == alone[i]
    batch = settled(server)
    assert batch["active_rows"] == 0 and batch["pending_rows"] == 0, batch


def test_a_cancelled_row_is_free_within_a_step(server):
    body = json.dumps({"messages": [{"role": "user", "content": "Count for ever."}], "max_tokens": 2000, "temperature": 0, "stream": True,
                       "logit_bias": {}}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with raw(server) as connection:
        connection.sendall(head.encode() + body)
        assert b"200 OK" in connection.recv(4096)
        assert server.get("/stats").json()["batch"]["active_rows"] == 1
    assert settled(server, 2)["active_rows"] == 0


@pytest.fixture
def mortal(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), "--context", "1024", "--batch", "8") as running:
        yield running


def test_a_worker_that_dies_fails_its_requests_and_comes_back(mortal):
    """The front answers all the time; streams end with an error event; the next request succeeds."""
    for _ in range(4):
        (worker,) = mortal.workers()
        answers, slowest = [], 0.0

        def stream():
            answers.append(mortal.chat("Tell a very long story.", max_tokens=900, stream=True))

        threads = [threading.Thread(target=stream) for _ in range(3)]
        for t in threads:
            t.start()
        time.sleep(0.4)
        os.kill(worker, signal.SIGKILL)
        for _ in range(20):
            begin = time.monotonic()
            assert mortal.get("/health").status == 200
            slowest = max(slowest, time.monotonic() - begin)
            time.sleep(0.01)
        for t in threads:
            t.join()
        for answer in answers:
            if answer.status == 503:
                assert answer.json()["error"]["code"] == "worker_lost"
            elif answer.events()[-1][1] != "[DONE]":
                assert json.loads(answer.events()[-1][1])["error"]["code"] == "worker_lost"
        assert mortal.chat("Hi", max_tokens=2).status == 200


def test_the_end_lets_streams_finish_and_takes_no_new_ones(tmp_path, model_file):
    server = Server(tmp_path, model_file("smollm2"), "--context", "512").start()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(server.chat("Tell a story.", max_tokens=60, stream=True)))
    thread.start()
    time.sleep(0.3)
    server.process.send_signal(signal.SIGTERM)
    thread.join()
    assert streamed_text(answers[0])
    assert server.process.wait(30) == 0
    with pytest.raises(OSError):
        server.get("/health")


# verbs work beside a server.
def test_commands_beside_a_server(server, hearth):
    env = {"XDG_RUNTIME_DIR": str(server.home / "run"), "HOME": str(server.home), "PATH": os.environ["PATH"]}
    import subprocess
    from running import BINARY

    listed = json.loads(subprocess.run([BINARY, "ps", "--json"], env=env, capture_output=True, text=True, check=True).stdout)
    assert listed["models"][0]["state"] == "ready" and listed["models"][0]["pinned"]
    missing = subprocess.run([BINARY, "stop", "no/such"], env=env, capture_output=True, text=True)
    assert missing.returncode == 3 and "no/such" in missing.stderr
    nowhere = subprocess.run([BINARY, "ps"], env={**env, "XDG_RUNTIME_DIR": str(server.home / "elsewhere")}, capture_output=True, text=True)
    assert nowhere.returncode == 3 and "hearth serve" in nowhere.stderr


def test_prefixes_outlive_the_server(tmp_path, model_file):
    """The disk tier: the same answer behind a restart, its prompt restored instead of evaluated."""
    text = "The harbour lay quiet under the morning fog, and nobody spoke of the ship. " * 24
    usage, answers = [], []
    for _ in range(2):
        with Server(tmp_path, model_file("smollm2"), "--context", "1024", "--disk-cache", tmp_path / "kv") as server:
            document = server.chat(text, max_tokens=8).json()
            usage.append(document["usage"]["prompt_tokens_details"]["cached_tokens"])
            answers.append(document["choices"])
    assert usage[0] == 0 and usage[1] > 300 and answers[0] == answers[1], usage
    files = list((tmp_path / "kv").rglob("*.hkv"))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:-1000])
    with Server(tmp_path, model_file("smollm2"), "--context", "1024", "--disk-cache", tmp_path / "kv") as server:
        document = server.chat(text, max_tokens=8).json()
    assert document["usage"]["prompt_tokens_details"]["cached_tokens"] == 0 and document["choices"] == answers[0]
