"""scripts/corpus: from word/tag tokens to printed text."""
import importlib.machinery
import importlib.util
import pathlib

import pytest


@pytest.fixture(scope="module")
def script():
    loader = importlib.machinery.SourceFileLoader("hearth_corpus", str(pathlib.Path(__file__).parents[2] / "scripts/corpus"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("hearth_corpus", loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("tagged, want", [
    ("The/at jury/nn said/vbd ,/, ``/`` it/pps is/bez ''/'' ./.", 'The jury said, "it is."'),
    ("``/`` Why/wrb ?/. ?/. ''/'' he/pps asked/vbd ./.", '"Why?" he asked.'),
    ("1/2/cd and/or/cc (/( see/vb )/) ;/. ;/.", "1/2 and/or (see);"),
    ("Allen/np Jr./np ./.", "Allen Jr."),
    ("a/at **zg/zz b/nn", "a b"),
    ("'/' quoted/vbn '/' word/nn", "'quoted' word"),
    ("Atlanta's/np$ 50%/nn", "Atlanta's 50%"),
])
def test_tokens_become_text(script, tagged, want):
    assert script.paragraphs("\t" + tagged) == [want]


def test_paragraphs_and_headlines(script):
    text = "\n\n\tOne/cd ./.\nTwo/cd ./.\n\n\nA/at-hl headline/nn-hl \nThree/cd ./.\n\n\tFour/cd ./.\n"
    assert script.paragraphs(text) == ["One. Two.", "A headline", "Three.", "Four."]


def test_the_fetched_text_is_natural(corpus):
    lines = corpus.splitlines()
    assert len(lines) > 15_000 and lines[0].startswith("The Fulton County Grand Jury said Friday an investigation")
    assert sum("/nn" in line or "``" in line for line in lines) == 0
