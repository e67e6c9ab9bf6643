"""Affine decoding and quantization equal mlx.core on the CPU bit for bit (spec/models.md 6, cases 3 and 4)."""
import mlx.core as mx
import numpy as np
import pytest
from tool import run_tool

mx.set_default_device(mx.cpu)
TYPES = {"f16": mx.float16, "bf16": mx.bfloat16, "f32": mx.float32}
CASES = [(b, g, t) for b in (2, 3, 4, 5, 6, 8) for g in (32, 64, 128) for t in TYPES]


def raw(a):
    """The bytes of an mlx array."""
    if a.dtype == mx.bfloat16:
        a = a.view(mx.uint16)
    return np.array(a).tobytes()


def groups(rng, rows, K):
    """Rows with every kind of group: normal, outliers, constant, zero, one-sided, tiny, huge, integers."""
    w = rng.standard_normal((rows, K)).astype(np.float32)
    w *= np.exp(rng.uniform(-12, 6, (rows, 1))).astype(np.float32)
    w[1] = 0
    w[2] = rng.standard_normal()
    w[3] = np.abs(w[3])
    w[4] = -np.abs(w[4])
    w[5, :: K // 4] = 1000
    w[6] = rng.integers(-8, 8, K)
    w[7] = 1e-30
    w[8, 1:] = 0
    w[9] = rng.choice([-1, 1], K)
    w[10] = np.linspace(-1, 1, K)
    w[11] = -0.0
    return w


@pytest.mark.parametrize("bits,group,kind", CASES)
def test_quantize_and_decode(bits, group, kind):
    K = 3 * group
    rng = np.random.default_rng(bits * 1000 + group)
    w = mx.array(groups(rng, 200, K)).astype(TYPES[kind])
    q, scales, biases = mx.quantize(w, group_size=group, bits=bits)
    floats = np.array(w.astype(mx.float32))
    got = run_tool("formats", "quantize", K, bits, group, kind, stdin=floats.tobytes())
    want = raw(q) + raw(scales) + raw(biases)
    assert got == want

    values = mx.dequantize(q, scales.astype(mx.float32), biases.astype(mx.float32), group_size=group, bits=bits)
    decoded = run_tool("formats", "decode", "affine", K, bits, group, kind, stdin=want)
    assert np.array_equal(np.frombuffer(decoded, np.uint32), np.array(values).view(np.uint32).reshape(-1))


@pytest.mark.parametrize("bits", (2, 3, 4, 5, 6, 8))
def test_decode_of_random_streams(bits):
    rng = np.random.default_rng(bits)
    N, K, group = 157, 128, 64
    q = rng.integers(0, 2**32, (N, K * bits // 32), dtype=np.uint32)
    scales, biases = (rng.standard_normal((N, K // group)).astype(np.float32) for _ in range(2))
    want = mx.dequantize(mx.array(q), mx.array(scales), mx.array(biases), group_size=group, bits=bits)
    got = run_tool("formats", "decode", "affine", K, bits, group, "f32", stdin=q.tobytes() + scales.tobytes() + biases.tobytes())
    assert np.array_equal(np.frombuffer(got, np.uint32), np.array(want).view(np.uint32).reshape(-1))
