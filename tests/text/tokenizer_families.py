"""Small tokenizers of every family, trained on the spot, each as the file that hearth reads and the oracle's object."""
import io
import json
import struct

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from text.tokenizer_strings import training_lines

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACE = r"\s*[\r\n]+|\s+(?!\S)|\s+"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def cased_words(suffix):
    return f"{PREFIX}{UPPER}*{LOWER}+{suffix}|{PREFIX}{UPPER}+{LOWER}*{suffix}|"


PATTERNS = {
    "llama3": [rf"{CONTRACTIONS}|{PREFIX}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACE}"],
    "qwen2": [rf"{CONTRACTIONS}|{PREFIX}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACE}"],
    "qwen35": [rf"{CONTRACTIONS}|{PREFIX}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{SPACE}"],
    "minicpm5": [r"\p{N}{1,3}", rf"{CONTRACTIONS}|{PREFIX}\p{{L}}+|\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACE}"],
    "ufakzeka": [rf"{PREFIX}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACE}"],
    "tekken": [cased_words("") + rf"\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACE}"],
    "o200k": [cased_words(CONTRACTIONS + "?") + rf"\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACE}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥\u3040-\u309f\u30a0-\u30ff]+",
                    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^""" + "\r\n"
                    + r"""\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[""" + "\r\n" + r"]*|\s*[" + "\r\n"
                    + r"]+|\s+(?!\S)|\s+"],
    # Not among the hand-scanned: runs on PCRE2.
    "bailing": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
}


def byte_level(steps, **model):
    tok = Tokenizer(models.BPE(**model))
    tok.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=["<|end|>", "<s>"], show_progress=False)
    tok.train_from_iterator(training_lines(1), trainer)
    tok.add_tokens([AddedToken("<|tool|>", special=False, normalized=False)])
    return tok


def by_patterns(name):
    splits = [pre_tokenizers.Split(Regex(p), "isolated") for p in PATTERNS[name]]
    tok = byte_level([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)],
                     ignore_merges=name in ("llama3", "tekken"))
    if name.startswith("qwen"):
        tok.normalizer = normalizers.NFC()
    return tok


def gpt2():
    return byte_level([pre_tokenizers.ByteLevel(add_prefix_space=False)])


def gpt2_prefixed():
    tok = byte_level([pre_tokenizers.ByteLevel(add_prefix_space=True)])
    tok.add_special_tokens([AddedToken("<sep>", lstrip=True, rstrip=True, single_word=False)])
    return tok


def smollm():
    return byte_level([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])


def falcon():
    return byte_level([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
                       pre_tokenizers.Digits(individual_digits=False),
                       pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])


def llama2():
    """Byte fallback on characters, as converted from SentencePiece."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    trainer = trainers.BpeTrainer(vocab_size=1200, limit_alphabet=120, show_progress=False,
                                  special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)])
    tok.train_from_iterator(training_lines(2), trainer)
    data = json.loads(tok.to_str())
    data["added_tokens"] = data["added_tokens"][:3]
    tok = Tokenizer.from_str(json.dumps(data))
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return tok


def word_suffix():
    """Words end in </w>, unknown characters are fused: shows every word border."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=True))
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()])
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=1000, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False)
    tok.train_from_iterator(training_lines(3), trainer)
    tok.decoder = decoders.BPEDecoder()
    return tok


def bert():
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=900, show_progress=False,
                                        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tok.train_from_iterator(training_lines(4), trainer)
    tok.decoder = decoders.WordPiece()
    ids = {name: tok.token_to_id(name) for name in ("[CLS]", "[SEP]")}
    tok.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return tok


def unigram(scheme="always", byte_fallback=False, charsmap=None):
    tok = Tokenizer(models.Unigram())
    steps = [normalizers.Precompiled(charsmap)] if charsmap else [normalizers.Nmt(), normalizers.NFKC()]
    tok.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " ")])
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    special = ["<unk>", "<s>", "</s>"] + ([f"<0x{b:02X}>" for b in range(256)] if byte_fallback else [])
    trainer = trainers.UnigramTrainer(vocab_size=900, special_tokens=special, unk_token="<unk>", show_progress=False)
    tok.train_from_iterator(training_lines(5), trainer)
    data = json.loads(tok.to_str())
    data["model"]["byte_fallback"] = byte_fallback
    data["added_tokens"] = data["added_tokens"][:3]
    tok = Tokenizer.from_str(json.dumps(data))
    tok.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return tok


def sentencepiece_model(model_type, **options):
    """Bytes of a tokenizer.model."""
    out = io.BytesIO()
    settings = {"vocab_size": 900, "byte_fallback": True, "character_coverage": 0.98, "normalization_rule_name": "nmt_nfkc",
                "user_defined_symbols": ["<|tool|>", "\n\n"], "minloglevel": 2, "num_threads": 1, "hard_vocab_limit": False}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(training_lines(6)), model_writer=out,
                                             model_type=model_type, **(settings | options))
    return out.getvalue()


def fields(data):
    """(number, value) of a protobuf message: ints, floats as 4 bytes, strings as bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == 2 else 4 if key & 7 == 5 else 8
        yield key >> 3, data[at:at + size]
        at += size


def charsmap_of(model):
    """precompiled_charsmap of a tokenizer.model."""
    return dict(fields(dict(fields(model))[3]))[2]


def gguf_of_sentencepiece(model):
    """The metadata that a converter writes for a tokenizer.model, as a dict; user-defined pieces with plain spaces."""
    pieces = [dict(fields(v)) for n, v in fields(model) if n == 1]
    trainer, normalizer = dict(fields(dict(fields(model))[2])), dict(fields(dict(fields(model))[3]))
    types = [p.get(3, 1) for p in pieces]
    texts = [p[1].decode() for p in pieces]
    return {"model": "t5" if trainer.get(3, 1) == 1 else "llama",
            "tokens": [t.replace("\u2581", " ") if k == 4 else t for t, k in zip(texts, types)],
            "scores": [struct.unpack("<f", p[2])[0] for p in pieces], "token_type": types,
            "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0,
            "precompiled_charsmap": list(normalizer.get(2, b"")), "add_space_prefix": bool(normalizer.get(3, 1)),
            "remove_extra_whitespaces": bool(normalizer.get(4, 1))}


def gguf_of_byte_level(tok, pre):
    """The metadata that a converter writes for a byte-level tokenizer."""
    data = json.loads(tok.to_str())
    vocab = dict(data["model"]["vocab"])
    types = {t["id"]: 3 if t["special"] else 4 for t in data["added_tokens"]}
    vocab |= {t["content"]: t["id"] for t in data["added_tokens"]}
    tokens = sorted(vocab, key=vocab.get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    return {"model": "gpt2", "pre": pre, "tokens": tokens, "merges": merges,
            "token_type": [types.get(i, 1) for i in range(len(tokens))], "bos_token_id": 1, "eos_token_id": 0}


def gguf_of_word_piece(tok):
    vocab = tok.get_vocab()
    tokens = sorted(vocab, key=vocab.get)
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    return {"model": "bert", "unknown_token_id": vocab["[UNK]"], "cls_token_id": vocab["[CLS]"],
            "seperator_token_id": vocab["[SEP]"], "token_type": [3 if t in special else 1 for t in tokens],
            "tokens": [t if t in special else t[2:] if t.startswith("##") else "\u2581" + t for t in tokens]}


def proto_of_gguf(meta):
    """A ModelProto with the pieces of a GGUF file of a SentencePiece BPE model, for the oracle."""
    def varint(n):
        out = b""
        while n >= 0x80:
            out += bytes([n & 0x7F | 0x80])
            n >>= 7
        return out + bytes([n])

    def message(number, data):
        return varint(number << 3 | 2) + varint(len(data)) + data

    out = b""
    for token, score, kind in zip(meta["tokens"], meta["scores"], meta["token_type"]):
        text = token.replace(" ", "\u2581") if kind == 4 else token
        if token == "<unk>":
            kind = 2
        out += message(1, message(1, text.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + varint(kind))
    names = {"unk": 40, "bos": 41, "eos": 42, "pad": 43}
    ids = {"unk": meta["unknown_token_id"], "bos": meta["bos_token_id"], "eos": meta["eos_token_id"],
           "pad": meta.get("padding_token_id", 0)}
    trainer = b"\x18\x02" + varint(35 << 3) + b"\x01"
    trainer += b"".join(varint(names[n] << 3) + varint(i) + message(names[n] + 5, meta["tokens"][i].encode())
                        for n, i in ids.items())
    prefix = int(meta.get("add_space_prefix", True))
    return out + message(2, trainer) + message(3, b"\x18" + bytes([prefix]) + b"\x20\x00\x28\x01")



