"""Runs the hearth binary (HEARTH_BIN) and reads what it writes."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def available_isas() -> list[str]:
    """The instruction sets that this CPU has, as HEARTH_ISA names them, worst first."""
    flags: set[str] = set()
    cpuinfo = Path("/proc/cpuinfo")
    for line in cpuinfo.read_text().splitlines() if cpuinfo.exists() else []:
        if line.startswith("flags"):
            flags = set(line.split(":", 1)[1].split())
            break
    needs = {
        "generic": set(),
        "avx2": {"avx2", "fma", "f16c"},
        "avx512": {"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"},
        "amx": {"avx512f", "avx512_vnni", "amx_tile", "amx_int8"},
    }
    return [name for name, needed in needs.items() if needed <= flags]


class Failed(AssertionError):
    """hearth ended with another exit code than asked for."""


class Hearth:
    def __init__(self, binary: str | None = None, timeout_s: float = 3600):
        self.binary = Path(binary or os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth")
        self.timeout_s = timeout_s

    def run(self, *args, env: dict | None = None, exit_code: int = 0) -> subprocess.CompletedProcess:
        command = [str(self.binary), *map(str, args)]
        done = subprocess.run(
            command, capture_output=True, env={**os.environ, **(env or {})}, timeout=self.timeout_s, check=False
        )
        if done.returncode != exit_code:
            raise Failed(
                f"{' '.join(command)}: exit {done.returncode}, wanted {exit_code}\n{done.stderr.decode('utf-8', 'replace')}"
            )
        return done

    def json(self, *args, **kwargs) -> dict:
        return json.loads(self.run(*args, "--json", **kwargs).stdout)

    def logits(self, model, ids, *, executor="cpu", numerics=None, kv=None, threads=None, chunk=None, isa=None, adapter=None):
        """Teacher-forced float32 logits [T, V]."""
        with tempfile.TemporaryDirectory() as folder:
            given, out = Path(folder) / "ids.txt", Path(folder) / "logits.npy"
            given.write_text(",".join(map(str, ids)))
            flags = ["--ids", f"@{given}", "--out", out, "--executor", executor]
            optional = {
                "--numerics": numerics, "--kv": kv, "--threads": threads, "--prefill-chunk": chunk, "--adapter": adapter
            }  # fmt: skip
            for name, value in optional.items():
                if value is not None:
                    flags += [name, value]
            self.run("logits", model, *flags, env={"HEARTH_ISA": isa} if isa else None)
            result = np.load(out)
        if result.dtype != np.float32 or result.ndim != 2 or len(result) != len(ids):
            raise AssertionError(f"hearth logits wrote {result.dtype} {result.shape} for {len(ids)} ids")
        return result
