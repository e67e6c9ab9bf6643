"""Files written by mlx and numpy's reader of our .npy agree with the readers and writers of formats."""
import json

import mlx.core as mx
import numpy as np
from tool import run_tool

DTYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16, "I32": mx.int32, "U32": mx.uint32, "U8": mx.uint8,
          "I8": mx.int8, "I64": mx.int64, "BOOL": mx.bool_}


def arrays(names, seed):
    rng = np.random.default_rng(seed)
    return {f"{name}.{dtype}": mx.array(rng.integers(0, 100, (2, 3, 5))).astype(kind)
            for name in names for dtype, kind in DTYPES.items()}


def check(path, wanted):
    table = json.loads(run_tool("formats", "safetensors", path))["tensors"]
    assert set(table) == set(wanted)
    for name, array in wanted.items():
        assert table[name] == {"dtype": name.split(".")[-1], "shape": list(array.shape)}
        got = np.frombuffer(run_tool("formats", "safetensors-tensor", path, name), np.float32)
        assert np.array_equal(got, np.array(array.astype(mx.float32)).reshape(-1)), name


def test_one_file(tmp_path):
    wanted = arrays(["a"], 1)
    mx.save_safetensors(str(tmp_path / "x.safetensors"), wanted, metadata={"format": "mlx"})
    check(tmp_path / "x.safetensors", wanted)
    assert json.loads(run_tool("formats", "safetensors", tmp_path / "x.safetensors"))["metadata"] == {"format": "mlx"}


def test_shards(tmp_path):
    first, second = arrays(["a"], 2), arrays(["b"], 3)
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for name, part in zip(names, (first, second)):
        mx.save_safetensors(str(tmp_path / name), part)
    check(tmp_path, first | second)
    index = {"weight_map": {t: name for name, part in zip(names, (first, second)) for t in part}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    check(tmp_path, first | second)


def test_npy(tmp_path):
    values = np.random.default_rng(4).standard_normal((7, 13), np.float32)
    run_tool("formats", "npy", tmp_path / "x.npy", 7, 13, stdin=values.tobytes())
    got = np.load(tmp_path / "x.npy")
    assert got.dtype == np.float32 and np.array_equal(got, values)
