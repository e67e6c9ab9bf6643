"""The openai package of PyPI."""
import library
import pytest

CLIENT = library.python_library("openai", "openai_client.py")


@pytest.mark.full
@pytest.mark.parametrize("case", [*library.CASES, "responses"])
def test_openai_python(served, case):
    CLIENT.check(served, case)
