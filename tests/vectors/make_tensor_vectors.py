"""Writes tensor.hvec: conversions of 16-bit floats, GGUF blocks, affine groups. Made with numpy 2.4.6, gguf 0.19.0 and
mlx 0.32.4 (CPU), seed 20. Run: python tests/vectors/make_tensor_vectors.py"""
import gguf
import hvec
import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)
TYPES = {"f16": mx.float16, "bf16": mx.bfloat16, "f32": mx.float32}
CODECS = ["BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS",
          "MXFP4"]
rng = np.random.default_rng(20)
out = {}


def raw(a):
    if a.dtype == mx.bfloat16:
        a = a.view(mx.uint16)
    return np.array(a).tobytes()


# fp32 -> f16, bf16: random bits, and values near the f16 range.
bits = rng.integers(0, 2**32, 4000, dtype=np.uint32)
near = (rng.standard_normal(4000) * np.exp2(rng.uniform(-27, 18, 4000))).astype(np.float32).view(np.uint32)
x = np.concatenate([bits, near]).view(np.float32)
x = x[~np.isnan(x)]
with np.errstate(over="ignore"):
    out["convert.f32"], out["convert.f16"] = x.tobytes(), x.astype(np.float16).tobytes()
out["convert.bf16"] = raw(mx.array(x).astype(mx.bfloat16))

for codec in CODECS:
    kind = gguf.GGMLQuantizationType[codec]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    count = max(2, 512 // values)
    rows = rng.integers(0, 256, (2, count * size), dtype=np.uint8)
    with np.errstate(all="ignore"):
        want = np.ascontiguousarray(gguf.quants.dequantize(rows, kind), np.float32)
    out[f"{codec.lower()}.blocks"], out[f"{codec.lower()}.values"] = rows.tobytes(), want.tobytes()

for b in (2, 3, 4, 5, 6, 8):
    for g in (32, 64, 128):
        for name, kind in TYPES.items():
            w = rng.standard_normal((4, 2 * g)).astype(np.float32)
            w[1, :g], w[1, g:], w[2] = 0, 0.3, np.abs(w[2])
            w[3, 5] = 40
            w = mx.array(w).astype(kind)
            q, s, z = mx.quantize(w, group_size=g, bits=b)
            values = mx.dequantize(q, s.astype(mx.float32), z.astype(mx.float32), group_size=g, bits=b)
            case = f"affine{b}_g{g}_{name}"
            out |= {f"{case}.w": raw(w.astype(mx.float32)), f"{case}.q": raw(q), f"{case}.scales": raw(s),
                    f"{case}.biases": raw(z), f"{case}.values": raw(values)}
hvec.write("tensor.hvec", out)
