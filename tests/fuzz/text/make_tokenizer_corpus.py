"""Writes the seed corpora tests/fuzz/corpus/{tokenizer_json,sentencepiece}. Made with tokenizers 0.23.3, sentencepiece
0.2.3. Run in the folder tests: python -m fuzz.text.make_tokenizer_corpus"""
import json
import pathlib

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from text import tokenizer_families as families

ROOT = pathlib.Path(__file__).parents[1] / "corpus"


def save(target, name, data):
    (ROOT / target).mkdir(parents=True, exist_ok=True)
    (ROOT / target / name).write_bytes(data)


def small(model, normalizer=None, pre=None, decoder=None, post=None):
    tok = Tokenizer(model)
    for field, value in (("normalizer", normalizer), ("pre_tokenizer", pre), ("decoder", decoder), ("post_processor", post)):
        if value is not None:
            setattr(tok, field, value)
    tok.add_special_tokens(["<s>"])
    tok.add_tokens([families.AddedToken("<t>", lstrip=True, rstrip=True), families.AddedToken("word", single_word=True)])
    return json.dumps(json.loads(tok.to_str()), separators=(",", ":")).encode()


letters = {c: i for i, c in enumerate("abcdeĠHelo12,'ö")}
bpe = {"vocab": letters | {"ab": 20, "abc": 21, "He": 22}, "merges": [("a", "b"), ("ab", "c"), ("H", "e")]}
for name, patterns in families.PATTERNS.items():
    splits = [pre_tokenizers.Split(families.Regex(p), "isolated") for p in patterns]
    save("tokenizer_json", f"{name}.json", small(
        models.BPE(**bpe, ignore_merges=True), normalizers.NFC(),
        pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(use_regex=False)]), decoders.ByteLevel()))
save("tokenizer_json", "gpt2.json", small(models.BPE(**bpe), None, pre_tokenizers.ByteLevel(), decoders.ByteLevel()))
save("tokenizer_json", "fallback.json", small(
    models.BPE(vocab=bpe["vocab"] | {"?": 23, "▁": 24} | {f"<0x{b:02X}>": 30 + b for b in range(256)}, merges=bpe["merges"],
               unk_token="?", byte_fallback=True, fuse_unk=True),
    normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None,
    decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
    processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])))
pieces = [("<unk>", 0.0), ("▁", -2.0), ("▁He", -3.0), ("l", -4.0), ("ll", -4.5), ("o", -4.0), ("ab", -5.0)]
save("tokenizer_json", "unigram.json", small(
    models.Unigram(pieces, 0, False), normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD(), normalizers.StripAccents(),
    normalizers.Lowercase(), normalizers.Strip(), normalizers.Replace(families.Regex(" {2,}"), " ")]),
    pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first")]),
    decoders.Metaspace()))
wp = {t: i for i, t in enumerate(["[UNK]", "[CLS]", "[SEP]", "he", "##l", "##lo", ",", "1", "##2"])}
save("tokenizer_json", "bert.json", small(
    models.WordPiece(wp, unk_token="[UNK]"), normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(),
    decoders.WordPiece(), processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))))
save("tokenizer_json", "mixed.json", small(
    models.BPE(**bpe), normalizers.NFKC(), pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Digits(), pre_tokenizers.Punctuation("merged_with_next"),
        pre_tokenizers.Split("l", "merged_with_previous", invert=True), pre_tokenizers.Split(families.Regex("(a|b)+c?"), "contiguous")]),
    decoders.BPEDecoder()))

plain = {"normalization_rule_name": "identity", "user_defined_symbols": ["<t>"]}
save("sentencepiece", "bpe.model", families.sentencepiece_model("bpe", vocab_size=400, **plain))
save("sentencepiece", "unigram.model", families.sentencepiece_model("unigram", vocab_size=400, **plain))
save("sentencepiece", "small.model", families.sentencepiece_model("bpe", vocab_size=90, byte_fallback=False, **plain))
