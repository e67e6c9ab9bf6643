"""The package @anthropic-ai/sdk of npm."""
import library
import pytest

CLIENT = library.npm_library("anthropic", "anthropic_client.mjs", library.ANTHROPIC_WORDS)


@pytest.mark.full
@pytest.mark.parametrize("case", [*library.CASES, "count"])
def test_anthropic_node(served, case):
    CLIENT.check(served, case)
