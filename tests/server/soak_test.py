"""R-17 at full size: minutes of streams beside each other, each the one that it is alone.

HEARTH_SOAK_SECONDS sets how long; 600 by default.
"""
import collections
import json
import os
import random
import statistics
import threading
import time

import pytest
from running import Server
from streams import Asking, figures, idle_figures, text_of

SECONDS = float(os.environ.get("HEARTH_SOAK_SECONDS") or 600)
pytestmark = [pytest.mark.full, pytest.mark.timeout(SECONDS + 3000)]

PROMPTS = 32
WORDS = "harbour fog morning ship lantern rope salt gull anchor tide".split()
SIGNS = "🦊👩‍👩‍👧‍👦日本語é𝄞"


def canary(i):
    return f"canary-{104729 + i * 7919}"


def question(i):
    """Of mixed lengths; every other one begins as others do, every fourth one's answer is all characters of many bytes."""
    rng = random.Random(i if i % 2 else 0)
    words = " ".join(rng.choice(WORDS) for _ in range(4 + 12 * (i % 8)))
    body = {"messages": [{"role": "user", "content": f"{words}. Write about {canary(i)}, the number {i}."}], "temperature": 0,
            "max_tokens": 4 + 3 * (i % 13)}
    if i % 4 == 3:
        body |= {"guided_choice": [f"{SIGNS * (1 + i % 3)} {canary(i)}"], "max_tokens": 200}
    if i % 3 == 1:
        body["logprobs"] = True
    return body


# text, tokens by usage, tokens that the answer itself shows where it lists them
Told = collections.namedtuple("Told", "text usage counted")


def counted(choice):
    return len(choice["logprobs"]["content"]) if choice.get("logprobs") else 0


def ask_whole(server, i):
    with Asking(server, question(i)) as asking:
        document = json.loads(asking.answer().read())
        assert asking.answer().status == 200, document
    choice = document["choices"][0]
    return Told(choice["message"]["content"], document["usage"]["completion_tokens"], counted(choice))


def ask_sse(server, i):
    text, tokens, usage = "", 0, None
    with Asking(server, {**question(i), "stream": True}) as asking:
        assert asking.answer().status == 200, asking.answer().read()
        for event in asking.events():
            if event == b"[DONE]":
                return Told(text, usage, tokens)
            chunk = json.loads(event)
            text += text_of(event)
            tokens += sum(counted(c) for c in chunk["choices"])
            usage = chunk["usage"]["completion_tokens"] if chunk.get("usage") else usage
    raise AssertionError(f"the stream ended without its end, behind {text!r}")


# Kinds of clients: how many, and how one of them asks question i. Each returns Told. A further kind is a row more.
CLIENTS = [("sse", 64, ask_sse)]


@pytest.fixture(scope="module")
def soaked(tmp_path_factory, model_file):
    with Server(tmp_path_factory.mktemp("soak"), model_file("smollm2"), "--context", "512", "--batch", "16") as running:
        yield running


def test_every_stream_is_the_one_it_is_alone(soaked):
    alone = [ask_whole(soaked, i) for i in range(PROMPTS)]
    assert len({told.text for told in alone}) > PROMPTS // 2 and sum(SIGNS in told.text for told in alone) == PROMPTS // 4
    pids = [soaked.process.pid, *soaked.workers()]
    before, done, failures, memory = idle_figures(soaked, pids), collections.Counter(), [], []
    canaries = {canary(i) for i in range(PROMPTS)}
    deadline = time.monotonic() + SECONDS

    def client(kind, ask, number):
        rng = random.Random(f"{kind} {number}")
        while time.monotonic() < deadline and not failures:
            i = rng.randrange(PROMPTS)
            try:
                told, whole = ask(soaked, i), alone[i]
                foreign = {c for c in canaries - {canary(i)} if c in told.text and c not in whole.text}
                assert not foreign, (foreign, told)
                assert told.text == whole.text and told.usage == whole.usage, (told, whole)
                if "logprobs" in question(i):
                    assert told.usage == told.counted > 0, told
                done[kind] += 1
            except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                failures.append((kind, i, repr(error)))

    threads = [threading.Thread(target=client, args=(kind, ask, n)) for kind, count, ask in CLIENTS for n in range(count)]
    for thread in threads:
        thread.start()
    while time.monotonic() < deadline and not failures:
        memory.append([row[2] for row in figures(pids)])
        time.sleep(0.5)
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    for kind, count, _ in CLIENTS:
        assert done[kind] >= count, done
    assert [soaked.process.pid, *soaked.workers()] == pids
    assert idle_figures(soaked, pids) == before, "threads or descriptors"
    front = [row[0] for row in memory]
    third = len(front) // 3
    growth = statistics.median(front[-third:]) - statistics.median(front[third:-third])
    print(f"{dict(done)} answers, the front grew by {growth:.1f} MiB in the last third of {SECONDS:.0f} s")
    assert growth <= 4, f"{growth:.1f} MiB more in the last third than in the one before"
