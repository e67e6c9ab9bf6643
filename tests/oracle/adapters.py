"""Random LoRA adapters in mlx-lm's and in PEFT's files, and mlx-lm's answers with them."""

import json
from pathlib import Path
from types import SimpleNamespace

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.tuner.lora import LoRALinear
from mlx_lm.tuner.utils import load_adapters

from . import tiny
from .host import HostLinear, forward, to_numpy

MODULES = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")  # fmt: skip


def draw(made: tiny.Checkpoint, rank: int, seed: int, size: float = 0.5, modules=MODULES) -> dict:
    """{module path: (A [K, R], B [R, N])}, float32 values that bfloat16 holds exactly. A branch is about `size` of its
    input's size at scale 1."""
    config = json.loads((made.path / "config.json").read_text())
    D, F, Dh = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    Dq, Dkv = config["num_attention_heads"] * Dh, config["num_key_value_heads"] * Dh
    extents = dict(zip(MODULES, ((D, Dq), (D, Dkv), (D, Dkv), (Dq, D), (D, F), (D, F), (F, D)), strict=True))
    rng = np.random.default_rng(seed)

    def values(rows, cols, scale):
        return to_numpy(mx.array((rng.normal(size=(rows, cols)) * scale).astype(np.float32)).astype(mx.bfloat16))

    factors = {}
    for layer in range(config["num_hidden_layers"]):
        for module in modules:
            K, N = extents[module]
            path = f"model.layers.{layer}.{module}"
            factors[path] = values(K, rank, K**-0.5), values(rank, N, size * rank**-0.5)
    return factors


def write_native(path: Path, factors: dict, scale: float, dtype=mx.float32) -> Path:
    path.mkdir(parents=True)
    rank = next(iter(factors.values()))[0].shape[1]
    tensors = {}
    for module, (a, b) in factors.items():
        tensors[f"{module}.lora_a"], tensors[f"{module}.lora_b"] = mx.array(a).astype(dtype), mx.array(b).astype(dtype)
    mx.save_safetensors(str(path / "adapters.safetensors"), tensors)
    layers = 1 + max(int(m.split(".")[2]) for m in factors)
    keys = sorted({m.split(".", 3)[3] for m in factors})
    parameters = dict(rank=rank, scale=scale, dropout=0.0, keys=keys)
    config = dict(fine_tune_type="lora", num_layers=layers, lora_parameters=parameters)
    (path / "adapter_config.json").write_text(json.dumps(config))
    return path


def write_peft(path: Path, factors: dict, scale: float, dtype=mx.float32, rslora: bool = False) -> Path:
    """As PEFT's save_pretrained names and turns them; `scale` becomes lora_alpha."""
    path.mkdir(parents=True)
    rank = next(iter(factors.values()))[0].shape[1]
    tensors = {}
    for module, (a, b) in factors.items():
        for letter, x in (("A", a), ("B", b)):
            tensors[f"base_model.model.{module}.lora_{letter}.weight"] = mx.array(np.ascontiguousarray(x.T)).astype(dtype)
    mx.save_safetensors(str(path / "adapter_model.safetensors"), tensors, metadata={"format": "pt"})
    config = dict(
        peft_type="LORA", task_type="CAUSAL_LM", base_model_name_or_path="org/model", revision=None, bias="none",
        r=rank, lora_alpha=scale * (rank**0.5 if rslora else rank), lora_dropout=0.0, use_rslora=rslora, use_dora=False,
        fan_in_fan_out=False, init_lora_weights=True, modules_to_save=None, rank_pattern={}, alpha_pattern={},
        target_modules=sorted({m.rsplit(".", 1)[1] for m in factors}),
    )  # fmt: skip
    (path / "adapter_config.json").write_text(json.dumps(config))
    return path


class _Adapted(HostLinear):
    """A host layer with mlx-lm's branch, in float32."""

    def __init__(self, inner: HostLinear, lora: LoRALinear):
        nn.Module.__init__(self)
        a, b = (HostLinear(to_numpy(factor).T) for factor in (lora.lora_a, lora.lora_b))
        self._host = SimpleNamespace(inner=inner, a=a, b=b, scale=lora.scale)  # where mlx does not look for modules

    def __call__(self, x):
        host = self._host
        return host.inner(x) + host.scale * host.b(host.a(x))


def native(made: tiny.Checkpoint, path: Path) -> nn.Module:
    """The checkpoint with the adapter as mlx-lm itself mounts it."""
    return load_adapters(tiny.load_native(made), str(path))


def native_logits(made: tiny.Checkpoint, path: Path) -> np.ndarray:
    return forward(native(made, path), made.forced)


def _float32_model(made: tiny.Checkpoint, path: Path) -> nn.Module:
    model = tiny.float32_oracle(made)
    hosts = dict(model.named_modules())
    for name, module in native(made, path).named_modules():
        if isinstance(module, LoRALinear):
            tiny.set_module(model, name, _Adapted(hosts[name], module))
    return model


def float32_logits(made: tiny.Checkpoint, path: Path) -> np.ndarray:
    return forward(_float32_model(made, path), made.forced)


def bound(made: tiny.Checkpoint, path: Path, exact: np.ndarray, eps: float) -> float:
    """tiny.bound() of the adapted model, whose float32 logits are `exact`."""
    return tiny.noise_bound(lambda: _float32_model(made, path), made.forced, exact, eps)


def smollm2_factors(seed: int = 0) -> dict:
    """Random factors of rank 8 for all seven projections of SmolLM2-135M."""
    rng = np.random.default_rng(seed)
    D, F, Dkv = 576, 1536, 192
    shapes = ((D, D), (D, Dkv), (D, Dkv), (D, D), (D, F), (D, F), (F, D))
    return {
        f"model.layers.{layer}.{module}": (rng.normal(size=(K, 8)).astype(np.float32) * K**-0.5,
                                           rng.normal(size=(8, N)).astype(np.float32) * 0.1)
        for layer in range(30) for module, (K, N) in zip(MODULES, shapes, strict=True)
    }  # fmt: skip


def smollm2_style(path, seed: int = 0):
    """They as an adapter in mlx-lm's files."""
    return write_native(path, smollm2_factors(seed), 2.0)
