"""R-18 at full size: clients vanish in every phase of a request, by FIN and RST, streamed or not.

HEARTH_DISCONNECTS sets how many; 2,000 by default.
"""
import collections
import json
import os
import random
import threading
import time

import pytest
from running import Server, streamed_text
from streams import Asking, load_of

ROUNDS = int(os.environ.get("HEARTH_DISCONNECTS") or 2000)
pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]

SURVIVORS = 2
BATCH = 4
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 200}}, "required": ["city"], "additionalProperties": False}}}]


def body(text, **fields):
    return {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 900, **fields}


def until(condition, what):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, what


# Each phase returns requests that are in it. `n` is another number every time, so that no prompt is in the cache.
def uploading(server, rng, n):
    return [Asking(server, body(f"{n} " + "word " * 200, stream=rng.random() < 0.5), part=rng.random())]


def sent(server, rng, n):
    return [Asking(server, body(f"{n} " + "word " * rng.randrange(1, 100), stream=rng.random() < 0.5))]


def queued(server, rng, n):
    askings = [Asking(server, body(f"{n} {i} Count.", stream=rng.random() < 0.5)) for i in range(BATCH + 2)]
    until(lambda: load_of(server)[1]["pending_rows"] > 0, "nothing waits")
    return askings


def prefill(server, rng, n):
    """A stream's head comes when its row starts, its first words when the prompt is evaluated."""
    asking = Asking(server, body(f"{n} " + "word " * 300, stream=True))
    assert asking.answer().status == 200
    return [asking]


def prefill_whole(server, rng, n):
    before = load_of(server)[1]["submitted_rows"]
    asking = Asking(server, body(f"{n} " + "word " * 300, stream=False))
    until(lambda: load_of(server)[1]["submitted_rows"] > before, "the request did not arrive")
    return [asking]


def decode(server, rng, n):
    asking = Asking(server, body(f"{n} Count for ever.", stream=True, n=rng.choice([1, 1, 2])))
    for _, _ in zip(range(rng.randrange(2, 12)), asking.events()):
        pass
    return [asking]


def call(server, rng, n):
    """While the arguments of a call are written."""
    asking = Asking(server, body(f"{n} What is the weather?", tools=TOOLS, tool_choice="required", stream=True))
    for event in asking.events():
        if b'"tool_calls"' in event:
            break
    return [asking]


def tool_wait(server, rng, n):
    """The call is told, its connection is kept for the result, which never comes; or it comes, and is not waited for."""
    question = body(f"{n} Weather?", tools=TOOLS, tool_choice="required", max_tokens=120)
    asking = Asking(server, question)
    message = json.loads(asking.answer().read())["choices"][0]["message"]
    if rng.random() < 0.5 and message.get("tool_calls"):
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "rain"}
        asking.cut(rng.random() < 0.5)
        return [Asking(server, {**question, "messages": [*question["messages"], message, result], "tool_choice": "auto",
                                "stream": rng.random() < 0.5})]
    return [asking]


PHASES = [uploading, sent, queued, prefill, prefill_whole, decode, call, tool_wait]


@pytest.mark.parametrize("cache", ["0", "500MB"])
def test_who_vanishes_takes_nothing_along(tmp_path, model_file, cache):
    with Server(tmp_path, model_file("smollm2"), "--context", "1024", "--batch", BATCH, "--prefill-chunk", "64", "--prompt-cache", cache) as server:
        prompts = [f"Write about the number {i} and what it means." for i in range(6)]
        alone = [server.chat(p, max_tokens=8 + 2 * i).json()["choices"][0]["message"]["content"] for i, p in enumerate(prompts)]
        worker, over, failures, answered = server.workers(), threading.Event(), [], collections.Counter()
        free, idle_bytes = load_of(server)[1]["pages_free"], server.get("/stats").json()["prompt_cache"]["bytes"]

        def survivor(number):
            rng = random.Random(number)
            while not over.is_set() and not failures:
                i = rng.randrange(len(prompts))
                try:
                    text = streamed_text(server.chat(prompts[i], max_tokens=8 + 2 * i, stream=True, timeout=600))
                    assert text == alone[i], (text, alone[i])
                    answered[number] += 1
                except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                    failures.append((i, repr(error)))

        threads = [threading.Thread(target=survivor, args=(n,)) for n in range(SURVIVORS)]
        for thread in threads:
            thread.start()
        rng, cut, looks = random.Random(cache), collections.Counter(), collections.Counter()
        try:
            n = 0
            while sum(cut.values()) < ROUNDS // 2 and not failures:
                phase = PHASES[n % len(PHASES)]
                n += 1
                askings = phase(server, rng, f"{cache} {n}")
                rng.shuffle(askings)
                for asking in askings:
                    reset = rng.random() < 0.5
                    asking.cut(reset)
                    cut[phase.__name__, "RST" if reset else "FIN"] += 1
                # Figures come from between two steps. The first may be from before the cut; behind one more step all is free.
                begin = time.monotonic()
                for look in range(1, 1000):
                    if load_of(server)[0] <= SURVIVORS:
                        break
                looks[look] += 1
                assert look <= 3 or time.monotonic() - begin <= 0.25, (phase.__name__, look, time.monotonic() - begin)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert not failures, failures[:3]
        assert {name for name, _ in cut} == {phase.__name__ for phase in PHASES} and {how for _, how in cut} == {"FIN", "RST"}, cut
        assert all(answered[n] > 0 for n in range(SURVIVORS)), answered
        until(lambda: load_of(server)[0] == 0, "rows stay")
        stats = server.get("/stats").json()
        held = stats["prompt_cache"]["bytes"]
        page = stats["batch"]["kv_bytes"] / stats["batch"]["pages_total"]
        print(f"{dict(cut)}; looks until free {dict(looks)}; {stats['batch']}")
        if cache == "0":
            assert stats["batch"]["pages_free"] == stats["batch"]["pages_total"] == free and held == idle_bytes == 0, stats
        else:  # what is not free is what the cache says that it keeps
            assert (stats["batch"]["pages_total"] - stats["batch"]["pages_free"]) * page == held, stats
        assert stats["models"][0]["open_requests"] == 0, stats
        assert server.workers() == worker and stats["models"][0]["restarts"] == 0
