"""R-30: servers that are told to end under load, again and again: each drains and exits in time, and no answer is cut in silence.

HEARTH_RESTARTS sets how often; 100 by default.
"""
import collections
import http.client
import json
import os
import random
import signal
import threading
import time

import pytest
from running import Server
from streams import Asking

RESTARTS = int(os.environ.get("HEARTH_RESTARTS") or 100)
pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]
CLIENTS = 6


def ended(server, rng):
    """How one request ended."""
    body = {"messages": [{"role": "user", "content": "Tell a story. " + "word " * rng.choice([1, 1, 100])}], "temperature": 0,
            "max_tokens": rng.choice([1, 20, 200]), "stream": rng.random() < 0.6}
    try:
        asking = Asking(server, body)
    except OSError:
        return "not taken"
    with asking:
        try:
            answer = asking.answer()
        except (OSError, http.client.HTTPException):
            return "not taken"  # no byte of an answer was sent
        if answer.status != 200:
            assert answer.status == 503 and json.loads(answer.read())["error"]["message"], answer.status
            return "refused"
        if not body["stream"]:
            assert json.loads(answer.read())["choices"][0]["finish_reason"] in ("stop", "length")
            return "whole"
        *_, last = asking.events()
        assert last == b"[DONE]" or json.loads(last)["error"]["message"], last
        return "whole" if last == b"[DONE]" else "told"


def test_each_end_is_in_time_and_each_answer_whole_or_told(tmp_path, model_file):
    rng, ends, slowest = random.Random(30), collections.Counter(), 0.0
    for round_ in range(RESTARTS):
        server = Server(tmp_path, model_file("smollm2"), "--context", "512", "--batch", "4").start()
        over, failures = threading.Event(), []

        def client(number, here=server, over=over, failures=failures):
            own = random.Random(f"{round_} {number}")
            while not over.is_set() and not failures:
                try:
                    ends[ended(here, own)] += 1
                except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                    failures.append(repr(error))

        threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0, 1.5))
        begin = time.monotonic()
        server.process.send_signal(rng.choice([signal.SIGTERM, signal.SIGINT]))
        assert server.process.wait(40) == 0, server.log
        slowest = max(slowest, time.monotonic() - begin)
        over.set()
        for thread in threads:
            thread.join()
        server.stop()
        assert not failures, (round_, failures[:3], server.log)
        assert slowest <= 30, slowest
    print(f"{dict(ends)} in {RESTARTS} runs, the slowest end took {slowest:.1f} s")
    assert ends["whole"] > RESTARTS and ends["not taken"] > 0, ends
