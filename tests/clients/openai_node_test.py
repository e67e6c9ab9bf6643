"""The openai package of npm."""
import library
import pytest

CLIENT = library.npm_library("openai", "openai_client.mjs")


@pytest.mark.full
@pytest.mark.parametrize("case", [*library.CASES, "responses"])
def test_openai_node(served, case):
    CLIENT.check(served, case)
