import sys
import pathlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(scope="session")
def server(tmp_path_factory, model_file):
    """One server of SmolLM2 without keys, shared by the tests that only ask."""
    from running import Server

    with Server(tmp_path_factory.mktemp("server"), model_file("smollm2"), "--context", "2048", "--batch", "16") as running:
        yield running
