"""bench/run serve: hearth serve beside llama-server, N clients at once, interleaved rounds."""

import dataclasses
import math
import statistics
import subprocess
import sys
from pathlib import Path

from . import cpu, load, machine, peers, records, servers
from .cpu import ROOT, ROUND_S, ROUNDS_MAX, ROUNDS_STEADY, RUNS_MAX, STEADY, UNSTABLE
from .goals import Subject

SLOTS, CONTEXT = 32, 512
ROUNDS_MIN = 3  # fewer are a smoke run: their spread says nothing, and they are not lengthened
PROBE = "The first rule of measuring is"


@dataclasses.dataclass(frozen=True)
class Workload:
    clients: int
    numerics: str = "deterministic"
    kind: str = "serve"  # serve: tokens a second of all clients, with their time to the first token; decode: beside hearth bench

    @property
    def key(self) -> str:
        if self.kind == "decode":
            return "served decode"
        return f"serve {self.clients}" + (" fast" if self.numerics == "fast" else "")


WORKLOADS = [Workload(1), Workload(8), Workload(32), Workload(32, "fast"), Workload(1, kind="decode")]
# Rows of the table; those of times to the first token come from the rounds of their workload.
KEYS = ["serve 1", "serve 8", "serve 32", "serve 32 ttft", "serve 32 fast", "served decode"]


class Prompts:
    """Never the same prompt twice, and both sides get the same: no cache of prefixes helps either."""

    def __init__(self):
        self.next = 1

    def take(self, clients: int) -> list[str]:
        first, self.next = self.next, self.next + clients
        return [load.prompt(n) for n in range(first, first + clients)]


def measure(server, subject: Subject, waves: list[list[str]], tokens: int) -> dict:
    """Bursts one after the other: total tokens a second, median time to the first token, median decoding of a client."""
    bursts = [
        load.burst(server.host, server.port, [load.body(p, tokens, subject.end_ids) for p in wave], tokens) for wave in waves
    ]
    return dict(
        added_ttft_ms=[t for b in bursts for t in b.added_ms],
        tps=sum(b.tokens for b in bursts) / sum(b.seconds for b in bursts),
        ttft_ms=statistics.median(t for b in bursts for t in b.ttft_ms),
        decode_tps=statistics.median(t for b in bursts for t in b.decode_tps),
        prompt_tokens=max(b.prompt_tokens for b in bursts),
    )


def hearth_server(options, model: Path, numerics: str) -> servers.Hearth:
    return servers.Hearth(options.binary, model, options.threads, SLOTS, CONTEXT, numerics)


def direct(options, model: Path, depth: int, runs: int) -> float:
    """tok/s of `hearth bench` at the same depth."""
    shape = ["--prompt", 0, "--tokens", options.tokens, "--depth", depth, "--runs", runs]
    return cpu.hearth(options, "bench", model, *shape, "--numerics", "deterministic")["decode_tps"]["median"]


def interleave(options, subject: Subject, model: Path, work: Workload, ours, theirs, prompts: Prompts) -> dict:
    """Ours, peer, ours, peer ...; the first round is thrown away. For `served decode` the peer is hearth bench, a new
    process each time; so is the server then, since where its memory lies is worth some percent either way."""
    mine, peer, error, rounds, done, count = [], [], None, options.rounds, -1, 1
    while done < rounds:
        waves = [prompts.take(work.clients) for _ in range(count)]
        other = None
        if work.kind == "decode":
            with hearth_server(options, model, work.numerics) as fresh:
                measure(fresh, subject, [prompts.take(work.clients)], options.tokens)
                got = measure(fresh, subject, waves, options.tokens)
            other = dict(decode_tps=direct(options, model, got["prompt_tokens"], count))
        else:
            got = measure(ours, subject, waves, options.tokens)
            if theirs is not None and error is None:
                try:
                    other = measure(theirs, subject, waves, options.tokens)
                except (load.LoadError, OSError) as failure:
                    error, peer = str(failure), []
        if done < 0:
            count = min(RUNS_MAX, math.ceil(ROUND_S * got["tps"] / (options.tokens * work.clients)))
        else:
            mine.append(got)
            if other is not None:
                peer.append(other)
        done += 1
        if done == rounds and rounds >= ROUNDS_MIN:
            field = "decode_tps" if work.kind == "decode" else "tps"
            spread = records.spread(records.ratios([r[field] for r in mine], [r[field] for r in peer]))
            if spread > STEADY and rounds < ROUNDS_STEADY:
                rounds = ROUNDS_STEADY
            elif spread > UNSTABLE and rounds < ROUNDS_MAX:
                rounds = ROUNDS_MAX
    return dict(ours=mine, theirs=peer, waves=count, error=error)


def rows_of(work: Workload) -> list[tuple[str, str, str]]:
    """(key of the table, field of a round, unit) of the records that one workload gives."""
    if work.kind == "decode":
        return [(work.key, "decode_tps", "tok/s")]
    return [(work.key, "tps", "tok/s"), (f"{work.key} ttft", "ttft_ms", "ms")]


def record_of(options, subject: Subject, work: Workload, row: tuple, hello: dict | None, run: dict, context: dict) -> dict:
    key, field, unit = row
    ours, theirs = [r[field] for r in run["ours"]], [r[field] for r in run["theirs"]]
    paired = records.ratios(ours, theirs)
    unstable = records.spread(paired) > UNSTABLE
    baseline = {**hello, **records.summary(theirs), "n": len(theirs)} if theirs and hello else None
    return dict(
        kind="ttft" if field == "ttft_ms" else work.kind,
        command="bench/run serve",
        commit=machine.commit(ROOT),
        build="release",
        machine=dict(machine.describe(), clocks=dict(before=context["clocks"], after=machine.clocks_mhz())),
        idle=context["idle"],
        model=dict(repo=subject.title, rev=None, sha=subject.sha256),
        layout=subject.title.rsplit(" ", 1)[1].lower(),
        bpw=None,
        kv_mode="bf16",
        levers=dict(numerics=work.numerics),
        shape=dict(B=work.clients, T=options.tokens, S=run["ours"][-1]["prompt_tokens"] + options.tokens),
        threads=options.threads,
        n=len(ours),
        **records.summary(ours),
        unit=unit,
        share_of_roof=None,
        ids_equal=context["ids_equal"],
        kl=None,
        baseline=baseline,
        ratio=records.summary(paired)["median"] if baseline and not unstable else None,
        extra=dict(
            subject=subject.name,
            workload=key,
            peer="hearth bench" if work.kind == "decode" else "llama-server" if context["peer"] else None,
            spread=records.spread(ours),
            peer_spread=records.spread(theirs) if theirs else None,
            ratio_spread=records.spread(paired) if theirs else None,
            unstable=unstable,
            error=run["error"] or context["error"],
            foreign_cpu_share=context["foreign"],
            slots=SLOTS,
            added_ttft_ms=statistics.median(a for r in run["ours"] for a in r["added_ttft_ms"]),
            waves_a_round=run["waves"],
            ends_ignored_by="logit_bias",
            rounds=dict(ours=ours, peer=theirs),
        ),
    )


def greedy_text(server, subject: Subject) -> bytes:
    """The answer to one prompt, alone; it has to be the same before and after the rounds."""
    client = load.Client(server.host, server.port, load.body(PROBE, 32, subject.end_ids))
    client.send()
    while client.receive():
        pass
    client.result(32)
    client.socket.close()
    return client.text()


def run_workload(options, subject, model, work, ours, theirs, prompts, error, first) -> None:
    idle = machine.preflight(options.wait_s, load_counts=first)
    clocks = idle.pop("clocks_mhz")
    before, living = machine.CpuTime(), [s for s in (ours, theirs) if s is not None]
    text, spent = greedy_text(ours, subject), sum(s.cpu_seconds() for s in living)
    run = interleave(options, subject, model, work, ours, theirs if work.kind == "serve" else None, prompts)
    foreign = machine.foreign_share(before, machine.CpuTime(), sum(s.cpu_seconds() for s in living) - spent)
    if foreign > machine.LOAD_LIMIT / 2:
        idle["ok"] = False
        idle["reasons"].append(f"others used {100 * foreign:.0f} % of the cores during the rounds")
    context = dict(
        idle=idle, clocks=clocks, foreign=foreign, error=error, peer=theirs is not None,
        ids_equal=text == greedy_text(ours, subject),
    )  # fmt: skip
    hello = dict(name="hearth bench", version=machine.commit(ROOT), build="release") if work.kind == "decode" else None
    if work.kind == "serve" and theirs is not None:
        hello = theirs.hello
    for row in rows_of(work):
        record = records.append(options.out, record_of(options, subject, work, row, hello, run, context))
        ratio = "no ratio" if record["ratio"] is None else f"{record['ratio']:.2f}x"
        warning = "" if record["idle"]["ok"] else f"  NOT IDLE: {'; '.join(idle['reasons'])}"
        if not record["ids_equal"]:
            warning += "  ANSWERS DIFFER between two runs"
        print(f"  {row[0]:<14} {record['median']:9.1f} {row[2]:<5}  {ratio}{warning}", file=sys.stderr, flush=True)


def run_subject(options, subject: Subject, model: Path, first: bool) -> None:
    """All workloads of a model. One of our two servers runs at a time; the peer's sleeps while it is not asked."""
    theirs, error = None, None
    if options.peer_names:
        try:
            peers.install("llama-server")
            theirs = servers.Llama(model, options.threads, SLOTS, CONTEXT)
            print(f"bench: {subject.title} beside {theirs.hello['version']}", file=sys.stderr)
        except (peers.PeerError, OSError, subprocess.CalledProcessError) as failure:
            error = str(failure)
            print(f"bench: {subject.title}: {error}", file=sys.stderr)
    prompts = Prompts()
    wanted = [w for w in WORKLOADS if w.key in subject.goals and (not options.workloads or w.key in options.workloads)]
    try:
        for numerics in dict.fromkeys(w.numerics for w in wanted):
            with hearth_server(options, model, numerics) as ours:
                for work in [w for w in wanted if w.numerics == numerics]:
                    run_workload(options, subject, model, work, ours, theirs, prompts, error, first)
                    first = False
    except (peers.PeerError, load.LoadError, OSError) as failure:
        raise cpu.BenchError(f"{subject.title}: {failure}") from failure
    finally:
        if theirs is not None:
            theirs.close()
