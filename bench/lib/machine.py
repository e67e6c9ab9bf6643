"""What a record says about the machine, and whether it was idle."""

import os
import subprocess
import time
from pathlib import Path

FLAGS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16")
LOAD_LIMIT = 0.3  # a core
CLOCK_LIMIT = 0.05  # relative change within three seconds


def _cpuinfo() -> list[tuple[str, str]]:
    pairs = (line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    return [(key.strip(), value.strip()) for key, value in pairs]


def clocks_mhz() -> list[float]:
    return [float(value) for key, value in _cpuinfo() if key == "cpu MHz"]


def describe() -> dict:
    info = dict(reversed(_cpuinfo()))  # the first core's entries win
    flags = set(info.get("flags", "").split())
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return dict(
        cpu=info.get("model name", "unknown"),
        family=f"{info.get('cpu family')}/{info.get('model')}/{info.get('stepping')}",
        flags=[f for f in FLAGS if f in flags],
        cores=len(os.sched_getaffinity(0)),
        ram=1024 * int(memory.split()[1]),
        gpu=None,
        driver=None,
        huge_pages=_read("/sys/kernel/mm/transparent_hugepage/enabled"),
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    )


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


class CpuTime:
    """Ticks of all cores since the machine started: busy ones, and those that the host took away."""

    def __init__(self):
        fields = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        user, nice, system, idle, iowait, irq, softirq, steal = fields[:8]
        self.busy = user + nice + system + irq + softirq
        self.stolen = steal
        self.total = self.busy + self.stolen + idle + iowait
        times = os.times()
        ticks = os.sysconf("SC_CLK_TCK")
        self.own = ticks * (times.user + times.system + times.children_user + times.children_system)


def foreign_share(before: CpuTime, after: CpuTime, living: float = 0.0) -> float:
    """Share of the cores' time that went to neither us nor idling. `living`: seconds of our children still running."""
    total = after.total - before.total
    own = after.own - before.own + living * os.sysconf("SC_CLK_TCK")
    foreign = (after.busy - before.busy) + (after.stolen - before.stolen) - own
    return max(0.0, foreign / total) if total > 0 else 0.0


def process_seconds(pid: int) -> float:
    """CPU seconds of a living process, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def preflight(wait_s: float = 0.0, load_counts: bool = True) -> dict:
    """Load, other processes and clocks over three seconds; waits up to `wait_s` for an idle machine."""
    deadline = time.monotonic() + wait_s
    while True:
        before, clocks = CpuTime(), clocks_mhz()
        time.sleep(3)
        busy, now = foreign_share(before, CpuTime()), clocks_mhz()
        drift = max((abs(a - b) / a for a, b in zip(clocks, now, strict=True) if a > 0), default=0.0)
        load = os.getloadavg()[0] / len(os.sched_getaffinity(0))
        reasons = []
        if load > LOAD_LIMIT and load_counts:
            reasons.append(f"load {load:.2f} a core")
        if busy > LOAD_LIMIT / 2:
            reasons.append(f"others use {100 * busy:.0f} % of the cores")
        if drift > CLOCK_LIMIT:
            reasons.append(f"clocks moved by {100 * drift:.0f} %")
        if not reasons or time.monotonic() >= deadline:
            return dict(load=round(load, 3), gpu_util=0, ok=not reasons, reasons=reasons, clocks_mhz=now)


def commit(root: Path) -> str:
    """The short commit, with + when tracked files of the sources differ from it."""

    def git(*args):
        return subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "CMakeLists.txt", "cmake")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
