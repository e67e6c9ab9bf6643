"""Writes the seed corpora of these fuzz targets, tests/fuzz/corpus. Made with gguf 0.19.0. Run: python tests/fuzz/formats/make_corpus.py"""
import json
import pathlib
import struct

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).parents[1] / "corpus"


def save(target, name, data):
    (ROOT / target).mkdir(parents=True, exist_ok=True)
    (ROOT / target / name).write_bytes(data)


def write_gguf(name, arch, tensors=(), alignment=None):
    (ROOT / "gguf").mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(ROOT / "gguf" / name, arch)
    if alignment:
        writer.add_custom_alignment(alignment)
    writer.add_context_length(64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list(["<unk>", "<s>", "a"])
    writer.add_token_scores([0.0, -1.0, 2.5])
    writer.add_token_types([2, 3, 1])
    writer.add_add_bos_token(True)
    for tensor, array, kind in tensors:
        writer.add_tensor(tensor, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


T = gguf.GGMLQuantizationType
write_gguf("metadata.gguf", "llama")
write_gguf("plain.gguf", "qwen2", [("a", np.ones((2, 4), np.float32), None), ("b", np.ones(8, np.float16), None)])
write_gguf("blocks.gguf", "gemma3", [(k.name, np.zeros((2, gguf.GGML_QUANT_SIZES[k][1]), np.uint8), k)
                                     for k in (T.Q4_0, T.Q4_1, T.Q5_0, T.Q8_0, T.Q4_K, T.Q6_K)], alignment=8)


def safetensors(header, size):
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


save("safetensors", "empty", safetensors({}, 0))
save("safetensors", "plain", safetensors({"a": entry("F32", [2, 2], 0, 16), "b": entry("BF16", [3], 16, 22)}, 22))
save("safetensors", "quantized", safetensors({
    "__metadata__": {"format": "mlx"}, "m.weight": entry("U32", [1, 8], 0, 32), "m.scales": entry("F16", [1, 1], 32, 34),
    "m.biases": entry("F16", [1, 1], 34, 36), "s": entry("F8_E4M3", [], 36, 37)}, 37))
save("safetensors_index", "two", json.dumps({"metadata": {"total_size": 8}, "weight_map": {
    "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode())
save("config", "plain", json.dumps({"model_type": "llama", "rope_theta": 1e6, "eos_token_id": [1, 2]}).encode())
save("config", "table", json.dumps({"quantization": {"bits": 4, "group_size": 64, "mode": "affine", "a.b": {"bits": 8},
                                                     "lm_head": False}}).encode())
save("config", "nested", json.dumps({"text_config": {"quantization_config": {"bits": 3, "group_size": 32}}}).encode())
save("config", "kv", json.dumps([{"layer_idx": 0, "bits": 8, "group_size": 64}]).encode())


# A config, a zero byte, the weights; the base's linears are those of tests/formats/parsers.h.
def adapter(name, config, tensors):
    header, end = {}, 0
    for tensor, dtype, shape in tensors:
        size = int(np.prod(shape)) * (4 if dtype == "F32" else 2)
        header[tensor] = entry(dtype, shape, end, end + size)
        end += size
    save("adapter", name, json.dumps(config).encode() + b"\0" + safetensors(header, end))


adapter("native", {"fine_tune_type": "lora", "lora_parameters": {"rank": 1, "scale": 2.0}},
        [("model.layers.0.q_proj.lora_a", "F32", [2, 1]), ("model.layers.0.q_proj.lora_b", "F32", [1, 3])])
PEFT = "base_model.model.model.layers.0.o_proj.lora_"
adapter("peft", {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "use_rslora": True, "bias": "none", "rank_pattern": {"o_proj": 2}},
        [(PEFT + "A.weight", "BF16", [2, 3]), (PEFT + "B.weight", "F16", [2, 2])])
