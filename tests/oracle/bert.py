"""BERT written out in plain numpy float64, and tiny random checkpoints of it: folders and GGUF files.

Formulas: Devlin et al. 2019; Ba et al. 2016 (LayerNorm); Hendrycks & Gimpel 2016 (gelu with erf). Nothing here is shared
with hearth or with another implementation, so that an error would have to be made twice.
"""

import dataclasses
import json
import math
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MODES = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken"}


@dataclasses.dataclass(frozen=True)
class Case:
    """One checkpoint. `prefix` stands in front of every weight's name, as in files made of a model with a head."""

    name: str
    model_type: str = "bert"
    dtype: str = "float32"
    prefix: str = ""
    pooling: str = "mean"
    normalize: bool = True
    act: str = "gelu"
    max_seq_length: int | None = None
    seed: int = 1
    L: int = 3
    D: int = 96
    H: int = 4
    F: int = 160
    context: int = 300

    @property
    def first_position(self) -> int:
        return 2 if self.model_type == "xlm-roberta" else 0


CASES = {
    case.name: case
    for case in (
        Case("mean"),
        Case("cls", pooling="cls", prefix="bert."),
        Case("last", pooling="last", seed=2),
        Case("f16", dtype="float16"),
        Case("raw", normalize=False, seed=3),
        Case("gelu-tanh", act="gelu_new"),
        Case("odd-heads", D=72, H=3, F=100, L=2),
        Case("xlm-roberta", model_type="xlm-roberta", prefix="roberta.", seed=4),
    )
}


def vocabulary() -> list[str]:
    return SPECIAL + list(LETTERS) + ["##" + c for c in LETTERS] + [".", ",", "!"]


def tokenizer_json() -> dict:
    pieces = {piece: i for i, piece in enumerate(vocabulary())}
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    around = lambda token: {"SpecialToken": {"id": token, "type_id": 0}}
    return dict(
        version="1.0",
        truncation=dict(max_length=16, strategy="LongestFirst", stride=0, direction="Right"),  # nobody may heed these two
        padding=dict(strategy={"Fixed": 16}, direction="Right", pad_to_multiple_of=None, pad_id=0, pad_type_id=0,
                     pad_token="[PAD]"),
        added_tokens=[dict(id=i, content=token, **flags) for i, token in enumerate(SPECIAL)],
        normalizer=dict(type="BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
        pre_tokenizer=dict(type="BertPreTokenizer"),
        post_processor=dict(
            type="TemplateProcessing",
            single=[around("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, around("[SEP]")],
            pair=[around("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, around("[SEP]"),
                  {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            special_tokens={t: dict(id=t, ids=[pieces[t]], tokens=[t]) for t in ("[CLS]", "[SEP]")},
        ),
        decoder=dict(type="WordPiece", prefix="##", cleanup=True),
        model=dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=100,
                   vocab=pieces),
    )


def draw(case: Case) -> dict[str, np.ndarray]:
    """Random weights by the names of the hub's files, in the case's type."""
    rng = np.random.default_rng(case.seed)
    weights: dict[str, np.ndarray] = {}

    def add(name, *shape, mean=0.0, scale=1.0):
        weights[name] = (mean + scale * rng.normal(size=shape)).astype(case.dtype)

    def norm(name):
        add(name + ".weight", case.D, mean=1.0, scale=0.2)
        add(name + ".bias", case.D, scale=0.2)

    def linear(name, n, k):
        add(name + ".weight", n, k, scale=1.5 * k**-0.5)
        add(name + ".bias", n, scale=0.3)

    types = 1 if case.model_type == "xlm-roberta" else 2
    for name, rows in (("word", len(vocabulary())), ("position", case.context + case.first_position), ("token_type", types)):
        add(f"embeddings.{name}_embeddings.weight", rows, case.D)
    norm("embeddings.LayerNorm")
    for i in range(case.L):
        layer = f"encoder.layer.{i}."
        for name in ("query", "key", "value"):
            linear(f"{layer}attention.self.{name}", case.D, case.D)
        linear(layer + "attention.output.dense", case.D, case.D)
        norm(layer + "attention.output.LayerNorm")
        linear(layer + "intermediate.dense", case.F, case.D)
        linear(layer + "output.dense", case.D, case.F)
        norm(layer + "output.LayerNorm")
    return weights


def config_of(case: Case) -> dict:
    return dict(
        model_type=case.model_type,
        architectures=["BertModel"],
        hidden_size=case.D,
        num_hidden_layers=case.L,
        num_attention_heads=case.H,
        intermediate_size=case.F,
        hidden_act=case.act,
        layer_norm_eps=1e-12,
        max_position_embeddings=case.context + case.first_position,
        type_vocab_size=1 if case.model_type == "xlm-roberta" else 2,
        vocab_size=len(vocabulary()),
        pad_token_id=1 if case.model_type == "xlm-roberta" else 0,
        torch_dtype=case.dtype,
    )


def write_pooling(path: Path, pooling: str, normalize: bool, width: int) -> None:
    """modules.json and the Pooling module's config, as sentence-transformers writes them."""
    kinds = ["Transformer", "Pooling"] + (["Normalize"] if normalize else [])
    modules = [dict(idx=i, name=str(i), path=f"{i}_{kind}" if i else "", type=f"sentence_transformers.models.{kind}")
               for i, kind in enumerate(kinds)]
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "1_Pooling").mkdir(exist_ok=True)
    modes = {f"pooling_mode_{mode}": mode == MODES[pooling]
             for mode in ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")}
    (path / "1_Pooling" / "config.json").write_text(json.dumps(dict(word_embedding_dimension=width, **modes)))


def make(case: Case, root: Path) -> Path:
    """Writes the folder root/case.name. The same case gives the same bytes."""
    path = Path(root) / case.name
    path.mkdir(parents=True)
    save_file({case.prefix + name: value for name, value in draw(case).items()}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config_of(case)))
    (path / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    write_pooling(path, case.pooling, case.normalize, case.D)
    if case.max_seq_length:
        limits = dict(max_seq_length=case.max_seq_length, do_lower_case=False)
        (path / "sentence_bert_config.json").write_text(json.dumps(limits))
    return path


GGUF_NAMES = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}


def make_gguf(case: Case, path: Path) -> Path:
    """The case's weights as llama.cpp's converter lays them out: f32 vectors, matrices in the case's type."""
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_context_length(case.context)
    writer.add_embedding_length(case.D)
    writer.add_block_count(case.L)
    writer.add_feed_forward_length(case.F)
    writer.add_head_count(case.H)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type({"mean": gguf.PoolingType.MEAN, "cls": gguf.PoolingType.CLS, "last": gguf.PoolingType.LAST}[case.pooling])
    writer.add_tokenizer_model("bert")
    pieces = [p if p in SPECIAL else p[2:] if p.startswith("##") else "\u2581" + p for p in vocabulary()]
    writer.add_token_list(pieces)
    writer.add_token_types([3 if p in SPECIAL else 1 for p in vocabulary()])
    for name, token in (("bos", "[CLS]"), ("eos", "[SEP]"), ("unk", "[UNK]"), ("sep", "[SEP]"), ("pad", "[PAD]")):
        getattr(writer, f"add_{name}_token_id")(SPECIAL.index(token))
    writer.add_token_type_count(2)
    for name, value in draw(case).items():
        module, kind = name.rsplit(".", 1)
        if module.startswith("encoder.layer."):
            _, _, layer, rest = module.split(".", 3)
            module = f"blk.{layer}.{GGUF_NAMES[rest]}"
        else:
            module = GGUF_NAMES[module]
        keep = value.ndim == 2 and module not in ("position_embd", "token_types")
        writer.add_tensor(f"{module}.{kind}", np.ascontiguousarray(value if keep else value.astype(np.float32)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) * weight + bias


def activation(name: str):
    if name == "gelu":
        return np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))
    return lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class Oracle:
    """A folder's model: vector(ids) in float64."""

    def __init__(self, path: Path):
        self.config = json.loads((path / "config.json").read_text())
        stored = load_file(path / "model.safetensors")
        prefix = next(p for p in ("", "bert.", "roberta.") if p + "embeddings.word_embeddings.weight" in stored)
        self.weights = {k.removeprefix(prefix): v.astype(np.float64) for k, v in stored.items() if v.dtype.kind == "f"}
        self.tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        pooling = json.loads((path / "1_Pooling" / "config.json").read_text())
        self.pooling = next(name for name, mode in MODES.items() if pooling.get(f"pooling_mode_{mode}"))
        self.normalize = any(m["type"].endswith("Normalize") for m in json.loads((path / "modules.json").read_text()))

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def rows(self, ids) -> np.ndarray:
        """Hidden states behind the last layer, [T, D]."""
        w, c = self.weights, self.config
        eps, heads = c["layer_norm_eps"], c["num_attention_heads"]
        first = c["pad_token_id"] + 1 if c["model_type"] == "xlm-roberta" else 0
        act = activation(c["hidden_act"])

        def norm(x, name):
            return layer_norm(x, w[name + ".weight"], w[name + ".bias"], eps)

        def linear(x, name):
            return x @ w[name + ".weight"].T + w[name + ".bias"]

        x = w["embeddings.word_embeddings.weight"][ids]
        x = x + w["embeddings.position_embeddings.weight"][first : first + len(ids)]
        x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for i in range(c["num_hidden_layers"]):
            layer = f"encoder.layer.{i}."
            q, k, v = (linear(x, f"{layer}attention.self.{name}").reshape(len(ids), heads, -1)
                       for name in ("query", "key", "value"))
            mixed = np.zeros_like(v)
            for h in range(heads):
                scores = q[:, h] @ k[:, h].T / math.sqrt(q.shape[-1])
                scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
                mixed[:, h] = scores / scores.sum(axis=-1, keepdims=True) @ v[:, h]
            x = norm(x + linear(mixed.reshape(len(ids), -1), layer + "attention.output.dense"),
                     layer + "attention.output.LayerNorm")
            inner = act(linear(x, layer + "intermediate.dense"))
            x = norm(x + linear(inner, layer + "output.dense"), layer + "output.LayerNorm")
        return x

    def vector(self, ids) -> np.ndarray:
        x = self.rows(ids)
        pooled = {"mean": x.mean(axis=0), "cls": x[0], "last": x[-1]}[self.pooling]
        return pooled / np.linalg.norm(pooled) if self.normalize else pooled


def random_texts(count: int, seed: int, words: int) -> list[str]:
    """Texts of 1 to `words` words of 1 to 8 letters."""
    rng = np.random.default_rng(seed)
    letters = np.array(list(LETTERS + "A.,!é"))
    return [" ".join("".join(rng.choice(letters, size=rng.integers(1, 9))) for _ in range(rng.integers(1, words + 1)))
            for _ in range(count)]
