"""The table of goals that records are held against: multiples of llama.cpp in the same run, shares of the read rate."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Goal:
    floor_ratio: float | None = None
    goal_ratio: float | None = None
    floor_read: float | None = None
    goal_read: float | None = None
    smaller: bool = False  # the ratio is of times: it has to stay at or below

    def verdict(self, ratio: float | None, share: float | None) -> str:
        """goal | floor | below | not measured."""

        def reached(ratio_needed, read_needed):
            needs = [(ratio_needed, ratio), (read_needed, share)]
            if any(needed is not None and got is None for needed, got in needs):
                return None
            return all(needed is None or (got <= needed if self.smaller else got >= needed) for needed, got in needs)

        floor = reached(self.floor_ratio, self.floor_read)
        if floor is None:
            return "not measured"
        if not floor:
            return "below"
        return "goal" if reached(self.goal_ratio, self.goal_read) else "floor"

    def text(self) -> str:
        def one(ratio, read):
            parts = [f"{'<= ' * self.smaller}{ratio:g}x" if ratio else "", f"{100 * read:.0f} % read" if read else ""]
            return " and ".join(p for p in parts if p)

        floor, goal = one(self.floor_ratio, self.floor_read), one(self.goal_ratio, self.goal_read)
        return f"{floor} / {goal}"


@dataclasses.dataclass(frozen=True)
class Subject:
    name: str
    title: str
    sha256: str
    goals: dict
    end_ids: tuple = ()  # ids that end an answer; needed where it is served


# Total tokens a second of so many clients over llama-server's in the same rounds (spec server 5); the time to the first
# token; one client's decoding over that of `hearth bench`.
SERVE = {
    "serve 1": Goal(2, 3),
    "serve 8": Goal(1.8, 2.6),
    "serve 32": Goal(2, 3),
    "serve 32 ttft": Goal(0.6, 0.6, smaller=True),
    "serve 32 fast": Goal(3, 3),
    "served decode": Goal(0.98, 0.98),
}


def _goals(decode: Goal, default: tuple, fast: tuple) -> dict:
    return {"decode": decode, "prefill": Goal(*default), "prefill fast": Goal(*fast)}


SUBJECTS = [
    Subject(
        "smollm2",
        "SmolLM2-135M Q4_1",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        _goals(Goal(2, 3, 0.85, 0.92), (3, 4), (5, 6.5)) | SERVE,
        end_ids=(0, 2),
    ),
    Subject(
        "gemma3-270m",
        "Gemma 3 270M Q4_K_M",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        _goals(Goal(1.5, 1.5, 0.90, 0.95), (1.4, 1.9), (2.5, 3.3)),
    ),
    Subject(
        "qwen2.5-coder-0.5b",
        "Qwen2.5-Coder 0.5B Q4_K_M",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        _goals(Goal(1.5, 1.5, 0.90, 0.95), (1.2, 1.6), (2, 2.8)) | {"serve 1": Goal(1.6, 1.6), "served decode": Goal(0.98, 0.98)},
        end_ids=(151643, 151645),
    ),
    Subject(
        "qwen2.5-coder-1.5b",
        "Qwen2.5-Coder 1.5B Q4_K_M",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        _goals(Goal(None, None, 0.90, 0.95), (0.8, 1.05), (1.25, 1.7)),
    ),
]
