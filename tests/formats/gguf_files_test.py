"""Real and written GGUF files read back as the gguf package reads them."""
import json

import gguf
import numpy as np
import pytest
from tool import run_tool


def check_same(path):
    got = json.loads(run_tool("formats", "gguf", path))
    reader = gguf.GGUFReader(path)
    wanted = {k: f for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    assert list(got["metadata"]) == list(wanted)
    for key, field in wanted.items():
        want = field.contents()
        if isinstance(want, list) and want and isinstance(want[0], float):
            assert np.array_equal(np.float32(got["metadata"][key]), np.float32(want)), key
        elif isinstance(want, float):
            assert np.float32(got["metadata"][key]) == np.float32(want), key
        else:
            assert got["metadata"][key] == want, key
    assert list(got["tensors"]) == [t.name for t in reader.tensors]
    for t in reader.tensors:
        entry = got["tensors"][t.name]
        assert entry == {"type": t.tensor_type.name.lower(), "shape": [int(d) for d in t.shape][::-1],
                         "bytes": int(t.n_bytes)}
    return reader


@pytest.mark.parametrize("name", ["smollm2", pytest.param("gemma", marks=pytest.mark.full),
                                  pytest.param("qwen-0.5b", marks=pytest.mark.full)])
def test_model_file(name, model_file):
    path = model_file(name)
    reader = check_same(path)
    seen = set()
    for t in reader.tensors:  # one tensor of each type, the smallest
        if t.tensor_type in seen or t.n_elements > 2_000_000:
            continue
        seen.add(t.tensor_type)
        want = gguf.quants.dequantize(np.asarray(t.data), t.tensor_type).astype(np.float32).reshape(-1)
        got = np.frombuffer(run_tool("formats", "gguf-tensor", path, t.name), np.float32)
        assert np.array_equal(got.view(np.uint32), want.view(np.uint32)), t.name
    assert seen


def write(path, arch="test", values=(), tensors=(), **kwargs):
    writer = gguf.GGUFWriter(path, arch, **kwargs)
    for add, key, value in values:
        getattr(writer, add)(key, value)
    for name, array in tensors:
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_written_file(tmp_path):
    rng = np.random.default_rng(5)
    values = [("add_uint8", "a.u8", 255), ("add_int8", "a.i8", -128), ("add_uint16", "a.u16", 65535),
              ("add_int16", "a.i16", -32768), ("add_uint32", "a.u32", 2**32 - 1), ("add_int32", "a.i32", -(2**31)),
              ("add_uint64", "a.u64", 2**63 - 1), ("add_int64", "a.i64", -(2**63)), ("add_float32", "a.f32", 1.5),
              ("add_float64", "a.f64", -2.25), ("add_bool", "a.yes", True), ("add_bool", "a.no", False),
              ("add_string", "a.text", "déjà \U0001f600\n"), ("add_array", "a.words", ["", "x", "\u2581the"]),
              ("add_array", "a.numbers", [1, -2, 3]), ("add_array", "a.floats", [0.5, -1.0]),
              ("add_array", "a.flags", [True, False])]
    tensors = [("one", rng.standard_normal(7, np.float32)), ("two", rng.standard_normal((3, 5), np.float32)),
               ("half", rng.standard_normal((2, 3, 4)).astype(np.float16)),
               ("four", rng.standard_normal((2, 3, 4, 5), np.float32))]
    path = tmp_path / "all.gguf"
    write(path, values=values, tensors=tensors)
    check_same(path)
    for name, array in tensors:
        got = np.frombuffer(run_tool("formats", "gguf-tensor", path, name), np.float32)
        assert np.array_equal(got, array.astype(np.float32).reshape(-1))


def test_split_file(tmp_path):
    rng = np.random.default_rng(6)
    tensors = [(f"t{i}", rng.standard_normal((4, 8), np.float32)) for i in range(7)]
    writer_path = tmp_path / "split.gguf"
    write(writer_path, tensors=tensors, split_max_tensors=3)
    parts = sorted(tmp_path.glob("split-*.gguf"))
    assert len(parts) == 3
    got = json.loads(run_tool("formats", "gguf", parts[0]))
    assert list(got["tensors"]) == [name for name, _ in tensors]
    for name, array in tensors:
        assert run_tool("formats", "gguf-tensor", parts[0], name) == array.tobytes()
    second = run_tool("formats", "gguf", parts[1], check=False)
    assert second.returncode == 1 and b"part 2 of 3; name the first part" in second.stderr
    parts[2].unlink()
    absent = run_tool("formats", "gguf", parts[0], check=False)
    assert absent.returncode == 1 and b"split-00003-of-00003.gguf: No such file" in absent.stderr
