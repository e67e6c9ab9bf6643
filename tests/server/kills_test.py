"""R-06, R-31 at full size: a worker that is killed at random moments under load.

HEARTH_KILLS sets how often; 50 by default.
"""
import collections
import os
import random
import signal
import threading
import time

import pytest
from running import Server
from streams import Asking, end_of, load_of, story

KILLS = int(os.environ.get("HEARTH_KILLS") or 50)
pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]
CLIENTS = 8


def ask(server, rng):
    """How one request ended: whole, or told clearly that its worker is lost."""
    body = story(rng, words=200, tokens=[1, 30, 300], streamed=0.7)
    with Asking(server, body) as asking:
        how, error = end_of(asking, body)
        assert error is None or error["code"] == "worker_lost", error
        return how


def test_a_worker_may_be_killed_at_any_moment(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), "--context", "512", "--batch", "4") as server:
        over, failures, ends, looks = threading.Event(), [], collections.Counter(), collections.Counter()

        def guarded(work, number):
            rng = random.Random(number)
            while not over.is_set() and not failures:
                try:
                    work(rng)
                except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                    failures.append((work.__name__, repr(error)))

        def client(rng):
            ends[ask(server, rng)] += 1

        def health(_):
            answer = server.get("/health")
            assert answer.status == 200, answer.body
            looks["health"] += 1
            time.sleep(0.01)

        threads = [threading.Thread(target=guarded, args=(client, n)) for n in range(CLIENTS)]
        threads.append(threading.Thread(target=guarded, args=(health, CLIENTS)))
        for thread in threads:
            thread.start()
        rng, killed = random.Random(31), set()
        try:
            for _ in range(KILLS):
                time.sleep(rng.uniform(0, 2))
                (worker,) = server.workers()
                assert worker not in killed
                killed.add(worker)
                before = looks["health"]
                os.kill(worker, signal.SIGKILL)
                answer = server.chat("Hi", max_tokens=2, timeout=600)
                assert answer.status == 200, answer.body  # the dead worker never read it
                assert looks["health"] > before and not failures, failures
        finally:
            over.set()
            for thread in threads:
                thread.join()
        print(f"{dict(ends)} beside {KILLS} kills, {looks['health']} looks at /health")
        assert not failures, failures[:3]
        assert ends["whole"] > 0 and ends["told"] > 0, ends
        stats = server.get("/stats").json()
        assert load_of(server)[0] == 0 and stats["models"][0]["restarts"] == KILLS and stats["models"][0]["state"] == "ready", stats
