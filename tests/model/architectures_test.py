"""Every architecture and weight layout, as a tiny random checkpoint, against mlx-lm on the CPU.

What may differ follows from the activation type: oracle.tiny.bound plays rounding errors through the model itself.
"""

import numpy as np
import pytest
from oracle import measure, tiny

ALL = list(tiny.CASES)
# The parity tests are the dearest: two layouts of three wait for the full tier.
PARITY = [n if i % 3 == 0 else pytest.param(n, marks=pytest.mark.full) for i, n in enumerate(ALL)]
STEPS = slice(tiny.PROMPT - 1, None)


def wanted(made):
    return np.array(made.ids[tiny.PROMPT :])


@pytest.mark.parametrize("name", ALL)
def test_reference_executor_equals_the_float32_oracle(hearth, checkpoint, name):
    made = checkpoint(name)
    want = made.float32
    got = hearth.logits(made.path, made.forced, executor="reference", kv="f32")
    assert got.shape == want.shape
    worst = np.unravel_index(np.abs(got - want).argmax(), want.shape)
    assert np.abs(got - want).max() <= made.float32_bound, f"at {worst}: {got[worst]} for {want[worst]}"
    assert (got[STEPS].argmax(axis=-1) == wanted(made)).all()


@pytest.mark.parametrize("executor", ["reference", "cpu"])
@pytest.mark.parametrize("name", PARITY)
def test_parity_mode_is_faithful_to_mlx(hearth, checkpoint, name, executor):
    made = checkpoint(name)
    rounded, native = made.rounded, made.native
    got = hearth.logits(made.path, made.forced, executor=executor, numerics="parity")
    assert (got[STEPS].argmax(axis=-1) == native[STEPS].argmax(axis=-1)).all()
    assert (got[STEPS].argmax(axis=-1) == wanted(made)).all()
    assert np.abs(got - rounded).max() <= made.rounding_bound


@pytest.mark.parametrize("name", ALL)
def test_cpu_executor_in_default_mode_stays_near_float32(hearth, checkpoint, name):
    made = checkpoint(name)
    seen = measure.Agreement().add(made.float32, hearth.logits(made.path, made.forced))
    assert seen.kl <= 3e-4, str(seen)
    assert seen.top1 >= 0.99, str(seen)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", ["llama-bf16", "qwen2-q4", "qwen3-mixed", "gemma3-q8"])
def test_quantized_kv_stores_what_the_affine_formula_gives(hearth, checkpoint, name, bits):
    made = checkpoint(name)
    want = tiny.float32_logits(made, kv_bits=bits)
    got = hearth.logits(made.path, made.forced, executor="reference", kv=f"q{bits}")
    seen = measure.Agreement().add(want, got)
    cost = measure.Agreement().add(made.float32, want)
    # A last-bit difference moves a stored value by a whole level, so bits cannot be asked for; but such flips are rare:
    # the two must lie far nearer to each other than quantization itself moved the model.
    assert seen.kl <= 0.05 * cost.kl, f"{seen}; quantization itself: {cost}"


def test_the_same_program_reads_one_file_or_shards(hearth, checkpoint):
    whole, sharded = checkpoint("llama-q4"), checkpoint("llama-sharded-q4")
    assert len(list(sharded.path.glob("*.safetensors"))) == 3
    same = [hearth.logits(made.path, made.forced) for made in (whole, sharded)]
    assert same[0].tobytes() == same[1].tobytes()


def test_generate_picks_the_largest_logit_at_every_step(hearth, checkpoint):
    made = checkpoint("qwen3-bf16")
    flags = ["--raw", "--max-tokens", 20, "--temperature", 0, "--ids"]
    answer = hearth.json("generate", made.path, "-p", "the hearth is warm", *flags)
    prompt, ids = answer["prompt_ids"], answer["ids"]
    logits = hearth.logits(made.path, (prompt + ids)[:-1])
    assert ids == [int(i) for i in logits[len(prompt) - 1 :].argmax(axis=-1)]
    assert answer["finish_reason"] == ("stop" if len(ids) < 20 else "length")
    assert answer["stats"]["prompt_tokens"] == len(prompt)
    assert answer["stats"]["generated_tokens"] == len(ids)
