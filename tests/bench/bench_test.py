"""bench/: statistics, records, goals, the table, and a whole run against scripted programs."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import compare  # noqa: E402
from lib import cpu, machine, records  # noqa: E402
from lib.goals import SUBJECTS, Goal, Subject  # noqa: E402

PLAIN = dict(
    kind="decode", command="bench/run cpu", commit="abc", machine=dict(cpu="Toy", cores=2), idle=dict(load=0.1, ok=True),
    model=dict(repo="SmolLM2-135M Q4_1"), shape=dict(B=1, T=1, S=256), threads=2, n=5, median=300.0, p10=297.0, p90=303.0,
    unit="tok/s", share_of_roof=0.9, ids_equal=True, kl=None, baseline=dict(name="llama.cpp", version="1", median=100.0),
    ratio=3.0, extra=dict(subject="smollm2", workload="decode", peer="llama.cpp", unstable=False),
)  # fmt: skip


def test_statistics():
    values = [10.0, 12.0, 11.0, 14.0, 13.0]
    assert records.summary(values) == dict(median=12.0, p10=10.4, p90=13.6)
    assert records.spread(values) == pytest.approx(3.2 / 12)
    assert records.spread([5.0]) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(ids_equal=None), "ids_equal or kl"),
        (dict(median=None), "median"),
        (dict(baseline=None), "baseline"),
        (dict(ratio=None), "baseline"),
        (dict(extra=dict(unstable=True)), "steady"),
    ],
)
def test_the_writer_refuses_records_that_prove_nothing(tmp_path, change, message):
    with pytest.raises(records.Refused, match=message):
        records.append(tmp_path / "r.ndjson", {**PLAIN, **change})
    assert not (tmp_path / "r.ndjson").exists()


def test_records_survive_a_torn_line(tmp_path):
    path = tmp_path / "r.ndjson"
    records.append(path, PLAIN)
    path.write_bytes(path.read_bytes() + b'{"schema":1,"me')
    records.append(path, {**PLAIN, "median": 301.0})
    assert [r["median"] for r in records.read(path)] == [300.0, 301.0]


@pytest.mark.parametrize(
    ("ratio", "share", "verdict"),
    [(3.1, 0.93, "goal"), (3.1, 0.9, "floor"), (1.9, 0.99, "below"), (2.0, 0.84, "below"), (None, 0.9, "not measured")],
)
def test_verdicts(ratio, share, verdict):
    assert Goal(2, 3, 0.85, 0.92).verdict(ratio, share) == verdict


def test_a_goal_without_a_multiple_looks_at_the_read_rate_alone():
    assert Goal(None, None, 0.9, 0.95).verdict(None, 0.96) == "goal"
    assert Goal(3, 4).verdict(4.5, None) == "goal"


def test_the_table_takes_the_newest_record_and_marks_busy_machines():
    older, newer = {**PLAIN, "schema": 1, "ratio": 1.0}, {**PLAIN, "schema": 1}
    rows, passed = compare.table([older, newer])
    first = next(r for r in rows if r[2] == "decode")
    assert first[:3] == ["Toy", "SmolLM2-135M Q4_1", "decode"] and first[6] == "3.00" and first[9] == "floor"
    assert not passed, "the other rows are not measured"
    busy, _ = compare.table([{**newer, "idle": dict(ok=False)}])
    assert next(r for r in busy if r[2] == "decode")[9] == "floor (not idle)"
    assert len(rows) == 3 * len(SUBJECTS)
    assert compare.show(rows, markdown=True).startswith("| machine ")


HEARTH = """#!{python}
import json, sys
flags = dict(zip(sys.argv[3::2], sys.argv[4::2]))
if sys.argv[1] == "bench":
    fast = 2.0 if flags["--numerics"] == "fast" else 1.0
    series = lambda v: dict(median=v, p10=v, p90=v, runs=[v])
    prefill = int(flags["--prompt"]) > 0
    print(json.dumps(dict(prefill_tps=series(900.0 * fast if prefill else 0), decode_tps=series(0 if prefill else 200.0),
                          streamed_bytes_per_token=90_000_000, kv_bytes_per_token=10_000_000,
                          load_ms=12.0, peak_rss_bytes=2**27)))
elif sys.argv[1] == "generate":
    print(json.dumps(dict(ids=[1, 2, 3])))
elif sys.argv[1] == "probe":
    print(json.dumps(dict(read=[dict(gbps=25.0)])))
"""
PEER = """
import json, sys
print(json.dumps(dict(ready=True, name="llama.cpp", version="scripted", build="none")), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    assert len(request["ids"]) == (512 if request["do"] == "prefill" else 128)
    print("a line of the library's own\\n" + json.dumps(dict(tps=300.0 if request["do"] == "prefill" else 80.0)), flush=True)
"""


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """Options for a run of a scripted hearth and a scripted peer on a file of four bytes."""
    binary = tmp_path / "hearth"
    binary.write_text(HEARTH.replace("{python}", sys.executable))
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "toy.gguf").write_bytes(b"GGUF")
    (tmp_path / "peer.py").write_text(PEER)
    venv = tmp_path / "venv" / "bin"
    venv.mkdir(parents=True)
    (venv / "python").symlink_to(sys.executable)
    monkeypatch.setenv("HEARTH_BENCH_VENV", str(tmp_path / "venv"))
    monkeypatch.setattr(cpu.peers, "install", lambda _: None)
    monkeypatch.setitem(cpu.peers.PROGRAMS, "llama.cpp", tmp_path / "peer.py")
    monkeypatch.setattr(cpu.machine, "preflight", lambda _, load_counts: dict(load=0.0, ok=True, reasons=[], clocks_mhz=[1.0]))
    options = cpu.Options(
        binary=binary, models=[], folder=tmp_path / "models", threads=2, rounds=5, peer_names=["llama.cpp"], prompt=512,
        depth=128, tokens=128, out=tmp_path / "cpu.ndjson", wait_s=0,
    )  # fmt: skip
    sha = cpu.sha256((tmp_path / "models" / "toy.gguf").resolve())
    return options, Subject("smollm2", "SmolLM2-135M Q4_1", sha, SUBJECTS[0].goals)


def test_a_run_writes_one_record_for_each_workload(scripted):
    options, subject = scripted
    cpu.run_subject(options, subject, cpu.find_file(options, subject), first=True)
    decode, prefill, fast = records.read(options.out)
    assert (decode["median"], decode["ratio"], decode["n"]) == (200.0, 2.5, 5)
    assert decode["gbps"] == pytest.approx(20.0) and decode["share_of_roof"] == pytest.approx(0.8)
    assert (prefill["ratio"], fast["ratio"]) == (3.0, 6.0)
    assert fast["levers"] == dict(numerics="fast") and decode["ids_equal"] is True
    assert str(options.folder) not in options.out.read_text(), "records name no path of this machine"


def test_a_peer_that_does_not_load_leaves_a_record_without_a_ratio(scripted, tmp_path):
    options, subject = scripted
    (tmp_path / "peer.py").write_text("raise SystemExit(3)\n")
    cpu.run_subject(options, subject, cpu.find_file(options, subject), first=True)
    for record in records.read(options.out):
        assert record["baseline"] is None and record["ratio"] is None
        assert "exit code 3" in record["extra"]["error"]


def test_another_file_is_refused(scripted):
    options, subject = scripted
    (options.folder / "toy.gguf").write_bytes(b"GGUG")
    cpu.sha256.cache_clear()
    with pytest.raises(cpu.BenchError, match="SHA-256"):
        cpu.run_subject(options, subject, cpu.find_file(options, subject), first=True)


def test_unsteady_series_get_more_rounds(scripted, monkeypatch):
    options, _ = scripted
    speeds = iter([100.0, 100.0, 110.0, 100.0, 108.0, 100.0, 101.0, 102.0])
    monkeypatch.setattr(cpu, "measure_ours", lambda *_: (next(speeds), {}))
    monkeypatch.setattr(cpu, "token_bytes", lambda _: 1)
    run = cpu.interleave(options, pathlib.Path("x"), cpu.WORKLOADS[0], None)
    assert len(run["ours"]) == 7


def test_a_round_lasts_some_seconds_on_our_side(scripted):
    options, _ = scripted
    decode, prefill, _ = cpu.WORKLOADS
    assert cpu.runs_a_round(options, decode, 200.0) == 3  # 1.5 s of 128 tokens
    assert cpu.runs_a_round(options, prefill, 50.0) == 1
    assert cpu.runs_a_round(options, prefill, 1e6) == cpu.RUNS_MAX


def test_what_slows_a_round_down_cancels_in_its_ratio():
    ours, theirs = [100.0, 50.0, 110.0], [50.0, 25.0, 55.0]
    assert records.ratios(ours, theirs) == [2.0, 2.0, 2.0]
    assert records.ratios(ours, []) == ours


def test_ratio_share_and_steadiness_are_those_of_the_rounds(scripted, monkeypatch):
    options, subject = scripted
    ours = iter([1.0, 100.0, 50.0, 110.0, 80.0, 90.0, 100.0, 60.0])  # the first is thrown away
    theirs = iter([1.0, 50.0, 25.0, 50.0, 40.0, 45.0, 50.0, 30.0])
    reads = iter([200.0, 100.0, 220.0, 160.0, 180.0, 200.0, 120.0])
    document = dict(streamed_bytes_per_token=9 * 10**8, kv_bytes_per_token=10**8, load_ms=1.0, peak_rss_bytes=1)
    monkeypatch.setattr(cpu, "measure_ours", lambda *_: (next(ours), document))
    monkeypatch.setattr(cpu, "measure_peer", lambda *_: (next(theirs), {}))
    monkeypatch.setattr(cpu, "plain_read", lambda *_: next(reads))
    peer = types.SimpleNamespace(name="llama.cpp", hello=dict(name="llama.cpp", version="1", build="none"))
    work = cpu.WORKLOADS[0]
    run = cpu.interleave(options, pathlib.Path("x"), work, peer)
    context = dict(idle=dict(ok=True), clocks=[], foreign=0.0, ids_equal=True)
    record = cpu.record_of(options, subject, work, peer, run, context)
    assert record["n"] == 7, "the ratios spread by 4 %, the speeds by far more than 10 %"
    assert record["ratio"] == 2.0 and record["share_of_roof"] == 0.5 and not record["extra"]["unstable"]


def test_a_built_llama_peer_runs_instead_of_the_python_one(monkeypatch):
    monkeypatch.setenv("HEARTH_LLAMA_PEER", "/built/peer")
    cpu.peers.install("llama.cpp")  # nothing to install
    assert cpu.peers.program_of("llama.cpp") == ["/built/peer"]
    assert cpu.peers.program_of("openvino")[-1].name == "openvino_peer.py"
    monkeypatch.delenv("HEARTH_LLAMA_PEER")
    assert cpu.peers.program_of("llama.cpp")[-1].name == "llama_cpp_peer.py"


def test_foreign_share_counts_what_others_used():
    class Times:
        def __init__(self, busy, own, total):
            self.busy, self.stolen, self.own, self.total = busy, 0, own, total

    assert machine.foreign_share(Times(0, 0, 0), Times(100, 60, 200)) == pytest.approx(0.2)


def test_usage_errors_are_exit_code_2():
    env = {**os.environ, "HEARTH_BIN": "none"}
    done = subprocess.run([ROOT / "bench" / "run", "cpu", "--peers", "nobody"], capture_output=True, text=True, env=env)
    assert done.returncode == 2 and "nobody" in done.stderr
    done = subprocess.run([ROOT / "bench" / "run", "cpu"], capture_output=True, text=True, env=env)
    assert done.returncode == 1 and "none" in done.stderr
    done = subprocess.run([ROOT / "bench" / "compare.py"], capture_output=True, text=True)
    assert done.returncode == 0 and "floor / goal" in done.stdout


@pytest.mark.parametrize(
    ("peer", "share", "verdict", "passes"),
    [
        ([140.0, 150.0, 100.0], 0.9, "floor in every round (unstable)", True),
        ([140.0, 151.0, 100.0], 0.9, "unstable", False),  # one round below
        ([140.0, 150.0, 100.0], 0.8, "unstable", False),  # too small a share of the read rate
        ([], 0.9, "unstable", False),
    ],
)
def test_an_unsteady_record_passes_where_every_round_does(peer, share, verdict, passes):
    extra = dict(PLAIN["extra"], unstable=True, rounds=dict(ours=[300.0] * 3, peer=peer, read=[]))
    record = {**PLAIN, "schema": 1, "ratio": None, "share_of_roof": share, "extra": extra}
    if not peer:
        record["baseline"] = None
    cells, good = compare.row(SUBJECTS[0], "decode", record)
    assert (cells[9], good) == (verdict, passes) and cells[6] == "-"
    busy, good = compare.row(SUBJECTS[0], "decode", {**record, "idle": dict(ok=False)})
    assert (busy[9], good) == ("unstable", False)


def test_machines_of_one_name_stand_apart():
    def record(flags, family="6/207/2"):
        extra = dict(subject="smollm2", workload="decode", peer=None)
        machine = dict(cpu="Xeon", family=family, flags=flags)
        return dict(schema=records.SCHEMA, machine=machine, threads=2, extra=extra)

    amx = ["avx2", "avx512f", "amx_int8"]
    lines = [record(["avx2"]), record(amx), record(["avx2"]), record(["avx2"], family="6/1/1")]
    assert len(compare.newest(lines)) == 3
    assert records.cpu_name(lines[1]["machine"]) == "Xeon (family 6/207/2, AMX)"
    assert records.cpu_name({}) == "unnamed CPU"


def test_the_load_average_counts_for_the_first_workload_of_a_process_alone(scripted, monkeypatch):
    """From then on it is the run's own."""
    options, subject = scripted
    counted = []

    def preflight(_, load_counts):
        counted.append(load_counts)
        return dict(load=0.0, ok=True, reasons=[], clocks_mhz=[1.0])

    monkeypatch.setattr(cpu.machine, "preflight", preflight)
    model = cpu.find_file(options, subject)
    cpu.run_subject(options, subject, model, first=True)
    cpu.run_subject(options, subject, model, first=False)
    assert counted == [True, False, False, False, False, False]
