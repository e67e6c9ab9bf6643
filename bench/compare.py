#!/usr/bin/env python3
"""The table of the records: model, ours, peer, ratio, share of the read rate, floor and goal.

    bench/compare.py [--records FILE] [--markdown] [--strict]

The newest record of each model, workload, peer, thread count and machine counts. Records made on a machine that was not idle
are marked and do not pass; a ratio is only ever of one run, and rounds that differ too much give none: they pass where
each of them does. --strict exits 1 where a floor is missed or not measured.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lib import cpu, records, serve  # noqa: E402
from lib.goals import SUBJECTS  # noqa: E402

COLUMNS = ["machine", "model", "workload", "ours tok/s", "peer", "peer tok/s", "ratio", "of read", "floor / goal", "met"]

# What the goals of each area's rows are multiples of.
AREAS = {
    "cpu": ([w.key for w in cpu.WORKLOADS], {"llama.cpp"}),
    "serve": (serve.KEYS, {"llama-server", "hearth bench"}),
}
AGAINST = {None, "llama.cpp", "llama-server", "hearth bench"}

EVERY_ROUND = " in every round (unstable)"


def newest(lines: list[dict]) -> dict:
    """(subject, workload, peer, machine, threads) -> its last record."""
    found = {}
    for record in lines:
        extra = record.get("extra") or {}
        if record.get("schema") == records.SCHEMA and "workload" in extra:
            key = (extra["subject"], extra["workload"], extra.get("peer"), records.cpu_name(record["machine"]), record["threads"])
            found[key] = record
    return found


def number(value, form: str, missing: str = "-") -> str:
    return missing if value is None else format(value, form)


def unsteady_verdict(record: dict, goal) -> str:
    """Rounds that differ too much give no ratio; their lowest one still tells what every round has reached."""
    rounds = record["extra"]["rounds"]
    worst = max if goal.smaller else min
    ratio = worst(records.ratios(rounds["ours"], rounds["peer"])) if rounds["peer"] else None
    verdict = goal.verdict(ratio, record["share_of_roof"])
    return verdict + EVERY_ROUND if verdict in ("floor", "goal") and record["ids_equal"] and record["idle"]["ok"] else "unstable"


def row(subject, workload: str, record: dict | None) -> tuple[list[str], bool]:
    """Cells, and whether the floor holds."""
    goal = subject.goals[workload]
    if record is None:
        return ["-", subject.title, workload, *["-"] * 5, goal.text(), "not measured"], False
    baseline, share = record["baseline"], record["share_of_roof"]
    against_goal = record["extra"].get("peer") in AGAINST
    verdict = goal.verdict(record["ratio"], share) if against_goal else ""
    if record["extra"].get("unstable"):
        verdict = unsteady_verdict(record, goal) if against_goal else "unstable"
    elif not record["ids_equal"]:
        verdict = "ids differ"
    elif not record["idle"]["ok"]:
        verdict += " (not idle)"
    cells = [
        records.cpu_name(record["machine"]),
        subject.title,
        workload,
        f"{record['median']:.1f}" + (" ms" if record["unit"] == "ms" else ""),
        baseline["name"] if baseline else "-",
        number(baseline and baseline["median"], ".1f"),
        number(record["ratio"], ".2f"),
        number(share and 100 * share, ".0f") + (" %" if share else ""),
        goal.text() if against_goal else "",
        verdict,
    ]
    return cells, verdict.removesuffix(EVERY_ROUND) in ("floor", "goal") or not against_goal


def table(lines: list[dict], area: str = "cpu") -> tuple[list[list[str]], bool]:
    found, rows, passed = newest(lines), [], True
    keys, against = AREAS[area]
    for subject in SUBJECTS:
        for workload in [k for k in keys if k in subject.goals]:
            matching = [r for key, r in found.items() if key[:2] == (subject.name, workload)]
            # The goals are multiples of a peer; without a record beside it the row says so.
            if not any(r["extra"].get("peer") in against for r in matching):
                matching.insert(0, None)
            for record in matching:
                cells, good = row(subject, workload, record)
                rows.append(cells)
                passed &= good
    return rows, passed


def show(rows: list[list[str]], markdown: bool) -> str:
    every = [COLUMNS, *rows]
    widths = [max(len(r[i]) for r in every) for i in range(len(COLUMNS))]
    left, between, right = ("| ", " | ", " |") if markdown else ("", "  ", "")
    lines = [left + between.join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + right for r in every]
    if markdown:
        lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(line.rstrip() for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="the table of bench records")
    parser.add_argument("--records", type=Path, help="default: every area's file in bench/records")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--strict", action="store_true")
    args = parser.parse_args()
    folder = Path(__file__).resolve().parent / "records"
    rows, passed = [], True
    for area in AREAS:
        more, good = table(records.read(args.records or folder / f"{area}.ndjson"), area)
        rows += more
        passed &= good
    print(show(rows, args.markdown))
    return 1 if args.strict and not passed else 0


if __name__ == "__main__":
    sys.exit(main())
