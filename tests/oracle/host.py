"""float32 layers for mlx-lm's model classes, with the matrix products done by numpy.

mlx-lm gives the structure of each architecture (the thing that is easily got wrong); its CPU matrix product is some
fifty times slower than numpy's, so linear and embedding layers are replaced by ones that keep their weight in numpy.
Everything between the products stays mlx-lm's own code. RoPE is replaced too, see ExactRope.
"""

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models.cache import KVCache, make_prompt_cache


def to_numpy(x: mx.array) -> np.ndarray:
    """A float32 copy of an mlx array of any float type."""
    return np.array(x.astype(mx.float32), copy=True)


class _Hidden:
    """Holds numpy arrays where mlx's parameter tree does not look."""

    def __init__(self, **arrays):
        self.__dict__.update(arrays)


class HostLinear(nn.Module):
    """y = x W^T + b with W [N, K] and b [N]; products and sums in `dtype`, the result float32."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None = None, dtype=np.float32):
        super().__init__()
        self._host = _Hidden(
            weight=np.ascontiguousarray(weight, dtype=dtype),
            bias=None if bias is None else bias.astype(dtype),
            dtype=dtype,
        )

    def __call__(self, x: mx.array) -> mx.array:
        host = self._host
        rows = to_numpy(x).reshape(-1, host.weight.shape[1]).astype(host.dtype, copy=False)
        y = rows @ host.weight.T
        if host.bias is not None:
            y += host.bias
        return mx.array(y.reshape(*x.shape[:-1], -1).astype(np.float32, copy=False))


class HostEmbedding(nn.Module):
    """A table [V, D]: gathered by id, or used as the head when tied."""

    def __init__(self, weight: np.ndarray, dtype=np.float32):
        super().__init__()
        self._host = _Hidden(table=weight, head=HostLinear(weight, dtype=dtype))

    def __call__(self, ids: mx.array) -> mx.array:
        return mx.array(self._host.table[np.array(ids)].astype(np.float32, copy=False))

    def as_linear(self, x: mx.array) -> mx.array:
        return self._host.head(x)


class PlainRmsNorm(nn.Module):
    """x / sqrt(mean x^2 + eps) * w, for weights that already hold 1 + w."""

    def __init__(self, weight: np.ndarray, eps: float):
        super().__init__()
        self.weight = mx.array(weight.astype(np.float32))
        self.eps = eps

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.rms_norm(x, self.weight, self.eps)


class ExactRope(nn.Module):
    """Half-split rotation by positions * inv_freq.

    mlx derives its frequencies through float32 exp and log, which costs up to 2e-5 radians at position 255. Here
    inv_freq [Dh / 2] is computed in float64 and rounded once, the angle is one float32 product, and its cosine and
    sine are those of that angle, correctly rounded.
    """

    def __init__(self, inv_freq: np.ndarray):
        super().__init__()
        self._host = _Hidden(inv_freq=inv_freq.astype(np.float32))

    def __call__(self, x: mx.array, offset: int = 0) -> mx.array:
        positions = np.arange(offset, offset + x.shape[-2], dtype=np.float32)
        angles = (positions[:, None] * self._host.inv_freq[None, :]).astype(np.float64)
        cos, sin = mx.array(np.cos(angles).astype(np.float32)), mx.array(np.sin(angles).astype(np.float32))
        half = x.shape[-1] // 2
        a, b = x[..., :half], x[..., half:]
        return mx.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def inverse_frequencies(base: float, width: int) -> np.ndarray:
    """base^(-2i / width) for i < width / 2, in float64."""
    return np.float64(base) ** (-np.arange(0, width, 2, dtype=np.float64) / width)


class QuantizedRoundTrip(KVCache):
    """A KV cache that stores what an affine cache of `bits` bits would give back (groups of 64 along the head width).

    q comes from the unrounded scale and bias, which are then stored as bf16; values are used as s q + b in float32.
    """

    GROUP = 64

    def __init__(self, bits: int):
        super().__init__()
        self.kv_bits = bits

    def update_and_fetch(self, keys, values):
        return super().update_and_fetch(self._stored(keys), self._stored(values))

    def _stored(self, x: mx.array) -> mx.array:
        q, s, b = mx.quantize(x.astype(mx.float32), group_size=self.GROUP, bits=self.kv_bits)
        s, b = s.astype(mx.bfloat16).astype(mx.float32), b.astype(mx.bfloat16).astype(mx.float32)
        return mx.dequantize(q, s, b, group_size=self.GROUP, bits=self.kv_bits)


def forward(model: nn.Module, ids, rows: int = 256, kv_bits: int = 0) -> np.ndarray:
    """Teacher-forced float32 logits [T, V]. The cache is fed `rows` ids at a time; kv_bits 4 or 8 quantizes it."""
    ids = np.asarray(ids, dtype=np.int32)
    if kv_bits and len(ids) > rows:
        raise ValueError("a quantized cache is only fed in one piece here: it does not drop positions behind a window")
    cache = [QuantizedRoundTrip(kv_bits) for _ in model.layers] if kv_bits else make_cache(model)
    parts = []
    for begin in range(0, len(ids), rows):
        parts.append(to_numpy(model(mx.array(ids[None, begin : begin + rows]), cache=cache))[0])
    return np.concatenate(parts)


def make_cache(model: nn.Module):
    return make_prompt_cache(model)


def greedy(model: nn.Module, prompt, count: int, stop=()) -> list[int]:
    """`count` ids by argmax (ties: the lower id), or fewer when an id of `stop` comes; that id is included."""
    cache = make_cache(model)
    logits = to_numpy(model(mx.array(np.asarray(prompt, dtype=np.int32)[None]), cache=cache))[0, -1]
    ids = []
    while len(ids) < count:
        ids.append(int(np.argmax(logits)))
        if ids[-1] in stop:
            break
        logits = to_numpy(model(mx.array([[ids[-1]]]), cache=cache))[0, -1]
    return ids
