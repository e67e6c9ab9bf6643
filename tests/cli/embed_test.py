"""hearth embed: what it prints, the rule of instructions, bad input as one sentence with its exit code."""
import base64
import json
import math
import os
import pathlib
import struct
import subprocess

import pytest
from oracle import bert, tiny

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth").absolute()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    case = bert.Case("tiny-bert", L=2, max_seq_length=40)
    return bert.make(case, tmp_path_factory.mktemp("embed"))


@pytest.fixture
def run(tmp_path):
    def call(*args, input="", code=0):
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "HF_HUB_CACHE": str(tmp_path / "hub"),
                       "HEARTH_THREADS": "1"}
        done = subprocess.run([BINARY, *map(str, args)], env=environment, input=input, text=True, capture_output=True,
                              timeout=60, cwd=tmp_path)
        assert done.returncode == code, (done.args, done.stdout[:300], done.stderr)
        return done

    return call


def float32(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


def test_a_vector_a_line(run, model):
    lines = run("embed", model, "hello there", "b").stdout.splitlines()
    assert [len(line.split(" ")) for line in lines] == [96, 96]
    for line in lines:
        assert math.isclose(math.hypot(*map(float, line.split())), 1, abs_tol=1e-6)


def test_base64_holds_the_same_float32(run, model):
    texts = ["hello there", "b", "zz top"]
    floats = run("embed", model, *texts).stdout.splitlines()
    coded = run("embed", model, *texts, "--encoding", "base64").stdout.splitlines()
    document = json.loads(run("embed", model, *texts, "--json").stdout)
    coded_document = json.loads(run("embed", model, *texts, "--json", "--encoding", "base64").stdout)
    for plain, code, numbers, same in zip(floats, coded, document["embeddings"], coded_document["embeddings"], strict=True):
        values = list(struct.unpack("<96f", base64.b64decode(code, validate=True)))
        assert [float32(x) for x in plain.split()] == values == numbers
        assert same == code
    assert coded_document["encoding"] == "base64"


def test_the_document(run, model):
    document = json.loads(run("embed", model, "ab", "abc", "--json", "--dimensions", 12).stdout)
    vectors = document.pop("embeddings")
    assert document == {"schema_version": 1, "model": str(model), "pooling": "mean", "normalized": True, "encoding": "float",
                        "dimensions": 12, "tokens": [4, 5]}
    assert [len(v) for v in vectors] == [12, 12]
    whole = json.loads(run("embed", model, "ab", "--json").stdout)["embeddings"][0]
    size = math.hypot(*whole[:12])
    assert all(math.isclose(a, b / size, abs_tol=1e-6) for a, b in zip(vectors[0], whole[:12], strict=True))


def test_standard_input_is_a_text_a_line(run, model):
    want = run("embed", model, "one", "two words", "three").stdout
    assert run("embed", model, "-", input="one\ntwo words\r\nthree\n").stdout == want
    assert run("embed", model, "one", "-", "three", input="two words").stdout == want


def test_an_instruction_makes_queries(run, model):
    want = run("embed", model, "Instruct: find it\nQuery:ab").stdout
    assert run("embed", model, "ab", "--instruction", "find it").stdout == want
    assert run("embed", model, "ab").stdout != want


def test_pooling_in_place_of_the_files(run, model):
    def vectors(*flags):
        return json.loads(run("embed", model, "hello", "--json", *flags).stdout)

    assert vectors("--pooling", "mean")["embeddings"] == vectors()["embeddings"]
    assert vectors("--pooling", "cls")["embeddings"] != vectors()["embeddings"]
    assert vectors("--pooling", "last")["pooling"] == "last"


def test_a_decoder_makes_vectors_where_its_pooling_is_named(run, tmp_path):
    decoder = tiny.make(tiny.CASES["qwen3-bf16"], tmp_path).path
    assert len(run("embed", decoder, "hello", "--pooling", "last").stdout.split()) == 128
    (decoder / "config_sentence_transformers.json").write_text("{}")
    assert json.loads(run("embed", decoder, "hello", "--json").stdout)["pooling"] == "last"


@pytest.mark.parametrize("words, code, part", [
    ([], 2, "embed takes TEXT"),
    (["a", ""], 2, "text 2 is empty"),
    (["-", "-"], 2, "standard input can be read once"),
    (["a", "--dimensions", 0], 2, "--dimensions is '0'"),
    (["a", "--dimensions", 97], 2, "97 dimensions were asked for, vectors of "),
    (["a", "--encoding", "int8"], 2, "float, base64"),
    (["a", "--pooling", "max"], 2, "mean, cls, last"),
    (["b", "a " * 39], 2, "text 2 has 41 tokens, "),
    (["b", "a " * 39], 2, "config.json takes 40 at most"),
    (["a", "--instruction", "b " * 40], 2, "text 1 has "),
    (["a", "--executor", "reference", "--numerics", "fast"], 2, "numerics fast is not offered"),
    (["a", "--memory-budget", "1MB"], 4, "the memory budget is 1 MB"),
])
def test_bad_input_is_one_sentence(run, model, words, code, part):
    done = run("embed", model, *words, code=code)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("hearth: ") and len(lines) <= 2 and part in lines[0], done.stderr


def test_lines_without_words(run, model):
    assert "text 2 is empty" in run("embed", model, "-", input="a\n\nb\n", code=2).stderr
    assert "embed takes TEXT" in run("embed", model, "-", input="", code=2).stderr


def test_texts_that_are_no_utf8(run, model, tmp_path):
    done = subprocess.run([BINARY, "embed", model, b"a\xffb"], capture_output=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    assert done.returncode == 2 and b"text 1 is not UTF-8 at byte 1" in done.stderr


def test_a_model_that_writes_text_is_no_embedding_model(run, tmp_path):
    decoder = tiny.make(tiny.CASES["llama-bf16"], tmp_path).path
    assert "is no embedding model" in run("embed", decoder, "a", code=2).stderr


@pytest.mark.parametrize("words", [
    ["generate", "MODEL", "a", "--raw"], ["perplexity", "MODEL", "--data", "DATA"], ["bench", "MODEL"],
    ["logits", "MODEL", "--ids", "1,2", "--out", "x.npy"],
])
def test_an_encoder_writes_no_text(run, model, tmp_path, words):
    data = tmp_path / "data.txt"
    data.write_text("abc " * 1000)
    done = run(*[{"MODEL": model, "DATA": data}.get(word, word) for word in words], code=2)
    assert "makes vectors of texts and writes none; hearth embed uses it" in done.stderr


def test_show_fit_and_doctor_know_an_encoder(run, model):
    facts = json.loads(run("show", model, "--json").stdout)
    assert facts["embedding"] == {"pooling": "mean", "normalized": True, "tokens_max": 40}
    assert facts["kv_bytes_per_position"] == 0 and facts["warnings"] == []
    assert "mean pooling, of length 1, texts of up to 40 tokens" in run("show", model).stdout
    fit = json.loads(run("fit", model, "--json").stdout)
    report = fit["report"]
    assert "tok/s" not in run("fit", model).stdout, "it writes no text"
    assert report["fits"] and report["kv_bytes"] == 0 and report["max_safe_context"] == 40 and fit["typical_decode_tps"] is None
    assert "NaN or infinite scale or value in 37 weights" in run("doctor", "--deep", model).stdout


def test_files_that_say_what_is_not_supported(run, model, tmp_path):
    case = bert.Case("other", L=1)
    path = bert.make(case, tmp_path)
    modules = json.loads((path / "modules.json").read_text())
    modules[2]["type"] = "sentence_transformers.models.Dense"
    (path / "modules.json").write_text(json.dumps(modules))
    assert '"sentence_transformers.models.Dense" is not supported' in run("embed", path, "a", code=2).stderr
    assert "Dense" in run("show", path).stderr
    (path / "modules.json").write_text("[")
    assert "modules.json: " in run("embed", path, "a", code=1).stderr


def test_weights_that_are_no_numbers_give_no_vectors(run, tmp_path):
    case = bert.Case("nan", L=1)
    path = bert.make(case, tmp_path)
    from safetensors.numpy import load_file, save_file

    weights = load_file(path / "model.safetensors")
    weights["encoder.layer.0.output.dense.weight"][3, 5] = float("nan")
    save_file(weights, path / "model.safetensors")
    done = run("embed", path, "a", code=1)
    assert done.stdout == "" and "the vector of text 1 is not finite" in done.stderr
