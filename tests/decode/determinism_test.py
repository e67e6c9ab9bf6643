"""The same ids give the same bits: run to run, on one thread or two, in chunks of any size, and cold or warm.

Each instruction set keeps that promise for itself; between sets the results agree closely, and the default mode's greedy
ids are the same.
"""

import numpy as np
import pytest
from oracle import corpus, measure
from oracle.program import available_isas

CHUNKS = [1, 7, 64, 4096]
TINY = ["llama-q4", "llama-q8-g32", "qwen2-mixed", "qwen3-bf16", "gemma3-q4", "mistral-window-q4"]
ROWS = 96


def same_bits(a, b) -> bool:
    return a.tobytes() == b.tobytes()


def where(a, b) -> str:
    rows = np.flatnonzero((a.view(np.uint32) != b.view(np.uint32)).any(axis=-1))
    return f"rows {rows[:8]} of {len(a)} differ, by up to {np.abs(a - b).max()}"


# The real model on the slower paths takes minutes.
@pytest.fixture(scope="module", params=["tiny", pytest.param("smollm2", marks=pytest.mark.full)])
def subjects(request, checkpoint, model_file):
    """(model, ids) pairs."""
    if request.param == "tiny":
        return [(checkpoint(name).path, checkpoint(name).forced) for name in TINY]
    return [(model_file("smollm2"), corpus.windows(model_file("smollm2"), 1)[0][:ROWS])]


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("numerics", ["deterministic", "parity"])
def test_bits_do_not_depend_on_threads_or_chunks(hearth, subjects, isa, numerics):
    for model, ids in subjects:
        base = hearth.logits(model, ids, numerics=numerics, threads=1, isa=isa)
        for threads, chunk in [(1, None), (2, None), *((2, c) for c in CHUNKS), (1, 7)]:
            other = hearth.logits(model, ids, numerics=numerics, threads=threads, chunk=chunk, isa=isa)
            assert same_bits(base, other), f"{model.name}, {threads} threads, chunk {chunk}: {where(base, other)}"


def test_bits_of_a_real_model_do_not_depend_on_threads_or_chunks(hearth, model_file):
    model, ids = model_file("smollm2"), corpus.windows(model_file("smollm2"), 1)[0][:ROWS]
    base = hearth.logits(model, ids, threads=1)
    for threads, chunk in [(2, 1), (2, 7), (1, 64), (2, 4096)]:
        other = hearth.logits(model, ids, threads=threads, chunk=chunk)
        assert same_bits(base, other), f"{threads} threads, chunk {chunk}: {where(base, other)}"


@pytest.mark.parametrize("kv", ["bf16", "q8", "q4", "f32"])
def test_bits_do_not_depend_on_chunks_with_any_kv_format(hearth, checkpoint, kv):
    for name in ("llama-q4", "gemma3-bf16"):
        made = checkpoint(name)
        base = hearth.logits(made.path, made.forced, kv=kv, threads=2)
        for chunk in CHUNKS:
            other = hearth.logits(made.path, made.forced, kv=kv, threads=1, chunk=chunk)
            assert same_bits(base, other), f"{name}, chunk {chunk}: {where(base, other)}"


@pytest.mark.parametrize("name", ["llama-mixed", "gemma3-q8"])
def test_the_reference_executor_does_not_depend_on_chunks(hearth, checkpoint, name):
    made = checkpoint(name)
    base = hearth.logits(made.path, made.forced, executor="reference")
    for chunk in (1, 7, 64):
        assert same_bits(base, hearth.logits(made.path, made.forced, executor="reference", chunk=chunk))


def test_instruction_sets_agree(hearth, subjects):
    for model, ids in subjects:
        results = {isa: hearth.logits(model, ids, isa=isa) for isa in available_isas()}
        for isa, logits in results.items():
            seen = measure.Agreement().add(results["generic"], logits)
            # Activations are the same integers and group sums are exact on every set; what is left is the order of
            # float32 additions and the functions inside one op.
            assert seen.kl <= 1e-6, f"{model.name} {isa}: {seen}"
            assert seen.top1 >= 0.99, f"{model.name} {isa}: {seen}"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("isa", available_isas())
def test_generated_ids_are_the_same(hearth, model_file, isa, threads):
    flags = ["-p", "Water boils at", "--raw", "--max-tokens", 16, "--temperature", 0, "--ids"]
    answers = [
        hearth.json("generate", model_file("smollm2"), *flags, "--threads", threads, *chunk, env={"HEARTH_ISA": isa})
        for chunk in ([], ["--prefill-chunk", 1], ["--prefill-chunk", 7])
    ]
    assert len({tuple(a["ids"]) for a in answers}) == 1
    assert len({a["text"] for a in answers}) == 1
    # Decoding and forcing are the same arithmetic: the forced logits' argmax gives the ids back.
    prompt, ids = answers[0]["prompt_ids"], answers[0]["ids"]
    logits = hearth.logits(model_file("smollm2"), (prompt + ids)[:-1], isa=isa)
    assert ids == [int(i) for i in logits[len(prompt) - 1 :].argmax(axis=-1)]


def test_sampling_with_a_seed_repeats(hearth, model_file):
    flags = ["-p", "Once upon a time", "--raw", "--max-tokens", 16, "--temperature", 0.8, "--ids"]
    first, again, other = (hearth.json("generate", model_file("smollm2"), *flags, "--seed", s)["ids"] for s in (5, 5, 6))
    assert first == again
    assert first != other
