"""float32 oracle for real GGUF files: the gguf package decodes the blocks, mlx-lm's classes run the model.

    python -m oracle.gguf_f32 FILE.gguf --prompt "The capital of France is"      (from tests/)

Architectures: llama, qwen2, qwen3, gemma3. Anything that the classes cannot express (a rope scaling other than none or
linear, a missing tensor, a tensor left over) raises; nothing is guessed.
"""

import argparse
import hashlib
import os
import sys
from pathlib import Path

import gguf
import mlx.core as mx
import numpy as np
from mlx_lm.models import gemma3_text, llama, qwen2, qwen3

from .host import ExactRope, HostEmbedding, HostLinear, PlainRmsNorm, forward, greedy, inverse_frequencies

PROJECTIONS = {
    "attn_q": ("self_attn", "q_proj"),
    "attn_k": ("self_attn", "k_proj"),
    "attn_v": ("self_attn", "v_proj"),
    "attn_output": ("self_attn", "o_proj"),
    "ffn_gate": ("mlp", "gate_proj"),
    "ffn_up": ("mlp", "up_proj"),
    "ffn_down": ("mlp", "down_proj"),
}
LLAMA_NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
GEMMA_NORMS = {
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
HEAD_NORMS = {"attn_q_norm": "q_norm", "attn_k_norm": "k_norm"}


class GgufFile:
    """Metadata and tensors; tensors are decoded to float32 [N, K] on request and counted."""

    def __init__(self, path):
        self.path = Path(path)
        self.reader = gguf.GGUFReader(str(path))
        self.arch = self.get("general.architecture")
        self.tensors = {t.name: t for t in self.reader.tensors}
        self.taken: set[str] = set()

    def get(self, key: str, *default):
        field = self.reader.fields.get(key)
        if field is not None:
            return field.contents()
        if default:
            return default[0]
        raise KeyError(f"{self.path.name} has no key {key}")

    def arch_key(self, key: str, *default):
        return self.get(f"{self.arch}.{key}", *default)

    def has(self, name: str) -> bool:
        return name in self.tensors

    def decode(self, name: str) -> np.ndarray:
        if name not in self.tensors:
            raise KeyError(f"{self.path.name} has no tensor {name}")
        tensor = self.tensors[name]
        self.taken.add(name)
        shape = [int(n) for n in reversed(tensor.shape)]
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        return np.ascontiguousarray(values, dtype=np.float32).reshape(shape)


def unpermute(rows: np.ndarray, heads: int) -> np.ndarray:
    """q and k rows of llama files stand in pair order: row 2i + t of a head is row i + t Dh/2 of the model."""
    width = rows.shape[0] // heads
    paired = rows.reshape(heads, width // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(paired.swapaxes(1, 2).reshape(rows.shape))


def _common_args(f: GgufFile) -> dict:
    heads = f.arch_key("attention.head_count")
    width = f.arch_key("attention.key_length", f.arch_key("embedding_length") // heads)
    return dict(
        model_type=f.arch,
        hidden_size=f.arch_key("embedding_length"),
        num_hidden_layers=f.arch_key("block_count"),
        intermediate_size=f.arch_key("feed_forward_length"),
        num_attention_heads=heads,
        num_key_value_heads=f.arch_key("attention.head_count_kv", heads),
        head_dim=width,
        rms_norm_eps=f.arch_key("attention.layer_norm_rms_epsilon"),
        vocab_size=f.tensors["token_embd.weight"].shape[1],
        max_position_embeddings=f.arch_key("context_length"),
        rope_theta=float(f.arch_key("rope.freq_base", 10000.0)),
        tie_word_embeddings=not f.has("output.weight"),
    )


def _classes(arch: str):
    table = {"llama": llama, "qwen2": qwen2, "qwen3": qwen3, "gemma3": gemma3_text}
    if arch not in table:
        raise ValueError(f"the oracle knows {', '.join(table)}, not {arch}")
    return table[arch]


def _rope(f: GgufFile, base: float, width: int, scaled: bool) -> ExactRope:
    if f.arch_key("rope.dimension_count", width) != width:
        raise ValueError("partial rotation is not part of these architectures")
    inv_freq = inverse_frequencies(base, width)
    if scaled:
        kind = f.arch_key("rope.scaling.type", "none")
        if kind == "linear":
            inv_freq = inv_freq / f.arch_key("rope.scaling.factor")
        elif kind != "none":
            raise ValueError(f"rope scaling {kind} is not known to the oracle")
        if f.has("rope_freqs.weight"):
            inv_freq = inv_freq / f.decode("rope_freqs.weight").astype(np.float64)
    return ExactRope(inv_freq)


def _linear(f: GgufFile, name: str, dtype, permuted_heads: int = 0) -> HostLinear:
    weight = f.decode(f"{name}.weight")
    bias = f.decode(f"{name}.bias") if f.has(f"{name}.bias") else None
    if permuted_heads:
        weight = unpermute(weight, permuted_heads)
        bias = None if bias is None else unpermute(bias, permuted_heads)
    return HostLinear(weight, bias, dtype)


def load(path, dtype=np.float32):
    """The model of a GGUF file, weights decoded exactly, ready for host.forward.

    dtype is the type of products and sums inside linear layers (float64 shows the oracle's own error).
    """
    f = path if isinstance(path, GgufFile) else GgufFile(path)
    module, args = _classes(f.arch), _common_args(f)
    gemma = f.arch == "gemma3"
    if gemma:
        args["sliding_window"] = f.arch_key("attention.sliding_window")
        args["sliding_window_pattern"] = f.arch_key("attention.sliding_window_pattern", 6)
        args["query_pre_attn_scalar"] = args["head_dim"]
    if f.arch == "qwen2" and args["head_dim"] * args["num_attention_heads"] != args["hidden_size"]:
        raise ValueError("qwen2 needs head width D / H")
    config = module.ModelArgs.from_dict(args)
    model = module.Model(config)
    eps = config.rms_norm_eps

    model.model.embed_tokens = HostEmbedding(f.decode("token_embd.weight"), dtype)
    # mlx-lm's gemma3 class starts with a head of its own and drops it in sanitize() when the file has none.
    if gemma and not f.has("output.weight"):
        model.tie_word_embeddings = True
        if "lm_head" in model:
            model.pop("lm_head")
    if f.has("output.weight"):
        model.lm_head = _linear(f, "output", dtype)
    model.model.norm = PlainRmsNorm(f.decode("output_norm.weight"), eps)

    for i, layer in enumerate(model.model.layers):
        for name, (parent, child) in PROJECTIONS.items():
            permuted = 0
            if f.arch == "llama" and child in ("q_proj", "k_proj"):
                permuted = args["num_attention_heads" if child == "q_proj" else "num_key_value_heads"]
            layer[parent][child] = _linear(f, f"blk.{i}.{name}", dtype, permuted)
        for name, child in (GEMMA_NORMS if gemma else LLAMA_NORMS).items():
            layer[child] = PlainRmsNorm(f.decode(f"blk.{i}.{name}.weight"), eps)
        if f.arch in ("qwen3", "gemma3"):
            for name, child in HEAD_NORMS.items():
                layer.self_attn[child] = PlainRmsNorm(f.decode(f"blk.{i}.{name}.weight"), eps)
        local = gemma and layer.self_attn.is_sliding
        base = f.arch_key("rope.freq_base_swa", 10000.0) if local else args["rope_theta"]
        layer.self_attn.rope = _rope(f, base, args["head_dim"], scaled=not local)

    left = set(f.tensors) - f.taken
    if left:
        raise ValueError(f"{f.path.name}: tensors not used by the oracle: {', '.join(sorted(left)[:5])}")
    mx.eval(model.parameters())
    return model


def file_sha256(path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


class Oracle:
    """Logits of one GGUF file over given ids, kept as .npy files under `cache_dir`.

    Keys are the file's SHA-256 and the hash of the ids (and of this code's version), so a changed file or text never
    meets an old answer. The model is decoded only when an answer is missing.
    """

    VERSION = 1

    def __init__(self, path, cache_dir):
        self.path = Path(path)
        self.cache_dir = Path(cache_dir)
        self._sha = None
        self._model = None

    @property
    def sha(self) -> str:
        if self._sha is None:
            self._sha = file_sha256(self.path)
        return self._sha

    @property
    def model(self):
        if self._model is None:
            self._model = load(self.path)
        return self._model

    def logits(self, ids) -> np.ndarray:
        """float32 [T, V], memory-mapped from the cache."""
        ids = np.asarray(ids, dtype=np.int32)
        key = hashlib.sha256(f"{self.VERSION} {len(ids)} ".encode() + ids.tobytes()).hexdigest()[:24]
        file = self.cache_dir / self.sha[:24] / f"{key}.npy"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_suffix(f".{os.getpid()}.part")
            with open(part, "wb") as out:
                np.save(out, forward(self.model, ids))
            os.replace(part, file)
        return np.load(file, mmap_mode="r")

    def release(self) -> None:
        """Drops the decoded weights; cached answers stay."""
        self._model = None
        mx.clear_cache()


def main(argv=None) -> int:
    from . import gguf_ids

    parser = argparse.ArgumentParser(description="greedy text from the float32 oracle")
    parser.add_argument("file")
    parser.add_argument("--prompt", default="The capital of France is")
    parser.add_argument("--tokens", type=int, default=32)
    args = parser.parse_args(argv)
    words = gguf_ids.Words(args.file)
    prompt = words.encode(args.prompt)
    ids = greedy(load(args.file), prompt, args.tokens, stop={words.eos})
    print(f"prompt ids {prompt}\nids {ids}\n{args.prompt}{words.decode(ids)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
