"""R-30: servers that are told to end under load, again and again: each drains and exits in time, and no answer is cut in silence.

HEARTH_RESTARTS sets how often; 100 by default.
"""
import collections
import http.client
import os
import random
import signal
import threading
import time

import pytest
from running import Server
from streams import Asking, end_of, story

RESTARTS = int(os.environ.get("HEARTH_RESTARTS") or 100)
pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]
CLIENTS = 6


def ask(server, rng):
    """How one request ended."""
    body = story(rng, words=100, tokens=[1, 20, 200], streamed=0.6)
    try:
        asking = Asking(server, body)
    except OSError:
        return "not taken"
    with asking:
        try:
            asking.answer()
        except (OSError, http.client.HTTPException):
            return "not taken"  # no byte of an answer was sent
        return end_of(asking, body)[0]


def test_each_end_is_in_time_and_each_answer_whole_or_told(tmp_path, model_file):
    rng, ends, slowest = random.Random(30), collections.Counter(), 0.0
    for round_ in range(RESTARTS):
        server = Server(tmp_path, model_file("smollm2"), "--context", "512", "--batch", "4").start()
        over, failures = threading.Event(), []

        def client(number, here=server, over=over, failures=failures):
            own = random.Random(f"{round_} {number}")
            while not over.is_set() and not failures:
                try:
                    ends[ask(here, own)] += 1
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
