"""The oracles themselves: an oracle that is wrong, or too forgiving, judges nothing."""

import gguf
import mlx.core as mx
import numpy as np
import pytest
from oracle import gguf_f32, host, measure, tiny
from oracle.gguf_ids import Words


def test_numpy_products_equal_mlx_products():
    rng = np.random.default_rng(3)
    x, w, b = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 96), (70, 96), (70,)))
    want = np.array(mx.array(x) @ mx.array(w).T + mx.array(b))
    got = np.array(host.HostLinear(w, b)(mx.array(x)))
    np.testing.assert_allclose(got, want, rtol=0, atol=96 * 2.0**-24 * np.abs(x).max() * np.abs(w).sum(axis=1).max())


@pytest.mark.parametrize("base", [1e4, 1e6])
def test_exact_rope_turns_as_mlx_does(base):
    x = np.random.default_rng(4).normal(size=(1, 2, 64, 64)).astype(np.float32)
    want = np.array(mx.fast.rope(mx.array(x), 64, traditional=False, base=base, scale=1.0, offset=7))
    got = np.array(host.ExactRope(host.inverse_frequencies(base, 64))(mx.array(x), offset=7))
    # mlx's frequencies carry float32 errors of exp and log: 71 positions times a few 2^-24, on values up to 5.
    np.testing.assert_allclose(got, want, rtol=0, atol=71 * 8 * 2.0**-24 * 5)


def test_unpermute_undoes_the_pair_order_of_llama_files():
    heads, width = 3, 8
    rows = np.arange(heads * width * 2).reshape(heads * width, 2)
    # The converter's own rule: each head's halves are interleaved.
    stored = rows.reshape(heads, 2, width // 2, 2).swapaxes(1, 2).reshape(rows.shape)
    assert (stored != rows).any()
    assert (gguf_f32.unpermute(stored, heads) == rows).all()


def test_gguf_file_without_a_needed_tensor_is_refused(tmp_path):
    path = tmp_path / "broken.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in (("embedding_length", 32), ("block_count", 1), ("feed_forward_length", 32), ("context_length", 64)):
        writer.add_uint32(f"llama.{key}", value)
    writer.add_uint32("llama.attention.head_count", 1)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_tensor("token_embd.weight", np.zeros((40, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(KeyError, match="output_norm.weight"):
        gguf_f32.load(path)


@pytest.mark.parametrize(
    ("name", "prompt", "wanted"),
    [
        ("smollm2", "The capital of France is", "Paris"),
        pytest.param("gemma", "The capital of France is Paris. The capital of Germany is", "Berlin", marks=pytest.mark.full),
        pytest.param("qwen-0.5b", "The capital of France is", "Paris", marks=pytest.mark.full),
        pytest.param("qwen-1.5b", "The capital of France is", "Paris", marks=pytest.mark.full),
    ],
)
def test_the_gguf_oracle_answers_sensibly(oracle, model_file, name, prompt, wanted):
    words = Words(model_file(name))
    ids = host.greedy(oracle(name).model, words.encode(prompt), 6, stop={words.eos})
    assert wanted in words.decode(ids)


def test_a_checkpoint_is_the_same_for_the_same_seed(tmp_path):
    first, second = (tiny.make(tiny.CASES["gemma3-mixed"], tmp_path / name) for name in ("a", "b"))
    assert first.ids == second.ids
    for file in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (first.path / file).read_bytes() == (second.path / file).read_bytes()


@pytest.mark.parametrize("name", ["llama-q4", "qwen2-bf16", "qwen3-f16", "gemma3-mixed"])
def test_checkpoints_are_well_conditioned_and_bounds_hold_between_oracles(checkpoint, name):
    made = checkpoint(name)
    exact, native, rounded, bound = made.float32, made.native, made.rounded, made.rounding_bound
    assert np.abs(rounded - exact).max() <= bound
    steps, wanted = slice(tiny.PROMPT - 1, None), np.array(made.ids[tiny.PROMPT :])
    for logits in (exact, native, rounded):
        assert (logits[steps].argmax(axis=-1) == wanted).all()
    assert (measure.margins(rounded[steps]) > 2 * bound).sum() >= 90
    # And the float32 bound is one that bf16 or f16 arithmetic cannot meet.
    assert np.abs(rounded - exact).max() > 5 * made.float32_bound


def _wrong(made, change):
    """Logits of the float32 oracle with one thing about it changed."""
    model = tiny.float32_oracle(made)
    change(model)
    return host.forward(model, made.forced)


def _no_query_norm(model):
    model.model.layers[2].self_attn.q_norm.weight = mx.ones_like(model.model.layers[2].self_attn.q_norm.weight)


def _other_rope_base(model):
    model.model.layers[1].self_attn.rope = host.ExactRope(host.inverse_frequencies(1.1e6, 64))


def _other_eps(model):
    model.model.layers[0].input_layernorm.eps = 1e-4


def _other_scale(model):
    model.model.layers[3].self_attn.scale *= 1.01


@pytest.mark.parametrize("change", [_no_query_norm, _other_rope_base, _other_eps, _other_scale])
def test_a_small_mistake_in_one_layer_exceeds_the_float32_bound(checkpoint, change):
    made = checkpoint("qwen3-q4")
    difference = np.abs(_wrong(made, change) - made.float32).max()
    assert difference > made.float32_bound


def test_kl_of_known_distributions():
    p, q = np.array([[0.5, 0.25, 0.25]]), np.array([[0.25, 0.5, 0.25]])
    seen = measure.Agreement().add(np.log(p).astype(np.float32) + 3, np.log(q).astype(np.float32) - 1)
    assert seen.kl == pytest.approx(0.25 * np.log(2), rel=1e-6)
    assert seen.top1 == 0
    same = measure.Agreement().add(np.log(p), np.log(p))
    assert (same.kl, same.top1, same.max_difference) == (0, 1, 0)
    with pytest.raises(ValueError, match="NaN"):
        measure.Agreement().add(np.log(p), np.log(p) * np.nan)
