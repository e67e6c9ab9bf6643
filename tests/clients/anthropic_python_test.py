"""The anthropic package of PyPI."""
import library
import pytest

CLIENT = library.python_library("anthropic", "anthropic_client.py", library.ANTHROPIC_WORDS)


@pytest.mark.full
@pytest.mark.parametrize("case", [*library.CASES, "count"])
def test_anthropic_python(served, case):
    CLIENT.check(served, case)
