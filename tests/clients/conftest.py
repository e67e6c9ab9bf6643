import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "server")]

# Positions of the agents' server: coding agents send some thousand tokens of instructions with each request.
AGENT_CONTEXT = 16384


def _serve(tmp_path_factory, model_file, name, context):
    from running import Server

    return Server(tmp_path_factory.mktemp(f"clients-{name}"), model_file(name), "--context", context, "--batch", "8",
                  "--max-tokens", "160")  # of requests that name no limit


@pytest.fixture(scope="session", params=["smollm2", "qwen-0.5b"])
def served(request, tmp_path_factory, model_file):
    """A server of each small model; the libraries are tried on both."""
    with _serve(tmp_path_factory, model_file, request.param, "2048") as server:
        yield server


@pytest.fixture(scope="session")
def coder(tmp_path_factory, model_file):
    """A server of Qwen2.5-Coder 1.5B, for coding agents."""
    with _serve(tmp_path_factory, model_file, "qwen-1.5b", str(AGENT_CONTEXT)) as server:
        yield server


@pytest.fixture(scope="session")
def small(tmp_path_factory, model_file):
    """A server of Qwen2.5-Coder 0.5B with as much room, for what agents do besides coding."""
    with _serve(tmp_path_factory, model_file, "qwen-0.5b", str(AGENT_CONTEXT)) as server:
        yield server


@pytest.fixture
def scratch(tmp_path):
    """(home, project): an empty home, and a folder with one file that an agent is asked to edit."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (project / "greet.py").write_text('def greet():\n    return "Hello"\n')
    return home, project
