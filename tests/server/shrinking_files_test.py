"""R-04: a model's file that shrinks while it is loaded, or later, ends the load or the worker with a reason; the server lives.

HEARTH_SHRINKS sets how often: 6, in the full tier 200.
"""
import os
import random
import shutil
import threading
import time

import pytest
from running import Server

SHRINKS = int(os.environ.get("HEARTH_SHRINKS") or (200 if os.environ.get("HEARTH_TEST_TIER") == "full" else 6))


@pytest.mark.timeout(7200)
def test_a_file_that_shrinks_under_its_model(tmp_path, model_file):
    whole = model_file("smollm2")
    snapshot = tmp_path / "hub" / "models--toys--shrinks" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("1")
    file, size = snapshot / "model.gguf", whole.stat().st_size
    rng, ends = random.Random(4), []
    shutil.copy(whole, file)
    with Server(tmp_path, whole, "--context", "256", "--pack-cache", "0B", "--batch", "1",
                env={"HF_HUB_CACHE": str(tmp_path / "hub")}) as server:  # fmt: skip
        token = {"Authorization": f"Bearer {server.token()}"}
        begin = time.monotonic()
        assert server.post("/api/models/load", {"model": "toys/shrinks"}, headers=token).status == 200
        load_s = time.monotonic() - begin
        for number in range(SHRINKS):
            server.post("/api/models/unload", {"model": "toys/shrinks"}, headers=token)
            shutil.copy(whole, file)

            def shrink(after=rng.uniform(0, 1.2 * load_s), to=rng.choice([0, 4096, rng.randrange(size)])):
                time.sleep(after)
                os.truncate(file, to)

            shrinks = threading.Thread(target=shrink)
            shrinks.start()
            loaded = server.post("/api/models/load", {"model": "toys/shrinks"}, headers=token)
            shrinks.join()
            assert server.get("/health").status == 200 and server.process.poll() is None
            if loaded.status != 200:
                error = loaded.json()["error"]
                assert loaded.status in (422, 503) and error["message"] and str(tmp_path) not in error["message"], loaded.body
                ends.append("refused")
            else:  # it may need no more of the file, or its worker ends when it does
                answer = server.chat("Hi", model="toys/shrinks", max_tokens=2)
                assert answer.status == 200 or answer.json()["error"]["message"], answer.body
                ends.append("answered" if answer.status == 200 else "lost")
            assert server.chat("Hi", max_tokens=1).status == 200, "the other model"
    assert "refused" in ends, ends
