"""Ids and texts of every tokenizer family equal those of the tokenizers and sentencepiece packages: no difference.

HEARTH_TOKENIZER_STRINGS sets how many random strings a family sees: 20,000 by default, 1,000,000 in the full tier.
HEARTH_TOKENIZER_FILES names a folder of tokenizer.json files of real models to compare as well.
"""
import json
import os
import pathlib
import struct

import pytest
import sentencepiece
from text import tokenizer_families as families
from text.tokenizer_strings import random_strings
from tokenizers import Tokenizer
from tool import run_tool

BATCH = 20_000


def tool(kind, path, mode, records, *flags):
    """Runs tool_tokenize_lines over records of bytes or ids; its answers are of the other kind."""
    if mode == "encode":
        data = b"".join(struct.pack("<I", len(r)) + r for r in records)
    else:
        data = b"".join(struct.pack(f"<I{len(r)}i", len(r), *r) for r in records)
    out = run_tool("tokenize_lines", kind, path, mode, *flags, stdin=data)
    answers, at = [], 0
    while at < len(out):
        (n,) = struct.unpack_from("<I", out, at)
        at += 4
        if mode == "encode":
            answers.append(list(struct.unpack_from(f"<{n}i", out, at)))
            at += 4 * n
        else:
            answers.append(out[at:at + n])
            at += n
    assert len(answers) == len(records)
    return answers


def check(got, want, texts, seed):
    bad = [(t, g, w) for t, g, w in zip(texts, got, want) if g != w]
    bad.sort(key=lambda b: len(b[0]))
    shown = "\n".join(f"{t!r}\n  got  {g}\n  want {w}" for t, g, w in bad[:3])
    assert not bad, f"{len(bad)} of {len(texts)} strings differ, seed {seed}:\n{shown}"


def batches(count):
    return [(seed, min(BATCH, count - seed * BATCH)) for seed in range((count + BATCH - 1) // BATCH)]


def strings_of_tier(full):
    return int(os.environ.get("HEARTH_TOKENIZER_STRINGS") or (1_000_000 if full else BATCH))


def check_against_tokenizers(kind, path, tok, count, spellings_of_special=()):
    """`spellings_of_special`: without parse_special hearth gives no special id, where a Unigram or WordPiece model of
    the package still may: such strings are compared with parse_special alone."""
    for seed, size in batches(count):
        texts = random_strings(seed, size)
        encoded = [t.encode() for t in texts]
        for parse in (True, False):
            tok.encode_special_tokens = not parse
            flags = ["parse-special"] if parse else []
            used = texts if parse else [t for t in texts if not any(s in t for s in spellings_of_special)]
            want = [e.ids for e in tok.encode_batch(used, add_special_tokens=False)]
            bytes_used = encoded if parse else [t.encode() for t in used]
            check(tool(kind, path, "encode", bytes_used, *flags), want, used, seed)
            if not parse:
                decoded = [t.encode() for t in tok.decode_batch(want, skip_special_tokens=False)]
                check(tool(kind, path, "decode", want), decoded, used, seed)


def byte_level_families():
    yield "gpt2", families.gpt2, "gpt-2"
    yield "gpt2-prefixed", families.gpt2_prefixed, None
    yield "smollm", families.smollm, "smollm"
    yield "falcon", families.falcon, None
    pre = {"llama3": "llama-bpe", "o200k": "gpt-4o", "bailing": None}
    for name in families.PATTERNS:
        yield name, lambda name=name: families.by_patterns(name), pre.get(name, name)


def json_families():
    for name, make, _ in byte_level_families():
        yield name, make, ()
    yield "llama2", families.llama2, ()
    yield "word-suffix", families.word_suffix, ()
    yield "bert", families.bert, ("[UNK]", "[CLS]")
    special = ("<s>", "</s>", "<unk>")
    yield "unigram", families.unigram, special
    yield "unigram-first", lambda: families.unigram("first"), special
    yield "unigram-bytes", lambda: families.unigram(byte_fallback=True), special
    yield "unigram-charsmap", lambda: families.unigram(
        charsmap=families.charsmap_of(families.sentencepiece_model("unigram"))), special


@pytest.fixture(scope="session")
def made():
    """Each family is trained once a run."""
    return {}


def check_json_family(name, made, folder, count):
    make, special = {n: (m, s) for n, m, s in json_families()}[name]
    tok = made.setdefault(name, None) or made.update({name: make()}) or made[name]
    path = folder / "tokenizer.json"
    tok.save(str(path))
    check_against_tokenizers("json", path, tok, count, special)


@pytest.mark.parametrize("name", [n for n, _, _ in json_families()])
def test_tokenizer_json(name, made, tmp_path):
    check_json_family(name, made, tmp_path, strings_of_tier(full=False))


@pytest.mark.full
@pytest.mark.parametrize("name", [n for n, _, _ in json_families()])
def test_tokenizer_json_a_million(name, made, tmp_path):
    check_json_family(name, made, tmp_path, strings_of_tier(full=True))


def test_bert_strips_the_accents_of_its_library(made, tmp_path):
    """Every character: those that became Mn after Unicode 8.0 stay. Left out: U+11938, whose parts are newer still."""
    make = {n: m for n, m, _ in json_families()}["bert"]
    tok = made.setdefault("bert", None) or made.update(bert=make()) or made["bert"]
    path = tmp_path / "tokenizer.json"
    tok.save(str(path))
    texts = ["a" + chr(c) + "b" for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000 and c != 0x11938]
    want = [e.ids for e in tok.encode_batch(texts, add_special_tokens=False)]
    check(tool("json", path, "encode", [t.encode() for t in texts]), want, texts, 0)


@pytest.mark.parametrize("name", ["llama2", "bert", "gpt2"])
def test_added_tokens_around_a_text(name, made, tmp_path):
    tok = {n: m for n, m, _ in json_families()}[name]()
    path = tmp_path / "tokenizer.json"
    tok.save(str(path))
    texts = random_strings(7, 500)
    got = tool("json", path, "encode", [t.encode() for t in texts], "add-special")
    tok.encode_special_tokens = True
    check(got, [e.ids for e in tok.encode_batch(texts)], texts, 7)


@pytest.mark.parametrize("name", [n for n, _, pre in byte_level_families() if pre])
def test_gguf_byte_level(name, made, tmp_path):
    make, pre = {n: (m, p) for n, m, p in byte_level_families()}[name]
    tok = made.get(name) or make()
    path = tmp_path / "gguf.json"
    path.write_text(json.dumps(families.gguf_of_byte_level(tok, pre)))
    check_against_tokenizers("gguf", path, tok, 5000)


def test_gguf_bert(tmp_path):
    tok = families.bert()
    path = tmp_path / "gguf.json"
    path.write_text(json.dumps(families.gguf_of_word_piece(tok)))
    check_against_tokenizers("gguf", path, tok, 5000, ("[UNK]", "[CLS]"))


def test_vocab_and_merges_files(tmp_path):
    tok = families.byte_level([families.pre_tokenizers.ByteLevel(add_prefix_space=False)])
    data = json.loads(tok.to_str())
    (tmp_path / "vocab.json").write_text(json.dumps(data["model"]["vocab"]))
    merges = "".join(" ".join(m) + "\n" for m in data["model"]["merges"])
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + merges)
    texts = [t for t in random_strings(3, 5000) if "<" not in t]
    got = tool("gpt2", f"{tmp_path}/vocab.json,{tmp_path}/merges.txt", "encode", [t.encode() for t in texts])
    check(got, [e.ids for e in tok.encode_batch(texts, add_special_tokens=False)], texts, 3)


def test_vocab_txt(tmp_path):
    tok = families.bert()
    vocab = tok.get_vocab()
    (tmp_path / "vocab.txt").write_text("".join(t + "\n" for t in sorted(vocab, key=vocab.get)))
    texts = [t for t in random_strings(4, 5000) if "[" not in t]
    got = tool("bert", tmp_path / "vocab.txt", "encode", [t.encode() for t in texts], "add-special")
    check(got, [e.ids for e in tok.encode_batch(texts)], texts, 4)


SENTENCEPIECE = {
    "bpe": ("bpe", {}),
    "bpe-plain": ("bpe", {"byte_fallback": False, "normalization_rule_name": "identity", "add_dummy_prefix": False,
                          "remove_extra_whitespaces": False}),
    "bpe-no-extra": ("bpe", {"add_dummy_prefix": False}),
    "unigram": ("unigram", {}),
    "unigram-plain": ("unigram", {"byte_fallback": False, "user_defined_symbols": []}),
}


def check_against_sentencepiece(kind, path, oracle, count):
    for seed, size in batches(count):
        # U+0000 ends a text for the oracle's character map.
        texts = [t.replace("\0", "") for t in random_strings(seed, size)]
        want = oracle.encode(texts, num_threads=1)
        check(tool(kind, path, "encode", [t.encode() for t in texts]), want, texts, seed)


# Paths of the same pieces in two orders: their sums differ in the last bit alone, by what stands in front of them.
TIES = ["\n\n\r\n丌丶1①½٣’'vedsſLT", "\n\n<0x41>\n\n½²11①"]


def check_sentencepiece_family(name, folder, count):
    model_type, options = SENTENCEPIECE[name]
    model = families.sentencepiece_model(model_type, **options)
    path = folder / "tokenizer.model"
    path.write_bytes(model)
    oracle = sentencepiece.SentencePieceProcessor(model_proto=model)
    check(tool("spm", path, "encode", [t.encode() for t in TIES]), oracle.encode(TIES), TIES, "none")
    check_against_sentencepiece("spm", path, oracle, count)
    if options.get("byte_fallback", True):
        gguf = folder / "gguf.json"
        gguf.write_text(json.dumps(families.gguf_of_sentencepiece(model)))
        check_against_sentencepiece("gguf", gguf, oracle, min(count, BATCH))


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_sentencepiece(name, tmp_path):
    check_sentencepiece_family(name, tmp_path, strings_of_tier(full=False))


@pytest.mark.full
@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_sentencepiece_a_million(name, tmp_path):
    check_sentencepiece_family(name, tmp_path, strings_of_tier(full=True))


def gguf_metadata(path):
    import gguf

    prefix = "tokenizer.ggml."
    return {k[len(prefix):]: f.contents() for k, f in gguf.GGUFReader(path).fields.items() if k.startswith(prefix)}


PRE_TOKENIZERS = {
    "smollm": [{"type": "Digits", "individual_digits": True},
               {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}],
    "qwen2": [{"type": "Split", "pattern": {"Regex": families.PATTERNS["qwen2"][0]}, "behavior": "Isolated", "invert": False},
              {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}],
}


@pytest.mark.full
@pytest.mark.parametrize("model", ["smollm2", "qwen-0.5b"])
def test_real_gguf_byte_level(model, model_file, tmp_path):
    meta = gguf_metadata(model_file(model))
    added = [{"id": i, "content": t, "special": k != 4, "normalized": False, "lstrip": False, "rstrip": False,
              "single_word": False} for i, (t, k) in enumerate(zip(meta["tokens"], meta["token_type"])) if k in (2, 3, 4)]
    tok = Tokenizer.from_str(json.dumps({
        "version": "1.0", "added_tokens": added, "normalizer": {"type": "NFC"} if meta["pre"] == "qwen2" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": PRE_TOKENIZERS[meta["pre"]]}, "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(meta["tokens"])}, "merges": meta["merges"]}}))
    path = tmp_path / "gguf.json"
    path.write_text(json.dumps(meta))
    check_against_tokenizers("gguf", path, tok, int(os.environ.get("HEARTH_TOKENIZER_STRINGS") or 100_000))


@pytest.mark.full
def test_real_gguf_gemma(model_file, tmp_path):
    meta = gguf_metadata(model_file("gemma"))
    path = tmp_path / "gguf.json"
    path.write_text(json.dumps(meta))
    oracle = sentencepiece.SentencePieceProcessor(model_proto=families.proto_of_gguf(meta))
    check_against_sentencepiece("gguf", path, oracle, int(os.environ.get("HEARTH_TOKENIZER_STRINGS") or 100_000))


def real_files():
    folder = os.environ.get("HEARTH_TOKENIZER_FILES")
    return sorted(pathlib.Path(folder).rglob("*.json")) if folder else []


@pytest.mark.full
@pytest.mark.parametrize("path", real_files(), ids=lambda p: p.stem)
def test_real_tokenizer_json(path):
    check_against_tokenizers("json", path, Tokenizer.from_file(str(path)), int(os.environ.get("HEARTH_TOKENIZER_STRINGS") or 100_000))
