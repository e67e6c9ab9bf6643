"""Tiny random checkpoints in MLX format, one of every architecture and layout, and mlx-lm's answers for them.

    python -m oracle.tiny OUT_DIR [CASE ...]      writes checkpoints (from tests/)

A random model's greedy choice hangs on tiny margins, which no rounding survives. So each checkpoint is made to know one
random sequence: everything is drawn and quantized first; then the last layer's down projection is solved (one linear
least-squares problem) such that the final residual after ids[0..t] points at the head's row of ids[t + 1]. The
margins are wide, and yet every logit hangs on all that the layers before computed.

Three oracles, all mlx-lm's classes on the CPU, teacher-forced over Checkpoint.forced:
  float32_logits   weights decoded to float32, all arithmetic float32
  native_logits    the checkpoint as mlx-lm loads it (bf16 or f16 activations)
  rounded_logits   as native, but products with quantized weights are summed in float32 and rounded once. MLX's CPU
                   kernel keeps those sums in bf16, which costs 13 times the error of one rounding at K = 384.
Without quantized weights the last two are the same. bound() says how far two right answers may lie apart.
"""

import argparse
import dataclasses
import functools
import importlib
import json
import sys
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model

from .host import HostEmbedding, HostLinear, PlainRmsNorm, forward, to_numpy

PROMPT = 8
STEPS = 100
SPECIAL = ("<s>", "</s>", "<pad>")
# How far the last layer turns the residual to the wanted row, in units of the residual's own size before it.
PULL = 2.5


@dataclasses.dataclass(frozen=True)
class Case:
    """One checkpoint. `config` overrides the architecture's own; `oracle` is what mlx-lm's class is told besides
    config.json, where it reads fewer spellings than hearth must."""

    name: str
    arch: str
    config: dict = dataclasses.field(default_factory=dict)
    oracle: dict = dataclasses.field(default_factory=dict)
    bits: int = 0  # 0: not quantized
    group: int = 64
    mixed: bool = False  # modules of 4 and 8 bits, and one left as it is
    dtype: str = "bfloat16"
    shards: int = 1
    seed: int = 1

    @property
    def eps(self) -> float:
        """Unit roundoff of the activation type."""
        return 2.0**-9 if self.dtype == "bfloat16" else 2.0**-12


@dataclasses.dataclass
class Checkpoint:
    case: Case
    path: Path
    ids: list[int]  # PROMPT + STEPS ids: greedy from the first PROMPT gives the rest

    @property
    def forced(self) -> list[int]:
        """The ids to force: the row of the last one predicts nothing that was asked for."""
        return self.ids[:-1]

    # The oracles' answers over `forced`, computed once: several tests ask for them.
    @functools.cached_property
    def float32(self) -> np.ndarray:
        return float32_logits(self)

    @functools.cached_property
    def native(self) -> np.ndarray:
        return native_logits(self)

    @functools.cached_property
    def rounded(self) -> np.ndarray:
        return rounded_logits(self) if self.case.bits else self.native

    @functools.cached_property
    def rounding_bound(self) -> float:
        return bound(self, self.case.eps)

    @functools.cached_property
    def float32_bound(self) -> float:
        return bound_of_float32(self)


_LLAMA = dict(
    model_type="llama",
    architectures=["LlamaForCausalLM"],
    hidden_size=128,
    num_hidden_layers=4,
    intermediate_size=384,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=64,
    rms_norm_eps=1e-5,
    vocab_size=515,
    rope_theta=10000.0,
    max_position_embeddings=512,
    tie_word_embeddings=False,
    hidden_act="silu",
)
ARCHITECTURES = {
    "llama": _LLAMA,
    "qwen2": {
        **_LLAMA,
        "model_type": "qwen2",
        "architectures": ["Qwen2ForCausalLM"],
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "rope_theta": 1000000.0,
        "rms_norm_eps": 1e-6,
    },
    "qwen3": {
        **_LLAMA,
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "rope_theta": 1000000.0,
        "rms_norm_eps": 1e-6,
    },
    "gemma3_text": {
        **_LLAMA,
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "num_hidden_layers": 6,
        "num_key_value_heads": 1,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "query_pre_attn_scalar": 64,
        "sliding_window": 12,
        "sliding_window_pattern": 3,
        "tie_word_embeddings": True,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh",
    },
}
_LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_WINDOWED = ["sliding_attention", "full_attention"] * 2
ABSENT = object()  # a config key to leave out


def _cases() -> list[Case]:
    cases = []
    for arch in ARCHITECTURES:
        short = arch.removesuffix("_text")
        cases += [
            Case(f"{short}-bf16", arch),
            Case(f"{short}-f16", arch, dtype="float16"),
            Case(f"{short}-q4", arch, bits=4),
            Case(f"{short}-q8", arch, bits=8),
            Case(f"{short}-mixed", arch, bits=4, mixed=True),
        ]
    for bits in (2, 3, 5, 6):
        cases.append(Case(f"llama-q{bits}", "llama", bits=bits))
    for bits, group in ((4, 32), (4, 128), (8, 32), (8, 128), (3, 32), (6, 128)):
        cases.append(Case(f"llama-q{bits}-g{group}", "llama", bits=bits, group=group))
    both = dict(attention_bias=True, mlp_bias=True)
    cases += [
        Case("llama-tied-q4", "llama", dict(tie_word_embeddings=True), bits=4),
        Case("qwen3-tied-q8", "qwen3", dict(tie_word_embeddings=True), bits=8),
        Case("llama-bias-bf16", "llama", both),
        Case("llama-bias-q4", "llama", both, bits=4),
        Case("llama-rope3-q8", "llama", dict(rope_scaling=_LLAMA3_ROPE, rope_theta=500000.0), bits=8),
        Case("llama-rope-linear", "llama", dict(rope_scaling={"type": "linear", "factor": 4.0})),
        Case("mistral-window-q4", "llama", dict(model_type="mistral", layer_types=_WINDOWED, sliding_window=16), bits=4),
        Case(
            "minicpm5-mixed",
            "llama",
            dict(rope_theta=ABSENT, rope_parameters={"full_attention": {"rope_theta": 5e6, "rope_type": "default"}}),
            oracle=dict(rope_theta=5e6),
            bits=4,
            mixed=True,
        ),
        Case(
            "gemma3-layer-types",
            "gemma3_text",
            dict(sliding_window_pattern=ABSENT, layer_types=(_WINDOWED[:1] * 2 + _WINDOWED[1:2]) * 2),
            oracle=dict(sliding_window_pattern=3),
        ),
        Case("gemma3-untied-q4", "gemma3_text", dict(tie_word_embeddings=False), bits=4),
        Case("qwen2-f16-q4", "qwen2", bits=4, dtype="float16"),
        Case("llama-sharded-q4", "llama", bits=4, shards=3),
    ]
    return cases


CASES = {case.name: case for case in _cases()}


def config_of(case: Case) -> dict:
    config = {**ARCHITECTURES[case.arch], **case.config, "torch_dtype": case.dtype}
    return {k: v for k, v in config.items() if v is not ABSENT}


def _arguments(case: Case, config: dict):
    module = importlib.import_module(f"mlx_lm.models.{case.arch}")
    return module, module.ModelArgs.from_dict({**config, **case.oracle})


def _draw(case: Case, config: dict):
    """The model with random weights of the case's type, not yet quantized."""
    module, args = _arguments(case, config)
    model = module.Model(args)
    gemma = case.arch == "gemma3_text"
    if gemma:
        model.tie_word_embeddings = config["tie_word_embeddings"]
        if model.tie_word_embeddings:
            model.pop("lm_head")
    rng = np.random.default_rng(case.seed)
    width = config["hidden_size"]
    weights = []
    for name, value in tree_flatten(model.parameters()):
        kind = name.split(".")[-2]
        if kind == "embed_tokens":
            drawn = rng.normal(size=value.shape) * (width**-0.5 if gemma else 1.0)
        elif "norm" in kind:
            drawn = rng.uniform(-0.25, 0.25, size=value.shape) + (0.0 if gemma else 1.0)
        elif name.endswith(".bias"):
            drawn = rng.normal(size=value.shape) * 0.5
        else:
            drawn = rng.normal(size=value.shape) * value.shape[-1] ** -0.5
            # A few outliers a row, as trained weights have: they stretch the groups they fall into.
            drawn *= np.where(rng.uniform(size=value.shape) < 0.005, 4.0, 1.0)
        weights.append((name, mx.array(drawn.astype(np.float32)).astype(getattr(mx, case.dtype))))
    model.load_weights(weights)
    return model


def module_bits(case: Case, path: str) -> dict | bool:
    """The quantization of one module: {bits, group_size}, or False where it stays as it is."""
    if not case.bits:
        return False
    if not case.mixed:
        return dict(group_size=case.group, bits=case.bits)
    if path.endswith("layers.1.mlp.up_proj"):
        return False
    last = path.rsplit(".", 1)[-1]
    wide = ".layers.0." in path or last in ("embed_tokens", "v_proj", "o_proj") or path.endswith("layers.2.mlp.down_proj")
    return dict(group_size=case.group, bits=8 if wide else 4)


def _quantize(case: Case, model: nn.Module) -> dict:
    """Quantizes in place; gives the table that stands in config.json."""
    table: dict = dict(group_size=case.group, bits=case.bits, mode="affine")

    def choose(path, module):
        if not hasattr(module, "to_quantized"):
            return False
        chosen = module_bits(case, path)
        if case.mixed:
            table[path] = chosen
        return chosen

    nn.quantize(model, group_size=case.group, bits=case.bits, class_predicate=choose)
    return table


def decoded(module: nn.Module) -> np.ndarray:
    """The float32 weight of a linear or embedding module, quantized or not; s q + b in float32."""
    if "scales" not in module:
        return to_numpy(module.weight)
    scales, biases = module.scales.astype(mx.float32), module.biases.astype(mx.float32)
    return to_numpy(mx.dequantize(module.weight, scales, biases, group_size=module.group_size, bits=module.bits))


def float32_model(case: Case, config: dict, source: nn.Module) -> nn.Module:
    """A copy of `source` with decoded float32 weights and float32 arithmetic."""
    module, args = _arguments(case, config)
    model = module.Model(args)
    gemma = case.arch == "gemma3_text"
    if gemma:
        model.tie_word_embeddings = config["tie_word_embeddings"]
        if model.tie_word_embeddings:
            model.pop("lm_head")
    for path, leaf in source.named_modules():
        if "weight" not in leaf:
            continue
        if "norm" in path.rsplit(".", 1)[-1]:
            # 1 + w is rounded to the weight's type, as every loader does.
            weight = to_numpy(1.0 + leaf.weight) if gemma else to_numpy(leaf.weight)
            new = PlainRmsNorm(weight, leaf.eps)
        elif path.endswith("embed_tokens"):
            new = HostEmbedding(decoded(leaf))
        else:
            new = HostLinear(decoded(leaf), to_numpy(leaf.bias) if "bias" in leaf else None)
        set_module(model, path, new)
    return model


def set_module(model: nn.Module, path: str, new: nn.Module) -> None:
    parent = model
    *parents, last = path.split(".")
    for key in parents:
        parent = parent[int(key)] if isinstance(parent, list) else parent[key]
    parent[last] = new


class _Tap(nn.Module):
    """Stands in for a module, keeps what it was given and answers with zeros."""

    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.seen: list[np.ndarray] = []

    def __call__(self, x):
        self.seen.append(to_numpy(x)[0])
        return mx.zeros((*x.shape[:-1], self.width))


def _teach(case: Case, config: dict, model: nn.Module, ids: list[int]) -> None:
    """Solves the last down projection so that the model continues ids[:PROMPT] with the rest."""
    width = config["hidden_size"]
    probe = float32_model(case, config, model)
    down, norm = _Tap(width), _Tap(width)
    last = probe.model.layers[-1]
    last.mlp.down_proj, final = down, probe.model.norm
    probe.model.norm = norm
    gemma = case.arch == "gemma3_text"
    if gemma:  # zeros would be divided by their own size there
        post, last.post_feedforward_layernorm = last.post_feedforward_layernorm, _Tap(width)
    probe.lm_head = HostLinear(np.zeros((1, width), np.float32))
    if gemma:
        probe.tie_word_embeddings = False
    probe.args.tie_word_embeddings = False
    forward(probe, ids[:-1])
    inputs = np.concatenate(down.seen)[PROMPT - 1 :].astype(np.float64)  # [STEPS, F]
    residual = np.concatenate(norm.seen)[PROMPT - 1 :].astype(np.float64)  # [STEPS, D], before the last MLP's share

    head = model.model.embed_tokens if config["tie_word_embeddings"] else model.lm_head
    rows = decoded(head).astype(np.float64) * to_numpy(final.weight)  # what a residual is multiplied by
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    size = np.linalg.norm(residual, axis=1, keepdims=True)
    # Tied tables answer with the token just read: take that part out.
    own = rows[np.asarray(ids[PROMPT - 1 : -1])]
    wanted = PULL * size * rows[np.asarray(ids[PROMPT:])] - np.sum(residual * own, axis=1, keepdims=True) * own
    if gemma:
        # The branch is normed before it is added: its weight carries the size, the projection the direction.
        scale = np.sqrt(np.mean(wanted**2))
        post_weight = np.full(width, scale) * np.random.default_rng(case.seed + 7).uniform(0.8, 1.25, width)
        stored = mx.array((post_weight - 1.0).astype(np.float32)).astype(getattr(mx, case.dtype))
        model.model.layers[-1].post_feedforward_layernorm.weight = stored
        wanted = wanted / post_weight / np.sqrt(np.mean((wanted / post_weight) ** 2, axis=1, keepdims=True))
    target = model.model.layers[-1].mlp.down_proj
    if "bias" in target:
        wanted = wanted - to_numpy(target.bias)
    solved = np.linalg.lstsq(inputs, wanted, rcond=1e-4)[0].T  # [D, F]
    weight = mx.array(solved.astype(np.float32)).astype(getattr(mx, case.dtype))
    if "scales" in target:
        target.weight, target.scales, target.biases = mx.quantize(weight, target.group_size, target.bits)
    else:
        target.weight = weight


def _ids(case: Case, config: dict) -> list[int]:
    rng = np.random.default_rng(case.seed + 1000)
    return [int(i) for i in rng.integers(len(SPECIAL), config["vocab_size"], size=PROMPT + STEPS)]


def _tokenizer(size: int) -> dict:
    """A byte-level BPE of `size` ids: three special tokens, the 256 bytes, and merges of letters."""
    from tokenizers import pre_tokenizers

    tokens = list(SPECIAL) + sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    merges = []
    for first in ["Ġ", *letters]:
        for second in letters:
            if len(tokens) < size:
                tokens.append(first + second)
                merges.append([first, second])
    byte_level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    return dict(
        version="1.0",
        truncation=None,
        padding=None,
        added_tokens=[dict(id=i, content=t, **flags) for i, t in enumerate(SPECIAL)],
        normalizer=None,
        pre_tokenizer=byte_level,
        post_processor=None,
        decoder=byte_level,
        model=dict(
            type="BPE",
            dropout=None,
            unk_token=None,
            continuing_subword_prefix=None,
            end_of_word_suffix=None,
            fuse_unk=False,
            byte_fallback=False,
            ignore_merges=False,
            vocab={t: i for i, t in enumerate(tokens)},
            merges=merges,
        ),
    )


def _save(case: Case, config: dict, model: nn.Module, table: dict, path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    weights = dict(tree_flatten(model.parameters()))
    mx.eval(weights)
    names = sorted(weights)
    per_shard = -(-len(names) // case.shards)
    where = {}
    for shard in range(case.shards):
        chosen = names[shard * per_shard : (shard + 1) * per_shard]
        file = "model.safetensors" if case.shards == 1 else f"model-{shard + 1:05d}-of-{case.shards:05d}.safetensors"
        mx.save_safetensors(str(path / file), {n: weights[n] for n in chosen}, metadata={"format": "mlx"})
        where.update({n: file for n in chosen})
    if case.shards > 1:
        index = dict(metadata=dict(total_size=sum(w.nbytes for w in weights.values())), weight_map=where)
        (path / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
    config = {**config, "bos_token_id": 0, "eos_token_id": 1}
    if table:
        config["quantization"] = config["quantization_config"] = table
    (path / "config.json").write_text(json.dumps(config, indent=1))
    (path / "tokenizer.json").write_text(json.dumps(_tokenizer(config["vocab_size"])))
    settings = dict(bos_token="<s>", eos_token="</s>", pad_token="<pad>", add_bos_token=False, model_max_length=512)
    (path / "tokenizer_config.json").write_text(json.dumps(settings))


def make(case: Case, root) -> Checkpoint:
    """Writes the checkpoint to root/case.name. The same case gives the same bytes."""
    config = config_of(case)
    model = _draw(case, config)
    table = _quantize(case, model) if case.bits else {}
    ids = _ids(case, config)
    _teach(case, config, model, ids)
    path = Path(root) / case.name
    _save(case, config, model, table, path)
    return Checkpoint(case, path, ids)


def load_native(checkpoint: Checkpoint) -> nn.Module:
    """The checkpoint as mlx-lm itself loads it."""
    return load_model(checkpoint.path, model_config=dict(checkpoint.case.oracle))[0]


def native_logits(checkpoint: Checkpoint) -> np.ndarray:
    return forward(load_native(checkpoint), checkpoint.forced)


class _Rounded(nn.Module):
    """A host layer whose answers are rounded to the activation type."""

    def __init__(self, inner: nn.Module, dtype):
        super().__init__()
        self._inner, self._dtype = [inner], dtype

    def __call__(self, x):
        return self._inner[0](x).astype(self._dtype)

    def as_linear(self, x):
        return self._inner[0].as_linear(x).astype(self._dtype)


def rounded_logits(checkpoint: Checkpoint) -> np.ndarray:
    model = load_native(checkpoint)
    dtype = getattr(mx, checkpoint.case.dtype)
    for path, leaf in list(model.named_modules()):
        if "scales" in leaf:
            table = path.endswith("embed_tokens")
            inner = HostEmbedding(decoded(leaf)) if table else HostLinear(decoded(leaf), _bias(leaf))
            set_module(model, path, _Rounded(inner, dtype))
    return forward(model, checkpoint.forced)


def _bias(leaf: nn.Module) -> np.ndarray | None:
    return to_numpy(leaf.bias) if "bias" in leaf else None


def float32_oracle(checkpoint: Checkpoint) -> nn.Module:
    """The checkpoint with decoded weights and float32 arithmetic, for host.forward."""
    config = json.loads((checkpoint.path / "config.json").read_text())
    return float32_model(checkpoint.case, config, load_native(checkpoint))


def float32_logits(checkpoint: Checkpoint, kv_bits: int = 0) -> np.ndarray:
    return forward(float32_oracle(checkpoint), checkpoint.forced, kv_bits=kv_bits)


class _Noisy(nn.Module):
    """Moves every output of a layer by up to `size` of itself, uniformly."""

    def __init__(self, inner: nn.Module, size: float, rng):
        super().__init__()
        self._inner, self._size, self._rng = [inner], size, [rng]

    def _shake(self, y):
        moves = self._rng[0].uniform(-self._size, self._size, size=y.shape).astype(np.float32)
        return y * mx.array(1.0 + moves)

    def __call__(self, x):
        return self._shake(self._inner[0](x))

    def as_linear(self, x):
        return self._shake(self._inner[0].as_linear(x))


# A layer module stands for up to three roundings: its own, its bias's or second factor's, and that of the elementwise
# step behind it (rope, attention, activation, addition).
ROUNDINGS_A_MODULE = 3
DRAWS = 12


def bound(checkpoint: Checkpoint, eps: float) -> float:
    """How far two right forwards of unit roundoff `eps` may lie apart in any logit of the checkpoint.

    Rounding errors are played through the float32 oracle: every module's output is moved at random by its share of eps,
    so the model itself says how it amplifies them. The largest move of DRAWS runs is taken sqrt(2) times, since both
    sides round, and twice, since few draws do not show the maximum (six of one case stayed a fifth below the largest of
    thirty, twelve did not). eps is 2^-9 for bf16, 2^-12 for f16.
    """
    return noise_bound(lambda: float32_oracle(checkpoint), checkpoint.forced, checkpoint.float32, eps)


def noise_bound(make_model, forced, exact: np.ndarray, eps: float) -> float:
    """bound() of any model of host layers, made anew by each call, whose logits over `forced` are `exact`."""
    largest = 0.0
    for draw in range(DRAWS):
        model = make_model()
        rng = np.random.default_rng(draw)
        for path, leaf in list(model.named_modules()):
            if isinstance(leaf, (HostLinear, HostEmbedding, PlainRmsNorm)):
                set_module(model, path, _Noisy(leaf, eps * ROUNDINGS_A_MODULE**0.5, rng))
        largest = max(largest, float(np.abs(forward(model, forced) - exact).max()))
    return 2.0 * 2.0**0.5 * largest


def bound_of_float32(checkpoint: Checkpoint) -> float:
    """bound() for float32 sums: K additions of random error sqrt(K) 2^-24, K the MLP width."""
    config = json.loads((checkpoint.path / "config.json").read_text())
    return bound(checkpoint, 2.0**-24 * config["intermediate_size"] ** 0.5)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description="write tiny random checkpoints")
    parser.add_argument("out")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"default all of: {', '.join(CASES)}")
    args = parser.parse_args(argv)
    for name in args.cases or CASES:
        print(make(CASES[name], args.out).path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
