"""Bad input at the command line: each a sentence that names the culprit, the right exit code, nothing half-written."""
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import time

import gguf
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth").absolute()
CODES = (0, 1, 2, 3, 4, 130)


@pytest.fixture
def run(tmp_path):
    """run(*args) -> CompletedProcess with bytes, in an environment of its own."""
    if not BINARY.is_file():
        pytest.fail(f"{BINARY}: no hearth binary there; HEARTH_BIN names it")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "HF_HUB_CACHE": str(tmp_path / "hub")}

    def call(*args, env=None, input=b"", **more):
        return subprocess.run([BINARY, *args], env={**environment, **(env or {})}, input=input, capture_output=True,
                              timeout=60, cwd=tmp_path, **more)

    call.environment = environment
    return call


def refused(done, code, *parts):
    """At most two lines on stderr beside the progress of a slow load, the first a sentence with all `parts`."""
    error = done.stderr.decode(errors="replace")
    assert done.returncode == code, (done.args, done.stdout[:200], error)
    lines = [line for line in error.splitlines() if not line.startswith("loading ")]
    assert lines and lines[0].startswith("hearth: ") and len(lines) <= 2, error
    for part in parts:
        assert part in lines[0], (part, error)


def limit(what, value):
    return lambda: resource.setrlimit(what, (value, value))


SOON = limit(resource.RLIMIT_CPU, 5)  # seconds of processor time


# --- files of a model ------------------------------------------------------------------------------------------------


def test_what_is_no_file_is_called_so(run, tmp_path):
    os.mkfifo(tmp_path / "pipe.gguf")
    (tmp_path / "dangling.gguf").symlink_to("gone.gguf")
    (tmp_path / "loop.gguf").symlink_to("loop.gguf")
    (tmp_path / "folder.gguf").mkdir()
    refused(run("generate", "pipe.gguf", "x"), 2, "pipe.gguf is neither a file nor a folder")
    refused(run("generate", "/dev/zero", "x"), 2, "/dev/zero is neither a file nor a folder")
    refused(run("generate", "dangling.gguf", "x"), 3, "dangling.gguf is a link to gone.gguf, which is not there")
    refused(run("generate", "loop.gguf", "x"), 1, "loop.gguf", "symbolic links")
    refused(run("generate", "folder.gguf", "x"), 2, "folder.gguf holds no model")
    refused(run("generate", "absent.gguf", "x"), 3, "absent.gguf: no such file or folder", "hearth ls")


def test_doctor_of_a_model_names_the_command_that_reads_it(run):
    refused(run("doctor", "x.gguf"), 2, "hearth doctor x.gguf --deep")


def test_gguf_cut_anywhere_is_refused(run, tmp_path, model_file):
    whole = model_file("smollm2").read_bytes()
    path = tmp_path / "cut.gguf"
    for size in (0, 1, 4, 12, 24, 100, 1000, 100_000, 1_700_000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(run("generate", path, "x", preexec_fn=SOON), 1, "cut.gguf: ")


def test_huge_sparse_files_are_refused_by_their_bytes(run, tmp_path, model_file):
    path = tmp_path / "sparse.gguf"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    refused(run("generate", path, "x"), 1, "sparse.gguf: not a GGUF file")


def patched(whole, key, pack, value):
    at = whole.index(key) + len(key) + 4  # behind the value's type
    return whole[:at] + struct.pack(pack, value) + whole[at + struct.calcsize(pack):]


@pytest.mark.parametrize("key, pack, value, part", [
    (b"llama.block_count", "<I", 0, "layers is 0"),
    (b"llama.block_count", "<I", 31, "model.layers.30.input_layernorm is absent, 31 layers are announced"),
    (b"llama.block_count", "<I", 29, "model.layers.29.input_layernorm is there, only 29 layers are announced"),
    (b"llama.block_count", "<I", 2**32 - 1, "layers is 4294967295"),
    (b"llama.embedding_length", "<I", 577, "577"),
    (b"llama.attention.head_count", "<I", 7, "7 query heads"),
    (b"llama.attention.head_count_kv", "<I", 0, "KV heads is 0"),
    (b"llama.rope.freq_base", "<f", float("nan"), "(llama.rope.freq_base) is nan"),
    (b"tokenizer.ggml.eos_token_id", "<I", 49152, "eos_token_id is 49152"),
])
def test_gguf_numbers_that_lie(run, tmp_path, model_file, key, pack, value, part):
    path = tmp_path / "lies.gguf"
    path.write_bytes(patched(model_file("smollm2").read_bytes(), key, pack, value))
    refused(run("generate", path, "x", "-n", "1", "--quiet"), 1, "lies.gguf: ", part)


def test_a_model_that_shrinks_while_it_runs_is_named(run, tmp_path, model_file):
    path = tmp_path / "shrinks.gguf"
    path.write_bytes(model_file("smollm2").read_bytes())
    reader, writer = os.pipe()
    # The prompt comes over a pipe: the model is open, its table of embeddings still read from the file.
    process = subprocess.Popen([BINARY, "generate", path, "-", "-n", "1", "--quiet"], env=run.environment, stdin=reader,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(reader)
    while f"{path}" not in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None
        time.sleep(0.001)
    os.truncate(path, 4096)
    try:
        os.write(writer, b"Hello")
    except BrokenPipeError:  # it met the end while it loaded
        pass
    os.close(writer)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, (process.returncode, out, err)
    assert b"shrinks.gguf: the file shrank" in err and len(err.splitlines()) == 1


@pytest.fixture
def folder(checkpoint, tmp_path):
    """folder(config={...}, files={...}, drop=[...]) -> a copy of a tiny checkpoint with changes."""
    source = checkpoint("llama-q4").path

    def make(config=None, files=None, drop=()):
        path = tmp_path / "tiny"
        path.mkdir(exist_ok=True)
        for file in source.iterdir():
            (path / file.name).write_bytes(file.read_bytes())
        if config:
            (path / "config.json").write_text(json.dumps({**json.loads((source / "config.json").read_text()), **config}))
        for name, data in (files or {}).items():
            (path / name).write_bytes(data)
        for name in drop:
            (path / name).unlink()
        return path

    return make


def table(**changes):
    return {"quantization": {"group_size": 64, "bits": 4, **changes}, "quantization_config": None}


@pytest.mark.parametrize("config, code, part", [
    (table(bits=8), 1, "the table says 8 bits in groups of 64"),
    (table(group_size=32), 1, "the table says 4 bits in groups of 32"),
    (table(bits=7), 2, "bits 7 are not supported"),
    (table(group_size=0), 2, "group_size 0 is not supported"),
    (table(**{"model.layers.0.mlp.down_proj": False}), 1, "model.layers.0.mlp.down_proj"),
    (table(**{"model.layers.0.mlp.down_proj": {"bits": 8, "group_size": 64}}), 1, "model.layers.0.mlp.down_proj"),
    ({"quantization": None, "quantization_config": None}, 1, "model.embed_tokens"),
    ({"num_hidden_layers": 0}, 1, "layers is 0"),
    ({"num_hidden_layers": 3}, 1, "model.layers.3.input_layernorm is there"),
    ({"num_hidden_layers": 5}, 1, "model.layers.4.input_layernorm is absent"),
    ({"num_hidden_layers": 4096}, 1, "model.layers.4.input_layernorm is absent, 4096 layers"),
    ({"hidden_size": 64}, 1, "64"),
    ({"vocab_size": 514}, 1, "514"),
    ({"num_key_value_heads": 4}, 1, "config says"),
    ({"model_type": "mamba"}, 2, 'model_type "mamba" is not supported; supported: llama'),
    ({"model_type": "bert"}, 1, "model.encoder.layer.1.output.LayerNorm is absent"),
    ({"model_type": "qwen3"}, 1, "q_norm"),
])
def test_configs_that_lie_about_their_weights(run, folder, config, code, part):
    refused(run("generate", folder(config=config), "x", "--quiet", preexec_fn=SOON), code, "/tiny", part)


def test_folders_with_parts_missing(run, folder):
    index = json.dumps({"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}).encode()
    refused(run("generate", folder(drop=["model.safetensors"]), "x"), 2, "holds no model")
    refused(run("generate", folder(drop=["model.safetensors"], files={"model.safetensors.index.json": index}), "x"), 1,
            "model-00001-of-00002.safetensors is named but absent")
    refused(run("generate", folder(files={"config.json": b"{"}), "x"), 1, "config.json: incomplete JSON")


def test_tensors_of_many_dimensions_are_shown_as_they_are(run, folder):
    whole = (folder() / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", whole[:8])[0]
    header, data = json.loads(whole[8:8 + size]), whole[8 + size:]
    header["extra"] = {"dtype": "F32", "shape": [1, 2, 1, 3, 1], "data_offsets": [len(data), len(data) + 24]}
    text = json.dumps(header).encode()
    path = folder(files={"model.safetensors": struct.pack("<Q", len(text)) + text + data + bytes(24)})
    done = run("show", path, "--tensors")
    assert done.returncode == 0 and [b"extra", b"f32", b"[1,", b"2,", b"1,", b"3,", b"1]"] in map(bytes.split, done.stdout.splitlines())
    rows = {row["name"]: row for row in json.loads(run("show", path, "--tensors", "--json").stdout)["tensors"]}
    assert rows["extra"]["shape"] == [1, 2, 1, 3, 1] and rows["extra"]["bits_per_weight"] == 32
    assert rows["model.norm.weight"]["shape"] == [128]


@pytest.mark.parametrize("template, part", [
    ("{{ raise_exception('no such role') }}", "no such role"),
    ("{% for i in range(1000000000) %}x{% endfor %}", "range of 1000000000"),
    ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "2000000 steps"),
    ("{{ 'a' * 10**12 }}", "1 bytes is beyond 83886"),
    ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "100 deep"),
    ("{{ ''.__class__ }}", "__class__"),
    ("{% include '/etc/passwd' %}", "include"),
    ("{{" + "(" * 20000 + "1" + ")" * 20000 + "}}", "deep"),
])
def test_templates_that_fail_or_loop(run, folder, template, part):
    path = folder(files={"tokenizer_config.json": json.dumps({"chat_template": template}).encode()})
    refused(run("generate", path, "x", "--quiet", preexec_fn=SOON), 2, "template", part)


# --- prompts, flags, ids ---------------------------------------------------------------------------------------------


def test_flags_left_empty_say_what_is_wanted(run):
    refused(run("generate", "m.gguf", "-p"), 2, "-p needs a value: -p TEXT")
    refused(run("generate", "m.gguf", "x", "--temperature"), 2, "--temperature needs a value: --temperature T")
    refused(run("generate", "m.gguf", "x", "--temperature="), 2, "--temperature is ''", "a number from 0 to 100")
    refused(run("generate", "m.gguf", "x", "--seed", "-1"), 2, "--seed is '-1': it must be an integer of at least 0")


def test_a_fifo_in_place_of_a_file_is_refused_at_once(run, tmp_path, model_file):
    model = model_file("smollm2")
    os.mkfifo(tmp_path / "hang")
    for words in (["perplexity", model, "--data", "hang"], ["tokenize", model, "--chat", "hang"],
                  ["logits", model, "--ids", "@hang", "-o", "o.npy"]):
        refused(run(*words), 1, "hang: not a regular file")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    os.mkfifo(folder / "config.json")
    refused(run("show", folder), 1, "config.json: not a regular file")
    os.mkfifo(tmp_path / "hearth.toml")
    refused(run("ls"), 1, "hearth.toml: not a regular file")


def test_what_a_file_says_reaches_no_terminal_and_breaks_no_json(run, tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "evil.gguf", "llama\x1b]0;pwned\x07\n")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    for verb in ("show", "generate", "fit"):
        done = run(verb, "evil.gguf", *(["x"] if verb == "generate" else []))
        assert done.returncode != 0 and b"\x1b" not in done.stderr and b"\x07" not in done.stderr, done.stderr
        assert rb"llama\x1b]0;pwned\x07\x0a" in done.stderr, done.stderr
    writer = gguf.GGUFWriter(tmp_path / "long.gguf", "a" * 3_000_000)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert len(run("show", "long.gguf").stderr) < 4096


def test_json_is_utf8_whatever_bytes_a_name_has(run, tmp_path, model_file):
    name = os.fsencode(tmp_path) + b"/n\xff.gguf"
    os.symlink(os.fsencode(model_file("smollm2")), name)
    document = json.loads(run("fit", name, "--ctx", "64", "--json").stdout.decode())
    assert document["model"].endswith("n\ufffd.gguf")


def test_a_deleted_working_folder_is_no_hindrance(run, tmp_path, model_file):
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"cd {gone} && rmdir {gone} && exec {BINARY} show {model_file('smollm2')}"
    done = subprocess.run(["sh", "-c", line], env=run.environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_positions_beyond_the_context_are_refused_before_any_work(run, model_file):
    model = model_file("smollm2")
    few = ["--context", "600", "--runs", "1"]
    refused(run("bench", model, *few, "--prompt", "2000", "--tokens", "0"), 4, "--prompt 2000", "2000 positions", "holds 600")
    refused(run("bench", model, *few, "--prompt", "16", "--depth", "590", "--tokens", "50"), 4, "--depth 590 and --tokens 50")
    refused(run("bench", model, *few, "--parallel", "2", "--prompt", "600", "--tokens", "2"), 4, "--prompt 600 and --tokens 2")
    refused(run("probe", "cpu", model, "--bytes", "1MiB", "--context", "600", "--depth", "5000"), 4, "--depth 5000")


def test_logits_do_not_replace_the_model(run, tmp_path, model_file):
    copy = tmp_path / "m.gguf"
    shutil.copy(model_file("smollm2"), copy)
    os.link(copy, tmp_path / "other.npy")
    size = copy.stat().st_size
    for out in ("m.gguf", "other.npy"):
        refused(run("logits", "m.gguf", "--ids", "1", "-o", out), 2, f"--out {out} is a file of the model itself")
    assert copy.stat().st_size == size


def test_ids_and_texts_are_named_by_their_flags(run, model_file):
    model = model_file("smollm2")
    refused(run("generate", model, "--prompt-ids", "99999999"), 2, "--prompt-ids: token id 99999999")
    refused(run("generate", model, "x", "--stop", ""), 2, "stop string 1 has 0 bytes")
    refused(run("generate", "absent.gguf", b"ab\xff"), 2, "the prompt is not UTF-8 at byte 2")
    refused(run("run", "absent.gguf", "x", "--system", b"\xff"), 2, "--system is not UTF-8 at byte 0")
    refused(run("generate", model, "x", "--temperature", "1", "--repetition-penalty", "1e-40"), 2, "repetition-penalty")


def test_full_devices_are_named_as_such(run, model_file):
    for words in (["tokenize", model_file("smollm2"), "hi"], ["completion", "bash"], ["version", "--json"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BINARY, *words], env=run.environment, stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 1 and b"No space left on device" in done.stderr, (words, done.stderr)


def test_an_empty_prompt_is_refused_before_a_model_is_looked_for(run, model_file):
    for words in (["generate", "absent.gguf", "--prompt="], ["generate", "absent.gguf", ""], ["run", "absent.gguf", ""]):
        refused(run(*words), 2, "the prompt is empty", "--raw")
    refused(run("generate", model_file("smollm2"), "-"), 2, "the prompt is empty")  # of standard input
    refused(run("generate", "absent.gguf"), 2, "generate takes one prompt")
    refused(run("generate", "absent.gguf", "--prompt=", "--raw"), 3, "absent.gguf")  # a text from nothing


def test_a_text_that_is_too_long_is_refused_by_its_size(run, tmp_path, model_file):
    model = model_file("smollm2")
    text = b"word " * 2_000_000
    refused(run("generate", model, "-", "--quiet", input=text), 4, "10000", "bytes of text", "at most 8388608")
    (tmp_path / "long.json").write_text(json.dumps([{"role": "user", "content": text.decode()}]))
    refused(run("tokenize", model, "--chat", "long.json"), 4, "10000", "bytes of text", "at most 8388608")
    refused(run("generate", model, "-", "--raw", "--quiet", input=text), 4, "tokens, the context holds")
    refused(run("generate", model, "-", "--quiet", input=text[:8_000_000]), 4, "tokens, the context holds")


def test_ids_from_files(run, tmp_path, model_file):
    model = model_file("smollm2")
    out = tmp_path / "o.npy"
    for ids, code, part in [("@", 2, "a file's name stands behind @"), ("@absent", 3, "absent: open: No such file"),
                            ("@.", 1, "not a regular file"), ("1,x", 2, "'x' is no token id"), (",", 2, "no token ids"),
                            ("49152", 2, "outside the vocabulary of 49152")]:
        done = run("logits", model, "--ids", ids, "--out", out, "--quiet")
        refused(done, code, part)
        assert b"hearth ls" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix in (".npy", ".tmp")) == []


def test_a_persons_own_files_are_not_to_be_fetched_again(run, tmp_path, model_file):
    (tmp_path / "talk.json").write_text('{"messages": [{"role": "user", "content": "\\ud800"}]}')
    done = run("tokenize", model_file("smollm2"), "--chat", "talk.json")
    refused(done, 1, "talk.json: ")
    assert b"fetch" not in done.stderr


# --- output, memory, signals -----------------------------------------------------------------------------------------


def test_out_may_have_the_longest_of_names(run, tmp_path, model_file):
    model = model_file("smollm2")
    for name in ("o" * 251 + ".npy", "\u00e9" * 125 + ".npy"):
        done = run("logits", model, "--ids", "1,2", "--out", name, "--quiet")
        assert done.returncode == 0 and (tmp_path / name).is_file(), done.stderr
    refused(run("logits", model, "--ids", "1,2", "--out", "o" * 256, "--quiet"), 1, "ooo: stat: File name too long")
    assert not list(tmp_path.glob(".*.tmp"))


def test_out_never_replaces_what_is_no_file(run, tmp_path, model_file):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        refused(run("logits", model_file("smollm2"), "--ids", "1,2", "--out", tmp_path / name, "--quiet"), 2,
                f"{name}: something else than a file is there")
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "folder").is_dir()
    done = run("logits", model_file("smollm2"), "--ids", "1,2", "--out", "absent/o.npy", "--quiet")
    refused(done, 3, "absent/o.npy: open: No such file")
    assert not [p for p in tmp_path.rglob("*.tmp")]


def test_notes_do_not_run_into_a_file_when_stderr_is_closed(run, tmp_path, model_file):
    out = tmp_path / "o.npy"
    done = run("logits", model_file("smollm2"), "--ids", "1,2", "--out", out, preexec_fn=lambda: os.close(2))
    assert done.returncode == 0
    whole = out.read_bytes()
    assert len(whole) == 128 + 4 * 2 * 49152 and b"hearth" not in whole
    closed = run("version", preexec_fn=lambda: os.close(1))
    refused(closed, 1, "cannot write to standard output")


@pytest.mark.parametrize("flags", [["--memory-budget", "50MB"], ["--context", "10000000"]])
def test_what_does_not_fit_is_refused_each_time(run, model_file, flags):
    for _ in range(3):  # the tokenizer's thread may be at any point when the refusal comes
        refused(run("generate", model_file("smollm2"), "x", "--quiet", *flags), 4, "context")


def test_address_space_at_every_size_is_an_answer_or_a_refusal(run, model_file):
    for mb in (60, 90, 120, 160, 200, 240, 300, 400):
        done = run("generate", model_file("smollm2"), "x", "-n", "1", "--quiet",
                   preexec_fn=limit(resource.RLIMIT_AS, mb << 20))
        assert done.returncode in (0, 1, 4), (mb, done.returncode, done.stderr)
        assert done.returncode == 0 or done.stderr.startswith(b"hearth: "), (mb, done.stderr)


def test_threads_that_cannot_be_made_are_a_refusal(run, model_file):
    done = run("generate", model_file("smollm2"), "x", "-t", "1024", "--quiet",
               preexec_fn=limit(resource.RLIMIT_AS, 1 << 30))
    refused(done, 1, "thread")


def interrupted(run, after, *args, wait=30):
    process = subprocess.Popen([BINARY, *args], env=run.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    after(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=wait)
    return process.returncode, out, err


def test_an_interrupt_that_the_caller_ignores_stays_ignored(run, model_file):
    process = subprocess.Popen([BINARY, "generate", model_file("smollm2"), "Hi", "-n", "40", "--ignore-eos", "--ids"],
                               env=run.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    assert process.returncode == 0 and len(process.stdout.read().split(b",")) == 40


def test_ctrl_c_is_exit_130_in_every_phase(run, tmp_path, model_file):
    model = model_file("smollm2")

    def mapped(process):
        while str(model.resolve()) not in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
            assert process.poll() is None
            time.sleep(0.001)

    code, out, _ = interrupted(run, mapped, "generate", model, "Tell me a story", "-n", "500", "--ignore-eos")
    assert code == 130 and out == b""  # while it loads

    def speaking(process):
        assert os.read(process.stdout.fileno(), 1)

    code, out, _ = interrupted(run, speaking, "generate", model, "Tell me a story", "-n", "500", "--ignore-eos")
    assert code == 130 and out.endswith(b"\n")  # what was said is kept

    folder = tmp_path / "out"
    folder.mkdir()

    def writing(process):
        while not list(folder.iterdir()):
            assert process.poll() is None
            time.sleep(0.001)

    code, _, err = interrupted(run, writing, "logits", model, "--ids", ",".join(["5"] * 4000), "--out",
                               folder / "o.npy", "--quiet")
    assert code == 130 and list(folder.iterdir()) == [], err


def test_a_reader_that_leaves_ends_the_answer(run, model_file):
    process = subprocess.Popen([BINARY, "generate", model_file("smollm2"), "Tell me a story", "-n", "500",
                                "--ignore-eos", "--quiet"], env=run.environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    assert process.stdout.read(5)
    process.stdout.close()
    assert process.wait(timeout=30) in (1, -signal.SIGPIPE)


# --- the chat without a terminal --------------------------------------------------------------------------------------


@pytest.mark.parametrize("script, part", [
    ("/nope\n", b"no command /nope"),
    ("/load absent.json\n", b"absent.json"),
    ("/load .\n", b"not a regular file"),
    ("/load bad.json\n", b"bad.json"),
    ("/save absent/talk.json\n", b"absent/talk.json"),
    ("/save .\n", b"something else than a file"),
    ("/set temperature -5\n", b"temperature"),
    ("/set nope 1\n", b"no setting nope"),
])
def test_failures_of_a_chat_script_are_told_also_when_quiet(run, tmp_path, model_file, script, part):
    (tmp_path / "bad.json").write_text('{"messages": 5}')
    done = run("run", model_file("smollm2"), "--quiet", input=(script + "/bye\n").encode())
    assert part in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.returncode == 1
