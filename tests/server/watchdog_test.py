"""Spec server, case 21: an engine that falls silent while requests are open."""
import os
import pathlib
import signal
import threading
import time

from running import Server


def test_a_wedged_worker_shows_and_is_started_again(tmp_path, model_file):
    """/health ok, /ready 503 while rows run and nothing comes, then a new worker."""
    with Server(tmp_path, model_file("smollm2"), "--context", "512", "--batch", "2", "--watchdog", "1s") as server:
        (worker,) = server.workers()
        time.sleep(1.7)
        assert server.get("/ready").status == 200, "idle is ready"
        answers = []
        thread = threading.Thread(target=lambda: answers.append(server.chat("Hi", max_tokens=400, stream=False)))
        os.kill(worker, signal.SIGSTOP)
        thread.start()
        begin, unready = time.monotonic(), None
        while thread.is_alive() and time.monotonic() - begin < 8:
            assert server.get("/health").status == 200
            answer = server.get("/ready")
            if answer.status == 503 and unready is None:
                unready = time.monotonic() - begin
                assert "no token" in answer.json()["reason"], answer.body
            time.sleep(0.02)
        thread.join()
        assert unready is not None and 0.9 <= unready < 1.4, unready
        assert answers[0].status == 503 and answers[0].json()["error"]["code"] == "worker_lost"
        assert server.chat("Hi", max_tokens=4).status == 200
        assert server.workers() != [worker] and server.get("/ready").status == 200


# a worker that answers nothing is not waited for.
def test_the_end_of_a_server_with_a_wedged_worker(tmp_path, model_file):
    """SIGTERM ends all within 5 s."""
    server = Server(tmp_path, model_file("smollm2"), "--context", "512", "--batch", "2").start()
    (worker,) = server.workers()
    os.kill(worker, signal.SIGSTOP)
    thread = threading.Thread(target=lambda: server.chat("Hi", max_tokens=400))
    thread.start()
    time.sleep(0.3)
    begin = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 0
    assert time.monotonic() - begin < 5
    thread.join()
    assert not pathlib.Path(f"/proc/{worker}").exists()
