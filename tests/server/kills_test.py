"""R-06, R-31 at full size: a worker that is killed at random moments under load.

HEARTH_KILLS sets how often; 50 by default.
"""
import collections
import json
import os
import random
import signal
import threading
import time

import pytest
from running import Server
from streams import Asking, load_of

KILLS = int(os.environ.get("HEARTH_KILLS") or 50)
pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]
CLIENTS = 8


def end_of(server, rng):
    """How one request ended: whole, or told clearly that its worker is lost."""
    body = {"messages": [{"role": "user", "content": "Tell a story. " + "word " * rng.choice([1, 1, 200])}], "temperature": 0,
            "max_tokens": rng.choice([1, 30, 300]), "stream": rng.random() < 0.7}
    with Asking(server, body) as asking:
        answer = asking.answer()
        if answer.status == 503:
            error = json.loads(answer.read())["error"]
            assert error["code"] == "worker_lost" and error["message"], error
            return "503"
        assert answer.status == 200, answer.read()
        if not body["stream"]:
            document = json.loads(answer.read())
            assert document["choices"][0]["finish_reason"] in ("stop", "length") and document["usage"]["prompt_tokens"] > 0, document
            return "whole"
        *_, last = asking.events()
        if last == b"[DONE]":
            return "whole"
        error = json.loads(last)["error"]
        assert error["code"] == "worker_lost" and error["message"], last
        return "error event"


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
            ends[end_of(server, rng)] += 1

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
        assert ends["whole"] > 0 and ends["error event"] > 0, ends
        stats = server.get("/stats").json()
        assert load_of(server)[0] == 0 and stats["models"][0]["restarts"] == KILLS and stats["models"][0]["state"] == "ready", stats
