"""The template engine against jinja2 with Hugging Face's settings: byte-equal text, and an error where that has one."""
import itertools
import os
import pathlib
import random
import re

import pytest

from text.chats import CHATS, TOKENS
from text.jinja_oracle import differences, expected, report, run_cases
from text.template_generator import random_template

HERE = pathlib.Path(__file__).parent
VARIABLES = {
    "n": 3,
    "s": "hello world",
    "l": [1, 2, 3, 4, 5],
    "d": {"x": 1, "y": "two"},
    "e": {"items": [1]},
    "m": [{"k": "a", "n": 2, "g": "x"}, {"k": "b", "n": 1, "g": "y"}, {"k": "c", "n": 3, "g": "x"}],
    "x": {"name": "né", "list": [1, 2.5, None, True], "nested": {"deep": {"er": "<&>"}}, "a": []},
    "tree": [{"n": 1, "c": [{"n": 2, "c": [{"n": 3, "c": []}]}, {"n": 4, "c": []}]}],
}
# Refused here, printed as nothing there: an attribute whose name begins with two underscores.
STRICTER = {"{{ ''.__class__ }}"}


def snippet_cases():
    lines = (HERE / "template_snippets.txt").read_text().splitlines()
    sources = list(lines)
    for line in lines:
        if "{%" not in line:
            sources += re.findall(r"\{\{.*?\}\}", line)
    return [{"template": s, "variables": VARIABLES} for s in dict.fromkeys(sources) if s not in STRICTER]


def test_snippets():
    cases = snippet_cases()
    assert len(cases) >= 300
    found = differences(cases)
    assert not found, f"{len(found)} of {len(cases)}\n{report(found)}"


@pytest.mark.parametrize("source", ["\r\n", "a\r\nb\rc\n", "a\n\n", "{% if 1 %}\n\n x\n{% endif %}\n\ny\n", "\n{# c #}\n  {# d #}  \nz",
                                    "  {%- if 1 %}a\n  {% endif -%}  \n b", "x\n\t{% set a = 1 %}\t\n{{ a }}\n", "{{ 1 }}\n{{ 2 }}\n\n",
                                    "\u00a0{% if 1 %}x{% endif %}", "a {{ '\n' }} {%- raw %}\n {{ r }}\n{% endraw %}\n", "{% raw %}a{% endraw -%}  b",
                                    "  {% raw %}  a\n  {% endraw %}  b", "{%+ if 1 %}\n{%+ endif %}\n", "x {#- c +#}\n y"])
def test_white_space(source):
    found = differences([{"template": source, "variables": {}}])
    assert not found, report(found)


def fixtures():
    return sorted((HERE / "templates").glob("*.jinja"))


def chat_cases(source):
    for chat, prompt in itertools.product(CHATS, (False, True)):
        variables = {"messages": chat["messages"], "tools": chat.get("tools"), "documents": chat.get("documents"),
                     "add_generation_prompt": prompt, **TOKENS, **chat.get("extra", {})}
        yield {"template": source, "variables": variables}


@pytest.mark.parametrize("path", fixtures(), ids=lambda p: p.stem)
def test_fixture(path):
    source = path.read_text()
    cases = list(chat_cases(source))
    found = differences(cases)
    assert not found, f"{len(found)} of {len(cases)}\n{report(found)}"
    rendered = sum(not isinstance(expected(source, c["variables"]), Exception) for c in cases)
    assert rendered >= 4, "the fixture refuses nearly every conversation"


def test_fixtures_are_many():
    assert len(fixtures()) >= 20


def model_templates():
    folder = os.environ.get("HEARTH_TEST_MODELS")
    return sorted(pathlib.Path(folder).glob("*.gguf")) if folder else []


@pytest.mark.parametrize("path", model_templates(), ids=lambda p: p.stem)
def test_templates_of_model_files(path):
    gguf = pytest.importorskip("gguf")
    fields = gguf.GGUFReader(path).fields
    sources = [field.contents() for name, field in fields.items() if name.startswith("tokenizer.chat_template") and
               isinstance(field.contents(), str)]
    if not sources:
        pytest.skip("the file has no chat template")
    for source in sources:
        found = differences(list(chat_cases(source)))
        assert not found, report(found)


@pytest.mark.parametrize("seed", range(8))
def test_random_templates(seed):
    rng = random.Random(seed)
    cases = [{"template": random_template(rng), "variables": VARIABLES} for _ in range(250)]
    found = differences(cases)
    assert not found, f"seed {seed}: {len(found)} of {len(cases)}\n{report(found)}"


def chat(source, **members):
    return {"template": source, "chat": members}


def test_parts_are_joined_unless_the_template_indexes_them():
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]
    plain = "{% for m in messages %}{{ m.content }}{% endfor %}"
    loops = "{% for m in messages %}{% for p in m['content'] %}<{{ p.text }}>{% endfor %}{% endfor %}"
    renamed = "{% for m in messages %}{% set c = m.content or '' %}{% for p in c %}<{{ p.text }}>{% endfor %}{% endfor %}"
    indexed = "{{ messages[0].content[0].text }}"
    answers = run_cases([chat(plain, messages=parts), chat(loops, messages=parts), chat(renamed, messages=parts),
                         chat(indexed, messages=parts), chat(plain, messages=image)])
    assert [a.get("text") for a in answers] == ["a\nb", "<a><b>", "<a><b>", "a", None]
    assert "messages[0]" in answers[4]["error"] and "image_url" in answers[4]["error"]


def test_developer_becomes_system_unless_the_template_knows_it():
    messages = [{"role": "developer", "content": "x"}]
    unaware = "{{ messages[0].role }}"
    aware = "{% if messages[0].role == 'developer' %}dev{% endif %}"
    assert [a["text"] for a in run_cases([chat(unaware, messages=messages), chat(aware, messages=messages)])] == ["system", "dev"]


@pytest.mark.parametrize("name", ["messages", "tools", "documents", "bos_token", "eos_token", "add_generation_prompt",
                                  "raise_exception", "range", "namespace", "strftime_now", "loop", "_x"])
def test_reserved_names_are_refused(name):
    answer, = run_cases([chat("x", messages=[], extra={name: 1})])
    assert not answer["ok"] and name in answer["error"]


def test_generation_ranges():
    source = "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}\u00e9{% endgeneration %}{% endif %}{% endfor %}"
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "one"}, {"role": "assistant", "content": "two"}]
    answer, = run_cases([chat(source, messages=messages)])
    text = answer["text"].encode()
    assert [text[a:b].decode() for a, b in answer["generation"]] == ["one\u00e9", "two\u00e9"]


def test_kept_list_methods():
    answers = run_cases([{"template": "{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}{{ l.pop() }}{{ l }}", "variables": {}}])
    assert answers[0]["text"] == "[1, 2]2[1]"
