"""R-13: a model whose chat template means harm. Each request is refused in words, and the worker serves what needs no template."""
import shutil

import pytest
from running import Server

MESSAGES = [{"role": "user", "content": "Hi"}]
TEMPLATES = {
    "an endless loop": "{% for i in range(1000000000) %}{% endfor %}",
    "loops in loops": "{% for a in range(1000) %}" * 30 + "{% endfor %}" * 30,
    "a doubling text": "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "a macro that calls itself": "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "Python's insides": "{{ messages.__class__.__mro__ }}{{ cycler.__init__.__globals__ }}",
    "no end of text": "{% for i in range(100000) %}{{ 'x' * 100000 }}{% endfor %}",
}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_has_fuel(tmp_path, checkpoint, kind):
    model = tmp_path / "model"
    shutil.copytree(checkpoint("llama-q4").path, model)
    (model / "chat_template.jinja").write_text(TEMPLATES[kind])
    with Server(tmp_path, model, "--context", "256", "--batch", "2", "--served-model-name", "hostile") as server:
        worker = server.workers()
        for _ in range(3):
            for path, body in (("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 1}), ("/apply-template", {"messages": MESSAGES})):
                answer = server.post(path, body)
                assert 400 <= answer.status < 500 and answer.json()["error"]["message"], (path, answer.status, answer.body[:500])
                assert b"template default of hostile, line" in answer.body, answer.body[:500]
                assert len(answer.body) < 2000 and str(tmp_path).encode() not in answer.body, answer.body[:500]
        answer = server.post("/v1/completions", {"prompt": "a b", "max_tokens": 1, "temperature": 0})
        assert answer.status == 200, answer.body
        assert server.workers() == worker
