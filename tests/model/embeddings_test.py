"""Vectors of texts against oracles: tiny random BERTs in float64, the shape of Qwen3-Embedding against mlx-lm, and
all-MiniLM-L6-v2 against its own runtime."""

import dataclasses
import json

import mlx.core as mx
import numpy as np
import pytest
from oracle import bert, tiny
from oracle.host import to_numpy

from vectors import hvec


def embed(hearth, model, texts, *flags, **kwargs):
    """(vectors [n, D] float64, the whole answer)."""
    answer = hearth.json("embed", model, *texts, *flags, **kwargs)
    return np.array(answer["embeddings"]), answer


def cosines(a, b):
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


TEXTS = bert.random_texts(12, seed=5, words=25) + ["a", "Zebra!"]


@pytest.mark.parametrize("executor", ["cpu", "reference"])
@pytest.mark.parametrize("name", bert.CASES)
def test_a_random_encoder_equals_the_plain_oracle(hearth, tmp_path, name, executor):
    path = bert.make(bert.CASES[name], tmp_path)
    oracle = bert.Oracle(path)
    ids = [oracle.ids(text) for text in TEXTS]
    want = np.array([oracle.vector(i) for i in ids])
    got, answer = embed(hearth, path, TEXTS, "--executor", executor)
    assert answer["tokens"] == [len(i) for i in ids]
    assert answer["pooling"] == bert.CASES[name].pooling and answer["normalized"] == bert.CASES[name].normalize
    # fp32 sums of up to F terms in 6 products a layer: each off by sqrt(F) 2^-24 of its size, passed on by the norms.
    case = bert.CASES[name]
    bound = 8 * 6 * case.L * case.F**0.5 * 2.0**-24
    assert np.linalg.norm(got - want, axis=1).max() <= bound * np.linalg.norm(want, axis=1).max()
    assert cosines(got, want).min() >= 1 - 1e-9


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_gguf_gives_the_folders_vectors(hearth, tmp_path, dtype, pooling):
    case = dataclasses.replace(bert.CASES["mean"], dtype=dtype, pooling=pooling)
    folder, file = bert.make(case, tmp_path), bert.make_gguf(case, tmp_path / "m.gguf")
    want, first = embed(hearth, folder, TEXTS)
    got, second = embed(hearth, file, TEXTS)
    assert first["tokens"] == second["tokens"] and second["pooling"] == pooling
    assert (got == want).all()


def test_plain_weights_give_the_same_bits_in_every_mode_and_instruction_set(hearth, tmp_path):
    from oracle.program import available_isas

    path = bert.make(bert.CASES["mean"], tmp_path)
    want, _ = embed(hearth, path, TEXTS)
    for isa in available_isas():
        got, _ = embed(hearth, path, TEXTS, env={"HEARTH_ISA": isa})
        assert (got == want).all(), isa
    for numerics in ("parity", "fast"):
        got, _ = embed(hearth, path, TEXTS, "--numerics", numerics)
        assert (got == want).all(), numerics


def test_batch_mates_order_and_threads_change_no_bit(hearth, tmp_path):
    """Vectors as base64: of a text alone, among others in either order, on one thread and on two."""
    encoder = bert.make(dataclasses.replace(bert.CASES["mean"], context=300), tmp_path)
    decoder = qwen3_embedding(tmp_path, tiny.Case("mates", "qwen3", QWEN3, bits=4))
    texts = TEXTS + ["abc " * 60]
    for model in (encoder, decoder.path):
        def coded(*some, threads=1):
            flags = ["--encoding", "base64", "--threads", threads]
            return hearth.json("embed", model, *some, *flags)["embeddings"]

        together = coded(*texts)
        assert coded(*texts, threads=2) == together
        assert coded(*reversed(texts)) == together[::-1]
        for i in (0, 3, len(texts) - 2, len(texts) - 1):
            assert coded(texts[i], threads=2) == [together[i]]


# The proportions of Qwen3-Embedding-0.6B (D 1024, H 16, Hkv 8, Dh 128, F 3072): heads wider than D / H.
QWEN3 = dict(hidden_size=256, num_attention_heads=4, num_key_value_heads=2, head_dim=128, intermediate_size=768,
             tie_word_embeddings=True, num_hidden_layers=4)
WIDE = dict(hidden_size=1024, num_attention_heads=16, num_key_value_heads=8, head_dim=128, intermediate_size=3072,
            tie_word_embeddings=True, num_hidden_layers=2)


def qwen3_embedding(root, case):
    """A random checkpoint with the small files of Qwen3-Embedding: last-token pooling, an end token behind every text."""
    made = tiny.make(case, root)
    width = tiny.config_of(case)["hidden_size"]
    bert.write_pooling(made.path, "last", True, width)
    file = made.path / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    end = tokenizer["model"]["vocab"]["</s>"]
    tokenizer["post_processor"] = dict(
        type="Sequence",
        processors=[
            dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False),
            dict(type="TemplateProcessing",
                 single=[{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                 pair=[{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}},
                       {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "</s>", "type_id": 1}}],
                 special_tokens={"</s>": dict(id="</s>", ids=[end], tokens=["</s>"])}),
        ],
    )
    file.write_text(json.dumps(tokenizer))
    return made


def last_hidden(model, ids):
    """mlx-lm's own hidden state behind the last norm, of the last id, at length 1."""
    x = to_numpy(model.model(mx.array(np.asarray(ids, dtype=np.int32)[None])))[0, -1].astype(np.float64)
    return x / np.linalg.norm(x)


@pytest.mark.parametrize(
    "case",
    [
        tiny.Case("qwen3-embedding-f32", "qwen3", QWEN3, dtype="float32"),
        tiny.Case("qwen3-embedding-bf16", "qwen3", QWEN3),
        tiny.Case("qwen3-embedding-q8", "qwen3", QWEN3, bits=8),
        tiny.Case("qwen3-embedding-q4", "qwen3", QWEN3, bits=4),
        pytest.param(tiny.Case("qwen3-embedding-wide", "qwen3", WIDE), marks=pytest.mark.full),
    ],
    ids=lambda case: case.name,
)
def test_the_shape_of_qwen3_embedding_equals_mlx_lm(hearth, tmp_path, case):
    from tokenizers import Tokenizer

    made = qwen3_embedding(tmp_path, case)
    exact_model = tiny.float32_oracle(made)
    # mlx's CPU kernel for quantized products takes minutes here and keeps its sums in bf16: float32 is the judge there.
    native_model = None if case.bits else tiny.load_native(made)
    tokenizer = Tokenizer.from_file(str(made.path / "tokenizer.json"))
    texts = bert.random_texts(4, seed=6, words=20) + ["a"]
    for flags, shown in (([], texts), (["--instruction", "find it"], [f"Instruct: find it\nQuery:{t}" for t in texts])):
        ids = [tokenizer.encode(text).ids for text in shown]
        assert all(i[-1] == 1 for i in ids)
        got, answer = embed(hearth, made.path, texts, *flags)
        assert answer["tokens"] == [len(i) for i in ids] and answer["pooling"] == "last"
        exact = np.array([last_hidden(exact_model, i) for i in ids])
        fast, _ = embed(hearth, made.path, texts, *flags, "--numerics", "fast")
        assert cosines(got, exact).min() >= 1 - 1e-6
        assert cosines(fast, exact).min() >= 0.999
        if native_model is not None:
            # In bf16 mlx's own roundings are what lies between: float32 is as far from it, and so is every other order.
            native = np.array([last_hidden(native_model, i) for i in ids])
            assert cosines(got, native).min() >= (0.9995 if case.dtype == "bfloat16" else 0.999999)
        assert np.abs(np.linalg.norm(got, axis=1) - 1).max() <= 1e-6


def test_minilm_equals_its_own_runtime(hearth, model_file):
    """200 sentences; the vectors are sentence-transformers' (tests/vectors/make_minilm_vectors.py)."""
    stored = hvec.read("minilm.hvec")
    texts = json.loads(stored["texts"])
    want = np.frombuffer(stored["vectors"], np.float32).reshape(len(texts), 384).astype(np.float64)
    assert len(texts) == 200
    got, answer = embed(hearth, model_file("minilm"), texts)
    assert answer["tokens"] == json.loads(stored["tokens"])
    assert cosines(got, want).min() >= 1 - 1e-9
    assert np.abs(got - want).max() <= 2e-6


def test_minilm_finds_what_is_meant(hearth, model_file):
    pairs = [("A man is eating food.", "A man is eating a piece of bread."), ("The girl is carrying a baby.", "A woman holds an infant."),
             ("Stocks fell sharply today.", "The market lost a lot of value.")]
    got, _ = embed(hearth, model_file("minilm"), [text for pair in pairs for text in pair])
    scores = got[::2] @ got[1::2].T
    assert (scores.argmax(axis=1) == np.arange(len(pairs))).all()
