"""What people type who come from ollama, llama.cpp, mlx-lm or docker: the answer names the next step, or says there is none."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth").absolute()


@pytest.fixture
def run(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "HF_HUB_CACHE": str(tmp_path / "hub"),
                   "XDG_RUNTIME_DIR": str(tmp_path / "run")}

    def call(*args, env=None, **more):
        return subprocess.run([BINARY, *args], env={**environment, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, cwd=tmp_path, **more)

    return call


@pytest.mark.parametrize("words, code, part", [
    (["chat", "m"], 2, "hearth run MODEL opens a chat"),
    (["pull", "qwen"], 2, "hearth import FILE.gguf"),
    (["get", "qwen"], 2, "hub cache"),
    (["rm", "qwen"], 2, "hearth deletes no models yet"),
    (["create", "qwen", "-f", "Modelfile"], 2, "hearth import FILE.gguf --name ORG/NAME"),
    (["convert", "--hf-path", "x"], 2, "hearth run PATH reads"),
    (["help", "pull"], 2, "hearth import FILE.gguf"),
    (["list"], 0, "no models in"),
    (["frobnicate"], 2, "no verb 'frobnicate'"),
    (["run", "m", "hi", "--ctx-size", "64"], 2, "run has no flag --ctx-size: here it is --context N"),
    (["generate", "m", "hi", "--n-predict=5"], 2, "generate has no flag --n-predict: here it is --max-tokens N"),
    (["ls", "--ctx-size", "5"], 2, "ls has no flag --ctx-size"),
    (["run", "m", "hi", "-ngl", "99"], 2, "run has no flag -ngl: this build computes on the CPU alone"),
    (["run", "-p", "hi", "m"], 2, "run has no flag -p: the prompt stands behind MODEL"),
    (["ls", "-x"], 2, "ls has no flag -x (text"),
    (["-m", "m", "-p", "hi"], 2, "-m stands in front of the verb"),
    (["--threads", "3", "run", "m"], 2, "--threads stands in front of the verb"),
    (["run", "-hf"], 2, "-hf needs a value: -hf MODEL"),
    (["run", "https://example.org/m.gguf", "hi"], 2, "is an address, and hearth fetches no models yet"),
    (["run", "hf.co/org/name", "hi"], 2, "is an address"),
    (["serve", "https://example.org/m.gguf"], 2, "is an address"),
    (["import", "https://example.org/m.gguf"], 2, "is an address"),
    (["import", ""], 2, "PATH is empty"),
])
def test_habits_of_other_programs(run, words, code, part):
    done = run(*words)
    assert done.returncode == code and part in done.stderr, done.stderr
    assert done.stdout == "" and len(done.stderr.splitlines()) <= 2


def test_help_helps(run):
    assert run("help", "help").stdout == run("--help").stdout == run("help").stdout
    assert run("--json", "--quiet", "--color", "never", "ls").returncode == 0


def test_bytes_that_are_no_text_are_refused(run, tmp_path, model_file):
    model = model_file("smollm2")
    done = run("tokenize", model, b"ab\xff")
    assert done.returncode == 2 and "the text is not UTF-8 at byte 2" in done.stderr
    (tmp_path / "bytes.txt").write_bytes(b"words " * 1000 + b"\xff")
    for verb in (["perplexity", model], ["kl", model, model], ["perplexity", model, "--method", "llama"]):
        done = run(*verb, "--data", "bytes.txt")
        assert done.returncode == 2 and "bytes.txt is not UTF-8 at byte 6000" in done.stderr, done.stderr
    done = run("perplexity", model, "--data", model)  # the model in place of the text
    assert done.returncode == 2 and "is not UTF-8" in done.stderr, done.stderr


def test_a_part_of_a_model_that_is_not_there(run, tmp_path, model_file):
    assert run("import", model_file("smollm2"), "--name", "toys/m").returncode == 0
    done = run("show", "toys/m:nothing")
    assert done.returncode == 2 and "toys/m has no file that is called 'nothing'" in done.stderr and "--adapter DIR" in done.stderr
