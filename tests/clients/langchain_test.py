"""LangChain's ChatOpenAI."""
import library
import pytest

CLIENT = library.python_library("langchain", "langchain_client.py")


@pytest.mark.full
@pytest.mark.parametrize("case", library.CASES)
def test_langchain(served, case):
    CLIENT.check(served, case)
