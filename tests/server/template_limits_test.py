"""Limits of chat templates, which a worker renders (reliability.md section 3, R-13): below, at and above."""
import shutil

import pytest
from asking import option, passed
from running import Server

TEMPLATES = {"template-range": 50, "template-recursion": 12, "template-output": 2048, "template-steps": 2000}

WORDS = """{% macro deep(n) %}{% if n > 1 %}{{ deep(n - 1) }}{% endif %}{% endmacro %}{% set n = messages[0].content | int -%}
{% if kind == 'template-range' %}{% for i in range(n) %}{% endfor %}{% elif kind == 'template-recursion' %}{{ deep(n) }}
{%- elif kind == 'template-output' %}{{ 'a' * n }}{% elif kind == 'template-steps' -%}
{% for i in range(50) %}{% for k in range(n // 50) %}{% endfor %}{% endfor %}{% endif %}"""


def template_exact(server, name):
    """The number in the message is what the template does."""
    bound = TEMPLATES[name]
    assert [rendered(server, name, bound + d) for d in (-1, 0, 1)] == ["", "", name]


def template_output(server, name):
    """The bytes of the conversation's own text come on top."""
    taken = [rendered(server, name, TEMPLATES[name] + own) for own in range(64)]
    border = taken.index(name)
    assert border > len("user0000") and set(taken[:border]) == {""} and set(taken[border:]) == {name}


def template_steps(server, name):
    """How many a turn of the loop takes is the engine's matter: there is a border, and above it all is refused."""
    taken = [rendered(server, name, n) for n in range(50, 2500, 50)]
    border = taken.index(name)
    assert border > 0 and set(taken[:border]) == {""} and set(taken[border:]) == {name}


def rendered(server, kind, n):
    """"": it was; else the limit that counts one more."""
    before = passed(server)
    answer = server.post("/apply-template", {"messages": [{"role": "user", "content": f"{n:04}"}], "chat_template_kwargs": {"kind": kind}})
    if answer.status == 200:
        assert passed(server) == before
        return ""
    assert answer.status == 400, answer.body
    (name,) = [k for k, v in passed(server).items() if v != before[k]]
    return name


TEMPLATE_CASES = {**dict.fromkeys(TEMPLATES, template_exact), "template-steps": template_steps, "template-output": template_output}


@pytest.fixture(scope="module")
def templated(tmp_path_factory, checkpoint):
    folder = tmp_path_factory.mktemp("templated")
    shutil.copytree(checkpoint("llama-tied-q4").path, folder / "model")
    (folder / "model" / "chat_template.jinja").write_text(WORDS)
    with Server(folder, folder / "model", "--limit", option(TEMPLATES)) as running:
        yield running


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_below_at_and_above(templated, name):
    TEMPLATE_CASES[name](templated, name)
