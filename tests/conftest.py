"""Fixtures of all Python tests. ./test sets the environment; by hand the defaults of this checkout serve.

HEARTH_BUILD        folder with hearth and the tool_* programs (default build/release)
HEARTH_BIN          the hearth program (default $HEARTH_BUILD/hearth)
HEARTH_TEST_MODELS  folder with the .gguf files (default build/test-models, filled by scripts/models --link)
HEARTH_TEST_CORPUS  the Brown corpus as text (default .cache/brown.txt, written by scripts/corpus)
"""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "tools"))
ROOT = pathlib.Path(__file__).parents[1]

MODEL_FILES = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma3-270m": "gemma-3-270m-q4_k_m.gguf",
    "qwen2.5-coder-0.5b": "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "qwen2.5-coder-1.5b": "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
}


def from_environment(name: str, default: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(os.environ.get(name) or default)


@pytest.fixture(scope="session")
def repository() -> pathlib.Path:
    return ROOT


@pytest.fixture(scope="session")
def build_folder() -> pathlib.Path:
    return from_environment("HEARTH_BUILD", ROOT / "build" / "release")


@pytest.fixture(scope="session")
def hearth(build_folder) -> pathlib.Path:
    """Path of the hearth program."""
    program = from_environment("HEARTH_BIN", build_folder / "hearth")
    if not program.is_file():
        pytest.fail(f"{program} is missing: build it, or set HEARTH_BIN")
    return program


@pytest.fixture(scope="session")
def model_file():
    """model_file("smollm2") -> path of that model's .gguf; skips the test where it was not fetched."""
    folder = from_environment("HEARTH_TEST_MODELS", ROOT / "build" / "test-models")

    def find(name: str) -> pathlib.Path:
        path = folder / MODEL_FILES[name]
        if not path.is_file():
            pytest.skip(f"{MODEL_FILES[name]} is not fetched (scripts/models {name})")
        return path

    return find


@pytest.fixture(scope="session")
def corpus() -> str:
    """The Brown corpus: plain text, one paragraph a line."""
    path = from_environment("HEARTH_TEST_CORPUS", ROOT / ".cache" / "brown.txt")
    if not path.is_file():
        pytest.skip(f"{path.name} is not fetched (scripts/corpus)")
    return path.read_text()
