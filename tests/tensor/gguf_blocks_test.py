"""decode() of every GGUF block type equals the gguf package bit for bit (spec/models.md 6, case 3)."""
import gguf
import numpy as np
import pytest
from tool import run_tool

CODECS = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
          "IQ4_XS", "MXFP4"]
BLOCKS = 10_000


def equal_bits(got, want):
    """Equal words; NaN equals NaN whatever its sign and payload."""
    nan = np.isnan(want)
    return np.array_equal(np.isnan(got), nan) and np.array_equal(got.view(np.uint32)[~nan], want.view(np.uint32)[~nan])


@pytest.mark.parametrize("codec", CODECS)
def test_random_blocks(codec):
    kind = gguf.GGMLQuantizationType[codec]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.default_rng(1000 + kind)
    rows = rng.integers(0, 256, (BLOCKS // 4, 4 * size), dtype=np.uint8)
    if codec == "F32":
        want = rows.view(np.float32)
    elif codec == "F16":
        want = rows.view(np.float16).astype(np.float32)
    else:
        with np.errstate(all="ignore"):
            want = gguf.quants.dequantize(rows, kind)
    got = np.frombuffer(run_tool("formats", "decode", codec.lower(), 4 * values, stdin=rows.tobytes()), np.float32)
    assert equal_bits(got, np.ascontiguousarray(want).reshape(-1))
