"""Reasoning over HTTP: a tiny model that never stops thinking, a template that opens the tag, and budgets that close it."""
import json
import shutil

import pytest
from running import Server

TEMPLATE = ("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% if tone is defined %}({{ tone }}){% endif %}"
            "[assistant]{% if add_generation_prompt %}{% if enable_thinking is defined and not enable_thinking %}<think></think>{% else %}<think>"
            "{% endif %}{% endif %}")
BODY = {"messages": [{"role": "user", "content": "Why?"}], "temperature": 0, "max_tokens": 60}


@pytest.fixture(scope="module")
def thinker(tmp_path_factory, checkpoint):
    folder = tmp_path_factory.mktemp("thinker")
    shutil.copytree(checkpoint("llama-bf16").path, folder / "thinker")
    settings = folder / "thinker" / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "chat_template": TEMPLATE}))
    with Server(folder, folder / "thinker", "--context", "256", "--batch", "8") as running:
        yield running


def chat(server, **fields):
    answer = server.post("/v1/chat/completions", {**BODY, **fields})
    assert answer.status == 200, answer.body
    return answer.json()


def reasoned(document):
    return document["usage"]["completion_tokens_details"]["reasoning_tokens"]


def marker(server):
    return len(server.post("/tokenize", {"content": "</think>", "add_special": False}).json()["tokens"])


def test_without_a_budget_it_thinks_to_the_limit(thinker):
    document = chat(thinker)
    assert document["choices"][0]["message"]["content"] == "" and document["choices"][0]["finish_reason"] == "length"
    assert reasoned(document) == document["usage"]["completion_tokens"] == 60


@pytest.mark.parametrize("budget", [0, 1, 7, 30])
def test_a_budget_closes_the_reasoning_exactly(thinker, budget):
    endless = chat(thinker, logprobs=True)["choices"][0]
    document = chat(thinker, reasoning_budget=budget, logprobs=True)
    message = document["choices"][0]["message"]
    assert reasoned(document) == budget and document["usage"]["completion_tokens"] == 60
    assert message["content"] and ("reasoning_content" in message) == (budget > 0)
    assert "think>" not in message["content"]
    tokens, free = ([t["id"] for t in c["logprobs"]["content"]] for c in (document["choices"][0], endless))
    assert tokens[:budget] == free[:budget], "up to there it is what it would have been"
    closing = document["choices"][0]["logprobs"]["content"][budget:budget + marker(thinker)]
    assert bytes(b for t in closing for b in t["bytes"]) == b"</think>" and all(t["logprob"] == 0 for t in closing)


def test_the_answer_behind_the_marker_is_that_of_the_same_context(thinker):
    """Forced tokens are in the context as drawn ones are: the text goes on as behind a prompt that ends with them."""
    prompt = thinker.post("/apply-template", {"messages": BODY["messages"]}).json()["prompt"]
    compared = 0
    for budget in range(1, 25):
        choice = chat(thinker, reasoning_budget=budget, logprobs=True)["choices"][0]
        taken = choice["logprobs"]["content"][:budget + marker(thinker)]
        whole = prompt + bytes(b for t in taken for b in t["bytes"]).decode(errors="replace")
        ids = thinker.post("/tokenize", {"content": whole}).json()["tokens"]
        if ids != thinker.post("/tokenize", {"content": prompt}).json()["tokens"] + [t["id"] for t in taken]:
            continue  # the text has another spelling than these tokens
        rest = thinker.post("/v1/completions", {"prompt": whole, "temperature": 0, "max_tokens": 60 - len(taken)}).json()
        assert rest["choices"][0]["text"].strip() == choice["message"]["content"].strip(), budget
        compared += 1
    assert compared > 0


def test_streams_join_to_the_same(thinker):
    document = chat(thinker, reasoning_budget=9)
    answer = thinker.post("/v1/chat/completions", {**BODY, "reasoning_budget": 9, "stream": True})
    chunks = [json.loads(data) for _, data in answer.events()[:-1]]
    deltas = [c["choices"][0]["delta"] for c in chunks]
    message = document["choices"][0]["message"]
    for name in ("reasoning_content", "reasoning"):
        assert "".join(d.get(name, "") for d in deltas) == message[name] == message["reasoning_content"]
    assert "".join(d.get("content") or "" for d in deltas) == message["content"]
    assert chunks[-1]["usage"] == document["usage"]


def test_several_answers_each_have_the_budget(thinker):
    document = chat(thinker, reasoning_budget=6, n=4, temperature=1, seed=3)
    alone = [chat(thinker, reasoning_budget=6, temperature=1, seed=3 + i) for i in range(4)]
    assert [c["message"] for c in document["choices"]] == [a["choices"][0]["message"] for a in alone]
    assert 6 < reasoned(document) == sum(map(reasoned, alone)) <= 24, "one may end by itself before"


def test_a_format_holds_behind_it(thinker):
    schema = {"type": "json_schema", "json_schema": {"schema": {"enum": ["yes", "no"]}}}
    document = chat(thinker, reasoning_budget=4, reasoning_effort="high", response_format=schema)
    assert json.loads(document["choices"][0]["message"]["content"]) in ("yes", "no") and reasoned(document) == 4
    assert document["choices"][0]["finish_reason"] == "stop"


def test_thinking_that_is_off_needs_no_budget(thinker):
    off = chat(thinker, reasoning_effort="none")
    assert reasoned(off) == 0 and off["choices"][0]["message"]["content"]
    assert chat(thinker, reasoning_effort="none", reasoning_budget=3)["choices"] == off["choices"]


def test_anthropic_and_responses_have_it_by_their_names(thinker):
    message = chat(thinker, reasoning_budget=8)["choices"][0]["message"]
    body = {**BODY, "thinking": {"type": "enabled", "budget_tokens": 8}}
    answer = thinker.post("/v1/messages", body).json()
    assert [(b["type"], b.get("thinking") or b.get("text")) for b in answer["content"]] == [
        ("thinking", message["reasoning_content"]), ("text", message["content"])]
    events = [json.loads(data) for _, data in thinker.post("/v1/messages", {**body, "stream": True}).events()]
    deltas = [e["delta"] for e in events if e["type"] == "content_block_delta"]
    assert "".join(d.get("thinking", "") for d in deltas) == message["reasoning_content"]
    assert "".join(d.get("text", "") for d in deltas) == message["content"]
    off = thinker.post("/v1/messages", {**BODY, "thinking": {"type": "disabled"}}).json()
    assert [b["type"] for b in off["content"]] == ["text"]
    response = thinker.post("/v1/responses", {"input": "Why?", "temperature": 0, "max_output_tokens": 60, "reasoning_budget": 8}).json()
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert response["usage"]["output_tokens_details"]["reasoning_tokens"] == 8


def test_variables_of_the_template(thinker):
    def prompt(**fields):
        return thinker.post("/apply-template", {"messages": BODY["messages"], **fields}).json()["prompt"]

    assert prompt().endswith("[assistant]<think>")
    assert prompt(chat_template_kwargs={"tone": "dry"}).endswith("(dry)[assistant]<think>")
    assert prompt(chat_template_kwargs={"enable_thinking": False}).endswith("<think></think>")
    quiet = {"chat_template_kwargs": {"enable_thinking": False}}
    assert reasoned(chat(thinker, **quiet)) == 0
    assert reasoned(chat(thinker, **quiet, reasoning_effort="high")) > 0, "the effort beats the variable"


def test_a_prompt_of_the_editor_reasons_as_a_chat_does(thinker):
    points = [{"x_pct": 1e-6, "y_pct": 1e-250}, {"x_pct": 100, "y_pct": 100}]
    document = thinker.post("/generate", {"messages": BODY["messages"], "points": points, "n": 1, "max_tokens": 9}).json()
    assert document["samples"][0]["reasoning"] and document["samples"][0]["text"] == ""
