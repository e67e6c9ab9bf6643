"""Writes the seed corpus tests/fuzz/corpus/embedding. Run: python tests/fuzz/model/make_embedding_corpus.py"""
import json
import pathlib

ROOT = pathlib.Path(__file__).parents[1] / "corpus" / "embedding"


def save(name, **files):
    ROOT.mkdir(parents=True, exist_ok=True)
    parts = [part for key, value in files.items() for part in (key, json.dumps(value, separators=(",", ":")))]
    (ROOT / name).write_bytes("\0".join(parts).encode())


def modules(*kinds):
    return [{"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
            for i, kind in enumerate(kinds)]


POOLING, LIMITS = "1_Pooling/config.json", "sentence_bert_config.json"
save("minilm", **{"modules.json": modules("Transformer", "Pooling", "Normalize"), LIMITS: {"max_seq_length": 256},
                  POOLING: {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True}})
save("qwen3", **{"modules.json": modules("Transformer", "Pooling", "Normalize"),
                 POOLING: {"pooling_mode_lasttoken": True, "include_prompt": True}})
save("new", **{"modules.json": modules("Transformer", "Pooling"), POOLING: {"pooling_mode": "cls", "embedding_dimension": 384}})
save("dense", **{"modules.json": modules("Transformer", "Pooling", "Dense"), POOLING: {"pooling_mode_mean_tokens": True}})
save("bare", **{POOLING: {"pooling_mode_cls_token": True}, LIMITS: {"do_lower_case": True}})
save("named", **{"config_sentence_transformers.json": {"prompts": {}}})
