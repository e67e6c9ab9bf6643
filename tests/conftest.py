"""Shared by all Python tests: import paths and fixtures for the binary, the test models and the oracles' cache.

HEARTH_BIN          the hearth binary; default build/release/hearth
HEARTH_TEST_MODELS  folder with the .gguf test models; default build/test-models
HEARTH_TEST_CORPUS  plain text of the Brown corpus; default .cache/brown.txt
HEARTH_TEST_CACHE   where oracles keep float32 answers; default .cache/oracle
"""
import os
import pathlib
import signal

import pytest

# Programs started behind a script's "&" ignore Ctrl-C for good, and so would the children that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[1]

# name -> file name, compared without case
MODEL_FILES = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma": "gemma-3-270m-q4_k_m.gguf",
    "qwen-0.5b": "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "qwen-1.5b": "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    "minilm": "all-MiniLM-L6-v2",  # a folder
}


@pytest.fixture(scope="session")
def hearth():
    from oracle.program import Hearth

    program = Hearth()
    if not program.binary.is_file():
        pytest.fail(f"{program.binary}: no hearth binary there; HEARTH_BIN names it")
    return program


@pytest.fixture(scope="session")
def model_file():
    """model_file(name) -> path of a test model; a missing one is a failure, not a skip."""
    folder = pathlib.Path(os.environ.get("HEARTH_TEST_MODELS") or ROOT / "build" / "test-models")

    def find(name):
        wanted = MODEL_FILES[name].lower()
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if path.name.lower() == wanted:
                return path
        pytest.fail(f"{folder} holds no {MODEL_FILES[name]}; scripts/models --link fetches it")

    return find


@pytest.fixture(scope="session")
def corpus():
    """Text of the Brown corpus, a paragraph a line."""
    path = pathlib.Path(os.environ.get("HEARTH_TEST_CORPUS") or ROOT / ".cache" / "brown.txt")
    if not path.is_file():
        pytest.fail(f"{path}: no corpus there; scripts/corpus fetches it")
    return path.read_text()


@pytest.fixture(scope="session")
def oracle(model_file):
    """oracle(name) -> oracle.gguf_f32.Oracle; only the last one asked for keeps its decoded weights."""
    from oracle.gguf_f32 import Oracle

    cache = pathlib.Path(os.environ.get("HEARTH_TEST_CACHE") or ROOT / ".cache" / "oracle")
    made = {}

    def get(name):
        for other, kept in made.items():
            if other != name:
                kept.release()
        if name not in made:
            made[name] = Oracle(model_file(name), cache)
        return made[name]

    return get


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """checkpoint(case name) -> oracle.tiny.Checkpoint, made once a session."""
    from oracle import tiny

    root, made = tmp_path_factory.mktemp("tiny"), {}

    def get(name):
        if name not in made:
            made[name] = tiny.make(tiny.CASES[name], root)
        return made[name]

    return get
