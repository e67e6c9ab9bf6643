"""LiteLLM with its openai provider."""
import library
import pytest

CLIENT = library.python_library("litellm", "litellm_client.py")


@pytest.mark.full
@pytest.mark.parametrize("case", library.CASES)
def test_litellm(served, case):
    CLIENT.check(served, case)
