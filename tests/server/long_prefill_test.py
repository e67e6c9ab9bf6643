"""The page and /health answer while a prompt of 8,000 tokens is evaluated on both cores."""
import json
import statistics
import threading
import time

import pytest
from running import Server
from streams import Asking

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


def test_the_page_and_health_answer_during_a_long_prefill(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), "--context", "8192", "--batch", "2", "--prompt-cache", "0", env={"HEARTH_THREADS": "2"}) as server:
        text = "word " * 7900
        assert 7900 <= server.post("/v1/tokenize", {"content": text}).json()["count"] < 8100
        times = {"/": [], "/health": []}
        with Asking(server, {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 1, "stream": True}, timeout=1200) as asking:
            assert asking.answer().status == 200  # its row has started
            events = []
            thread = threading.Thread(target=lambda: events.extend(asking.events()))
            thread.start()
            while thread.is_alive():
                for path, seen in times.items():
                    begin = time.monotonic()
                    assert server.get(path).status == 200
                    seen.append(time.monotonic() - begin)
                    time.sleep(0.01)
            thread.join()
        usage = json.loads(events[-2])["usage"]
        assert usage["prompt_tokens"] > 7900 and usage["prompt_tokens_details"]["cached_tokens"] == 0 and usage["completion_tokens"] == 1
        for path, seen in times.items():
            print(f"{path}: {len(seen)} answers, median {1e3 * statistics.median(seen):.1f}, longest {1e3 * max(seen):.1f} ms")
            assert len(seen) >= 20 and statistics.median(seen) < 0.1, (path, sorted(seen)[-5:])
