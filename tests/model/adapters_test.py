"""LoRA adapters against mlx-lm on the CPU, and the same numbers in PEFT's files (spec models 12, server 27)."""

import json

import mlx.core as mx
import numpy as np
import pytest
from oracle import adapters, measure, program, tiny

NAMES = ["llama-bf16", "llama-q4", "qwen2-q8", "gemma3-mixed"]
SCALE = 2.0
STEPS = slice(tiny.PROMPT - 1, None)


@pytest.fixture(scope="module")
def adapted(checkpoint, tmp_path_factory):
    """adapted(name) -> checkpoint, native folder, PEFT folder, mlx-lm's float32 logits."""
    made = {}

    def get(name):
        if name not in made:
            base, root = checkpoint(name), tmp_path_factory.mktemp("adapters")
            factors = adapters.draw(base, rank=8, seed=3)
            native = adapters.write_native(root / "native", factors, SCALE)
            peft = adapters.write_peft(root / "peft", factors, SCALE, mx.bfloat16)
            made[name] = base, native, peft, adapters.float32_logits(base, native)
        return made[name]

    return get


@pytest.mark.parametrize("name", NAMES)
def test_reference_executor_equals_mlx_lm_in_float32(hearth, adapted, name):
    base, native, peft, want = adapted(name)
    bound = adapters.bound(base, native, want, 2.0**-24 * 384**0.5)
    assert np.abs(want - base.float32).max() > 1000 * bound  # the adapter does something
    for path in (native, peft):
        got = hearth.logits(base.path, base.forced, executor="reference", kv="f32", adapter=path)
        assert np.abs(got - want).max() <= bound


@pytest.mark.parametrize("name", NAMES)
def test_default_mode_stays_near_float32(hearth, adapted, name):
    base, native, _, want = adapted(name)
    seen = measure.Agreement().add(want, hearth.logits(base.path, base.forced, adapter=native))
    assert seen.kl <= 3e-4, str(seen)
    assert seen.top1 >= 0.97, str(seen)


def test_parity_mode_follows_mlx_lm_itself(hearth, adapted):
    base, native, _, want = adapted("llama-bf16")
    got = hearth.logits(base.path, base.forced, numerics="parity", adapter=native)
    assert np.abs(got - adapters.native_logits(base, native)).max() <= adapters.bound(base, native, want, base.case.eps)


def test_files_of_both_kinds_give_the_same_bits(hearth, adapted, tmp_path):
    base, native, peft, _ = adapted("llama-q4")
    want = hearth.logits(base.path, base.forced, adapter=native).tobytes()
    assert hearth.logits(base.path, base.forced, adapter=peft).tobytes() == want
    factors = adapters.draw(base, rank=16, seed=4)  # alpha / sqrt(16) is exact
    plain = adapters.write_native(tmp_path / "plain", factors, SCALE)
    rslora = adapters.write_peft(tmp_path / "rslora", factors, SCALE, rslora=True)
    same = [hearth.logits(base.path, base.forced, adapter=path).tobytes() for path in (plain, rslora)]
    assert same[0] == same[1]


def test_every_instruction_set_chunk_and_thread_gives_the_same_bits(hearth, adapted):
    base, native, _, _ = adapted("llama-q4")
    want = hearth.logits(base.path, base.forced, adapter=native).tobytes()
    for isa in program.available_isas():
        for chunk, threads in ((1, 1), (7, 2), (64, 2)):
            got = hearth.logits(base.path, base.forced, adapter=native, isa=isa, chunk=chunk, threads=threads)
            assert got.tobytes() == want, f"{isa}, chunks of {chunk}"


def test_zero_factors_and_none_are_the_base(hearth, checkpoint, tmp_path):
    base = checkpoint("llama-q4")
    factors = {m: (a, 0 * b) for m, (a, b) in adapters.draw(base, rank=4, seed=1).items()}
    zero = adapters.write_native(tmp_path / "zero", factors, SCALE)
    want = hearth.logits(base.path, base.forced).tobytes()
    assert hearth.logits(base.path, base.forced, adapter=zero).tobytes() == want
    assert hearth.logits(base.path, base.forced, adapter="none").tobytes() == want


def test_kl_sets_the_sides_apart_by_adapter(hearth, adapted, tmp_path):
    base, native, _, _ = adapted("llama-q4")
    text = tmp_path / "text.txt"
    text.write_text("the hearth is warm and the night is long " * 40)
    flags = ["--data", text, "--window", 64, "--windows", 2]
    apart = hearth.json("kl", base.path, base.path, *flags, "--adapter", native, "--a-adapter", "none")
    assert apart["kl_mean"] > 0.01
    same = hearth.json("kl", base.path, base.path, *flags, "--adapter", native)
    assert same["kl_max"] == 0


def test_a_bad_adapter_fails_the_start(hearth, checkpoint, tmp_path):
    base = checkpoint("llama-q4")
    factors = adapters.draw(base, rank=4, seed=1)
    cut = adapters.write_native(tmp_path / "cut", factors, SCALE)
    weights = cut / "adapters.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    other = adapters.write_native(tmp_path / "other", {"model.layers.9.mlp.up_proj": next(iter(factors.values()))}, SCALE)
    dora = adapters.write_peft(tmp_path / "dora", factors, SCALE)
    config = json.loads((dora / "adapter_config.json").read_text())
    (dora / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True}))
    for path, code, said in (
        (cut, 1, "cut/adapters.safetensors"),
        (other, 2, "a linear that the model does not have"),
        (dora, 2, "use_dora is true"),
        (tmp_path / "gone", 3, "no such folder"),
    ):
        done = hearth.run("generate", base.path, "x", "--raw", "--adapter", path, exit_code=code)
        assert said in done.stderr.decode(), done.stderr


def test_smollm2_answers_differently_and_alike_on_every_instruction_set(hearth, model_file, tmp_path):
    """Through `hearth generate`, on a GGUF model: rank 8, all seven projections."""
    model, path = model_file("smollm2"), adapters.smollm2_style(tmp_path / "style")
    flags = ["generate", model, "Why is the sky blue?", "--max-tokens", 24, "--temperature", 0]
    base = hearth.json(*flags)
    answers = [hearth.json(*flags, "--adapter", path, env={"HEARTH_ISA": isa}) for isa in program.available_isas()]
    assert answers[0]["adapter"] == "style" and "adapter" not in base
    assert answers[0]["ids"] != base["ids"]
    assert all(a["ids"] == answers[0]["ids"] and a["logprobs"] == answers[0]["logprobs"] for a in answers)
