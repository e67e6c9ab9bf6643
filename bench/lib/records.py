"""Record lines (NDJSON, one write each) and their statistics."""

import json
import os
import statistics
import time
import uuid
from pathlib import Path

SCHEMA = 1
LINE_MAX = 64 * 1024
NEEDED = ("kind", "command", "commit", "machine", "idle", "model", "shape", "threads", "n", "median", "p10", "p90", "unit")


def cpu_name(machine: dict) -> str:
    """The CPU as tables tell it apart: clouds give many CPUs one name, and CPUs of one family have AMX or not."""
    flags = machine.get("flags", [])
    isa = "AMX" if "amx_int8" in flags else "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else None
    family = f"family {machine['family']}" if machine.get("family") else None
    parts = ", ".join(part for part in (family, isa) if part)
    return (machine.get("cpu") or "unnamed CPU") + (f" ({parts})" if parts else "")


def percentile(values, share: float) -> float:
    """Linear interpolation between order statistics."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def summary(values) -> dict:
    return dict(median=statistics.median(values), p10=percentile(values, 0.1), p90=percentile(values, 0.9))


def spread(values) -> float:
    """(p90 - p10) / median."""
    s = summary(values)
    return (s["p90"] - s["p10"]) / s["median"]


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Round by round; what disturbs both sides of a round cancels out. Ours alone where there is no peer."""
    return [a / b for a, b in zip(ours, theirs, strict=True)] if theirs else ours


class Refused(ValueError):
    """A record that may not be written."""


def check(record: dict) -> None:
    missing = [key for key in NEEDED if record.get(key) is None]
    if missing:
        raise Refused(f"record without {', '.join(missing)}")
    if record.get("ids_equal") is None and record.get("kl") is None:
        raise Refused("record without ids_equal or kl: speed without a check of the answers counts for nothing")
    if (record.get("ratio") is None) != (record.get("baseline") is None or record["extra"].get("unstable", False)):
        raise Refused("a ratio needs a baseline of the same run, and a steady one")


def append(path: Path, record: dict) -> dict:
    """Adds id, time and schema, checks, and appends one line with one write."""
    stamped = dict(schema=SCHEMA, id=uuid.uuid4().hex, time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **record)
    check(stamped)
    line = (json.dumps(stamped, separators=(",", ":")) + "\n").encode()
    if len(line) > LINE_MAX:
        raise Refused(f"record of {len(line)} bytes, at most {LINE_MAX} allowed")
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, (b"\n" if torn else b"") + line)
    finally:
        os.close(descriptor)
    return stamped


def read(path: Path) -> list[dict]:
    """All whole lines; a torn one is left out."""
    records = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records
