"""What tests compare: KL, agreement and margins of logits."""

import dataclasses

import numpy as np


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """float64 log-probabilities of rows [T, V]."""
    z = logits.astype(np.float64)
    z -= z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


@dataclasses.dataclass
class Agreement:
    """Sums over positions, so that windows can be added up."""

    positions: int = 0
    kl_sum: float = 0.0
    kl_max: float = 0.0
    same: int = 0
    max_difference: float = 0.0

    @property
    def kl(self) -> float:
        return self.kl_sum / self.positions

    @property
    def top1(self) -> float:
        return self.same / self.positions

    def add(self, reference: np.ndarray, other: np.ndarray, rows: int = 64) -> "Agreement":
        """KL(reference || other) in nats, argmax (ties: the lower id) and the largest difference of logits."""
        if reference.shape != other.shape:
            raise ValueError(f"logits of shapes {reference.shape} and {other.shape}")
        for begin in range(0, len(reference), rows):
            a, b = reference[begin : begin + rows], other[begin : begin + rows]
            if not (np.isfinite(a).all() and np.isfinite(b).all()):
                raise ValueError(f"logits of positions {begin} to {begin + len(a) - 1} hold NaN or infinity")
            p, r = log_softmax(a), log_softmax(b)
            kl = (np.exp(p) * (p - r)).sum(axis=-1)
            self.positions += len(a)
            self.kl_sum += float(kl.sum())
            self.kl_max = max(self.kl_max, float(kl.max()))
            self.same += int((a.argmax(axis=-1) == b.argmax(axis=-1)).sum())
            self.max_difference = max(self.max_difference, float(np.abs(a - b).max()))
        return self

    def __str__(self) -> str:
        return (
            f"{self.positions} positions: mean KL {self.kl:.3e}, max KL {self.kl_max:.3e}, top-1 {100 * self.top1:.2f} %, "
            f"max |difference| {self.max_difference:.3e}"
        )


def margins(logits: np.ndarray) -> np.ndarray:
    """First minus second largest logit of each row."""
    top = np.partition(logits, -2, axis=-1)[:, -2:]
    return top[:, 1] - top[:, 0]
