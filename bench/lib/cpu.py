"""bench/run cpu: ours against the peers, interleaved, on the same file with the same threads."""

import dataclasses
import functools
import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path

from . import machine, peers, records
from .goals import SUBJECTS, Subject

ROOT = Path(__file__).resolve().parents[2]
# Both sides read prompts of this many tokens; ids below 4,000 are ordinary words in every one of the vocabularies.
PROMPT_IDS = 4000
STEADY, UNSTABLE = 0.03, 0.10
ROUNDS_STEADY, ROUNDS_MAX = 7, 15
ROUND_S, RUNS_MAX = 1.5, 9


@dataclasses.dataclass
class Options:
    binary: Path
    models: list[Subject]
    folder: Path
    threads: int
    rounds: int
    peer_names: list[str]
    prompt: int
    depth: int
    tokens: int
    out: Path
    wait_s: float
    workloads: list[str] = dataclasses.field(default_factory=list)  # keys; none: all


@dataclasses.dataclass(frozen=True)
class Workload:
    """What one row of the table measures."""

    kind: str  # decode | prefill
    numerics: str  # deterministic | fast

    @property
    def key(self) -> str:
        return self.kind + (" fast" if self.numerics == "fast" else "")


WORKLOADS = [Workload("decode", "deterministic"), Workload("prefill", "deterministic"), Workload("prefill", "fast")]


class BenchError(RuntimeError):
    """hearth failed, or a file is not the one that the table names."""


def hearth(options: Options, *args) -> dict:
    command = [str(options.binary), *map(str, args), "--threads", str(options.threads), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"hearth {args[0]}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


@functools.cache
def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_file(options: Options, subject: Subject) -> Path:
    """The file of that SHA-256 in the models folder."""
    for path in sorted(options.folder.glob("*.gguf")):
        if sha256(path.resolve()) == subject.sha256:
            return path
    raise BenchError(f"{options.folder.name}/ holds no file with the SHA-256 of {subject.title}; scripts/models fetches it")


def measure_ours(options: Options, model: Path, work: Workload, runs: int) -> tuple[float, dict]:
    shape = ["--prompt", options.prompt, "--tokens", 0] if work.kind == "prefill" else ["--prompt", 0, "--tokens", options.tokens]
    document = hearth(
        options, "bench", model, *shape, "--depth", options.depth, "--runs", runs, "--numerics", work.numerics
    )
    return document[f"{work.kind}_tps"]["median"], document


def measure_peer(options: Options, peer: peers.Peer, work: Workload, runs: int) -> tuple[float, dict]:
    ids = [(7919 * i) % PROMPT_IDS + 100 for i in range(max(options.prompt, options.depth))]
    if work.kind == "prefill":
        request = dict(do="prefill", ids=ids[: options.prompt])
    else:
        request = dict(do="decode", ids=ids[: options.depth], tokens=options.tokens)
    answers = [peer.ask(**request) for _ in range(runs)]
    return records.summary([answer["tps"] for answer in answers])["median"], answers[-1]


def runs_a_round(options: Options, work: Workload, speed: float) -> int:
    """So many that ours measures for ROUND_S seconds: short rounds only show what else the machine does."""
    tokens = options.prompt if work.kind == "prefill" else options.tokens
    return min(RUNS_MAX, math.ceil(ROUND_S * speed / tokens))


def greedy_ids(options: Options, model: Path, numerics: str) -> list[int]:
    flags = ["-p", "The first rule of measuring is", "--raw", "--max-tokens", 32, "--temperature", 0, "--ids"]
    return hearth(options, "generate", model, *flags, "--numerics", numerics)["ids"]


def interleave(options: Options, model: Path, work: Workload, peer: peers.Peer | None) -> dict:
    """Ours, peer, ours, peer ...; the first round of each is thrown away."""
    ours, theirs, reads, last, peer_last, error = [], [], [], {}, {}, None
    rounds = options.rounds
    runs, done = 1, -1
    while done < rounds:
        speed, last = measure_ours(options, model, work, runs)
        if done < 0:
            runs = runs_a_round(options, work, speed)
        if done >= 0:
            ours.append(speed)
            if work.kind == "decode":
                reads.append(plain_read(options, token_bytes(last)))
        if peer is not None and error is None:
            try:
                speed, peer_last = measure_peer(options, peer, work, runs)
                if done >= 0:
                    theirs.append(speed)
            except (peers.PeerError, OSError) as failure:
                error, theirs = str(failure), []
        done += 1
        if done == rounds:
            spread = records.spread(records.ratios(ours, theirs))
            if spread > STEADY and rounds < ROUNDS_STEADY:
                rounds = ROUNDS_STEADY
            elif spread > UNSTABLE and rounds < ROUNDS_MAX:
                rounds = ROUNDS_MAX
    return dict(ours=ours, theirs=theirs, reads=reads, runs=runs, last=last, peer_last=peer_last, error=error)


def token_bytes(document: dict) -> int:
    """Weights and KV that a decoded token reads."""
    return document["streamed_bytes_per_token"] + document["kv_bytes_per_token"]


def plain_read(options: Options, size: int) -> float:
    """GB/s of reading so many bytes."""
    return hearth(options, "probe", "cpu", "--bytes", max(1 << 20, size // 4096 * 4096))["read"][0]["gbps"]


def record_of(options: Options, subject: Subject, work: Workload, peer, run: dict, context: dict) -> dict:
    ours, theirs, last = run["ours"], run["theirs"], run["last"]
    mine = records.summary(ours)
    streamed, reads = token_bytes(last), run["reads"]
    gbps = mine["median"] * streamed / 1e9 if reads else None
    shares = [speed * streamed / 1e9 / read for speed, read in zip(ours, reads, strict=True)] if reads else None
    paired = records.ratios(ours, theirs)
    unstable = records.spread(paired) > UNSTABLE
    baseline = None
    if theirs:
        baseline = dict(name=peer.hello["name"], version=peer.hello["version"], build=peer.hello["build"])
        baseline |= records.summary(theirs) | dict(n=len(theirs), rss_bytes=run["peer_last"].get("rss_bytes"))
    prefill = work.kind == "prefill"
    shape = dict(B=1, T=options.prompt if prefill else 1, S=options.prompt if prefill else options.depth + options.tokens)
    return dict(
        kind=work.kind,
        command="bench/run cpu",
        commit=machine.commit(ROOT),
        build="release",
        machine=dict(machine.describe(), clocks=dict(before=context["clocks"], after=machine.clocks_mhz())),
        idle=context["idle"],
        model=dict(repo=subject.title, rev=None, sha=subject.sha256),
        layout=subject.title.rsplit(" ", 1)[1].lower(),
        bpw=None,
        kv_mode="bf16",
        levers=dict(numerics=work.numerics),
        shape=shape,
        threads=options.threads,
        n=len(ours),
        **mine,
        unit="tok/s",
        gbps=gbps,
        share_of_roof=records.summary(shares)["median"] if shares else None,
        bytes_peak=last["peak_rss_bytes"],
        ids_equal=context["ids_equal"],
        kl=None,
        baseline=baseline,
        ratio=records.summary(paired)["median"] if baseline and not unstable else None,
        extra=dict(
            subject=subject.name,
            workload=work.key,
            peer=None if peer is None else peer.name,
            spread=records.spread(ours),
            peer_spread=records.spread(theirs) if theirs else None,
            ratio_spread=records.spread(paired) if theirs else None,
            unstable=unstable,
            read_gbps=records.summary(reads)["median"] if reads else None,
            token_bytes=streamed,
            load_ms=last["load_ms"],
            error=run["error"],
            foreign_cpu_share=context["foreign"],
            runs_a_round=run["runs"],
            rounds=dict(ours=ours, peer=theirs, read=reads),
        ),
    )


def run_subject(options: Options, subject: Subject, model: Path, first: bool) -> None:
    """All workloads of a model; first: nothing was measured before, so the load average is not ours."""
    for name in options.peer_names:
        try:
            peers.install(name)
            peer = peers.Peer(name, model, options.threads, max(options.prompt, options.depth + options.tokens) + 8)
        except (peers.PeerError, OSError, subprocess.CalledProcessError) as failure:
            print(f"bench: {subject.title}: {failure}", file=sys.stderr)
            run_workloads(options, subject, model, None, str(failure), first)
            first = False
            continue
        with peer:
            print(f"bench: {subject.title} beside {peer.hello['version']} ({peer.hello['build']})", file=sys.stderr)
            run_workloads(options, subject, model, peer, None, first)
        first = False
    if not options.peer_names:
        run_workloads(options, subject, model, None, None, first)


def run_workloads(
    options: Options, subject: Subject, model: Path, peer: peers.Peer | None, error: str | None, first: bool
) -> None:
    for i, work in enumerate(w for w in WORKLOADS if not options.workloads or w.key in options.workloads):
        # The load average of the last minute is our own from the second workload on.
        idle = machine.preflight(options.wait_s, load_counts=first and i == 0)
        clocks = idle.pop("clocks_mhz")
        ids = greedy_ids(options, model, work.numerics)
        before = machine.CpuTime()
        spent = machine.process_seconds(peer.process.pid) if peer else 0.0
        run = interleave(options, model, work, peer)
        run["error"] = run["error"] or error
        alive = peer is not None and peer.process.poll() is None
        living = machine.process_seconds(peer.process.pid) - spent if alive else 0.0
        foreign = machine.foreign_share(before, machine.CpuTime(), living)
        if foreign > machine.LOAD_LIMIT / 2:
            idle["ok"] = False
            idle["reasons"].append(f"others used {100 * foreign:.0f} % of the cores during the rounds")
        context = dict(
            idle=idle,
            clocks=clocks,
            foreign=foreign,
            ids_equal=ids == greedy_ids(options, model, work.numerics),
        )
        record = records.append(options.out, record_of(options, subject, work, peer, run, context))
        ratio = "no ratio" if record["ratio"] is None else f"{record['ratio']:.2f}x"
        warning = "" if record["idle"]["ok"] else f"  NOT IDLE: {'; '.join(idle['reasons'])}"
        if not record["ids_equal"]:
            warning += "  IDS DIFFER between two runs"
        print(f"  {work.key:<13} {record['median']:9.1f} tok/s  {ratio}{warning}", file=sys.stderr, flush=True)


def options_from(args) -> Options:
    names = {s.name: s for s in SUBJECTS}
    folder = Path(args.models or os.environ.get("HEARTH_TEST_MODELS") or ROOT / "build" / "test-models")
    return Options(
        binary=Path(args.binary or os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth"),
        models=[names[n] for n in args.model or names],
        folder=folder,
        threads=args.threads,
        rounds=args.rounds,
        peer_names=[] if args.peers == "none" else args.peers.split(","),
        prompt=args.prompt_tokens,
        depth=args.depth,
        tokens=args.tokens,
        out=Path(args.out) if args.out else ROOT / "bench" / "records" / f"{args.area}.ndjson",
        wait_s=args.wait_idle,
        workloads=args.workload or [],
    )
