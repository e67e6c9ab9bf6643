"""The small files beside a tokenizer's own, against the transformers library: added_tokens.json,
special_tokens_map.json, tokenizer_config.json."""
import json

import pytest
import transformers
from text import tokenizer_families as families
from text.tokenizer_oracle_test import check, tool
from text.tokenizer_strings import random_strings

NAMES = ("tokenizer_config", "special_tokens_map", "added_tokens")


def write(folder, **files):
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return [f"{name}={folder / name}.json" for name in NAMES if name in files]


def compare(kind, path, flags, oracle, texts):
    encoded = [t.encode() for t in texts]
    want = oracle(texts, add_special_tokens=False)["input_ids"]
    check(tool(kind, path, "encode", encoded, "parse-special", *flags), want, texts, 0)


@pytest.fixture(scope="module")
def bert_vocabulary():
    tok = families.bert()
    # Capitals and accents in the vocabulary, so that keeping them shows.
    pieces = sorted(tok.get_vocab(), key=tok.get_vocab().get)
    known = set(pieces)
    return pieces + [p for p in ("A", "The", "##A", "\u00c9", "\u00e9", "##\u00e9", "\u4e2d\u4e2d", "I", "##I") if p not in known]


@pytest.mark.parametrize("config", [{}, {"do_lower_case": True}, {"do_lower_case": False}, {"do_lower_case": False, "strip_accents": True},
                                    {"strip_accents": False}, {"do_lower_case": False, "tokenize_chinese_chars": False}],
                         ids=lambda c: "-".join(f"{k}={v}" for k, v in c.items()) or "none")
def test_vocab_txt_obeys_the_config(config, bert_vocabulary, tmp_path):
    (tmp_path / "vocab.txt").write_text("".join(p + "\n" for p in bert_vocabulary))
    flags = write(tmp_path, tokenizer_config=config)
    oracle = transformers.BertTokenizer.from_pretrained(tmp_path)
    texts = random_strings(21, 3000) + ["The \u00c9t\u00e9 I\u0301", "\u4e2d\u4e2dThe", "A \u0130I"]
    compare("bert", tmp_path / "vocab.txt", flags, oracle, texts)


ADDED = {"<call>": 0, "<turn>": 1, "<pad>": 2}  # behind the vocabulary
CASES = {
    "added alone": {"added_tokens": ADDED},
    "named in the map": {"added_tokens": ADDED, "special_tokens_map": {"eos_token": "<turn>", "pad_token": "<pad>"}},
    "named in the config": {"added_tokens": ADDED, "tokenizer_config": {"eos_token": "<turn>"}},
    "the map wins": {"added_tokens": ADDED, "tokenizer_config": {"eos_token": "<call>"}, "special_tokens_map": {"eos_token": "<turn>"}},
    "listed": {"added_tokens": ADDED, "special_tokens_map": {"eos_token": "<turn>"}, "tokenizer_config": {
        "eos_token": "<call>", "added_tokens_decoder": {0: {"content": "<call>", "special": True}, 1: {"content": "<tool>", "special": False}}}},
    "additional": {"added_tokens": ADDED, "special_tokens_map": {"eos_token": {"content": "<turn>", "rstrip": True}},
                   "tokenizer_config": {"extra_special_tokens": ["<call>"]}},
}


@pytest.mark.parametrize("name", CASES)
def test_vocab_and_merges_with_added_tokens(name, tmp_path):
    tok = families.byte_level([families.pre_tokenizers.ByteLevel(add_prefix_space=False)])
    data = json.loads(tok.to_str())
    vocab = data["model"]["vocab"]
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in data["model"]["merges"]))
    files = json.loads(json.dumps(CASES[name]))
    files["added_tokens"] = {t: i + len(vocab) for t, i in files["added_tokens"].items()}
    if decoder := files.get("tokenizer_config", {}).get("added_tokens_decoder"):
        files["tokenizer_config"]["added_tokens_decoder"] = {str(int(i) + len(vocab)): t for i, t in decoder.items()}
    # The library's class would name tokens of its own.
    files.setdefault("tokenizer_config", {}).update({k: "<|end|>" for k in ("bos_token", "unk_token")})
    files["tokenizer_config"].setdefault("eos_token", "<|end|>")
    flags = write(tmp_path, **files)
    oracle = transformers.GPT2Tokenizer.from_pretrained(tmp_path)
    parts = [*ADDED, "<tool>", "<|end|>", " ", "a", "the"]
    texts = random_strings(22, 1500) + ["".join(parts[(i * k) % len(parts)] for k in range(1, 7)) for i in range(60)]
    compare("gpt2", f"{tmp_path}/vocab.json,{tmp_path}/merges.txt", flags, oracle, texts)
    special = set(oracle.all_special_ids)
    ids = [i for i in range(len(vocab), len(vocab) + 3)]
    shown = tool("gpt2", f"{tmp_path}/vocab.json,{tmp_path}/merges.txt", "decode", [[i] for i in ids if i < len(oracle)], "skip-special", *flags)
    added = {i for i, t in oracle.added_tokens_decoder.items() if t.special}
    assert [i for i, text in zip(ids, shown) if not text] == [i for i in ids if i in added], special
