"""Every field of a request changes what it should, and nothing else (spec server 3.2)."""
import json

import numpy as np
import pytest

PROMPT = "One two three one two three one two three one two"
HOT = {"temperature": 1.5, "seed": 3, "max_tokens": 12}


def raw(server, prompt=PROMPT, **fields):
    answer = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 12, **fields})
    assert answer.status == 200, answer.body
    return answer.json()


def text(server, **fields):
    return raw(server, **fields)["choices"][0]["text"]


def texts(server, **fields):
    return [c["text"] for c in raw(server, n=4, **{**HOT, **fields})["choices"]]


def test_temperature_and_seed(server):
    assert text(server, **HOT) == text(server, **HOT) != text(server, **{**HOT, "seed": 4})
    assert text(server, **{**HOT, "temperature": 0}) == text(server, temperature=0) != text(server, **HOT)
    assert text(server, **{**HOT, "seed": -1}) == text(server, **{**HOT, "seed": -1})


@pytest.mark.parametrize("only_the_likeliest", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1}])
def test_sets_of_one_token_are_greedy(server, only_the_likeliest):
    assert set(texts(server, **only_the_likeliest)) == {text(server, temperature=0)}


@pytest.mark.parametrize("off", [{"top_k": 0}, {"top_p": 1}, {"top_p": 0}, {"min_p": 0}, {"xtc_probability": 0, "xtc_threshold": 0},
                                 {"xtc_probability": 1, "xtc_threshold": 1}, {"repetition_penalty": 1}, {"repetition_penalty": 0},
                                 {"presence_penalty": 0}, {"frequency_penalty": 0}, {"logit_bias": {}}, {"hlg": {"enabled": False}},
                                 {"hlg": {"width": 1e6}}, {"speculation": False}, {"speculation": True}, {"adapter": "none"},
                                 {"top_k": None, "stop": None, "hlg": None, "curve": None}])
def test_values_that_switch_a_field_off(server, off):
    assert texts(server, **off) == texts(server)


@pytest.mark.parametrize("on", [{"top_k": 5}, {"top_p": 0.5}, {"min_p": 0.3}, {"xtc_probability": 1, "xtc_threshold": 0.01},
                                {"xtc_probability": 0.5, "xtc_threshold": 0.01}, {"repetition_penalty": 5}, {"presence_penalty": 20},
                                {"frequency_penalty": 20}, {"hlg": {}}, {"curve": {"points": [{"x_pct": 1, "y_pct": 1e-3}, {"x_pct": 100, "y_pct": 100}]}}])
def test_values_that_switch_a_field_on(server, on):
    temperature = 0.3 if any("penalty" in name for name in on) else 1.5  # where the text repeats the prompt; where anything may come
    assert texts(server, temperature=temperature, **on) != texts(server, temperature=temperature)


@pytest.mark.parametrize("changed", [{"width": 4}, {"shoulder": 0.01}, {"toe": 2}, {"pivot_offset": 0}, {"pivot": "entropy"}, {"pivot": "median"}])
def test_each_member_of_hlg_counts(server, changed):
    base = {"width": 1, "shoulder": 6, "toe": 20, "pivot_offset": 3}  # steep below: what is drawn is no noise
    assert texts(server, hlg={**base, **changed}) != texts(server, hlg=base)


def test_hlg_takes_the_place_of_top_p_and_top_k(server):
    assert texts(server, hlg={}, top_p=0.1, top_k=2) == texts(server, hlg={}) != texts(server, hlg={}, min_p=0.5)


def test_a_bias_moves_its_token(server):
    (token,) = server.post("/tokenize", {"content": " four"}).json()["tokens"]
    assert text(server, temperature=0, max_tokens=2, logit_bias={str(token): 100}) == " four four"


PENALTIES = {
    "repetition": lambda z, count, c: np.where(count > 0, np.where(z < 0, z * c, z / c), z),
    "presence": lambda z, count, c: z - c * (count > 0),
    "frequency": lambda z, count, c: z - c * count,
}


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("context", [None, 0, 1, 4, 7])
def test_penalties_count_their_own_window(server, hearth, model_file, name, context):
    """The log-probabilities that are reported, against the definition over float logits."""
    content = PROMPT + " three" * 30
    ids = server.post("/tokenize", {"messages": [{"role": "user", "content": content}]}).json()["tokens"]
    z = hearth.logits(model_file("smollm2"), ids)[-1].astype(np.float64)
    window = ids[-20:] if context is None else ids[-context:] if context else ids
    assert context == 0 or len(set(window)) < len(set(ids))
    z = PENALTIES[name](z, np.bincount(window, minlength=len(z)), 1.75)
    logprobs = z - z.max() - np.log(np.exp(z - z.max()).sum())
    fields = {f"{name}_penalty": 1.75, **({} if context is None else {f"{name}_context_size": context})}
    choice = server.chat(content, max_tokens=1, logprobs=True, top_logprobs=20, **fields).json()["choices"][0]
    top = choice["logprobs"]["content"][0]["top_logprobs"]
    assert [t["logprob"] for t in top] == pytest.approx(sorted(logprobs, reverse=True)[:20], abs=2e-4)
    assert [t["logprob"] for t in top] == pytest.approx([logprobs[t["id"]] for t in top], abs=2e-4)


def test_limits(server):
    def used(**fields):
        return server.chat(**fields).json()["usage"]["completion_tokens"]

    assert used(max_tokens=3) == 3 and used(max_tokens=9, max_completion_tokens=2) == 2 and used(max_tokens=2, max_completion_tokens=5) == 5
    assert used(max_tokens=0) == 0


def test_logprobs_in_the_shape_of_mlx(server):
    plain = server.chat(logprobs=True, top_logprobs=3, max_tokens=6, temperature=1.5, seed=5).json()["choices"][0]["logprobs"]["content"]
    for top in (0, 3):
        answer = server.chat(logprobs=True, top_logprobs=top, logprobs_format="mlx", max_tokens=6, temperature=1.5, seed=5)
        entries = answer.json()["choices"][0]["logprobs"]["content"]
        assert len(entries) == len(plain) == 6
        for entry, want in zip(entries, plain):
            if top == 0:
                assert entry == {"id": want["id"], "logprob": want["logprob"]}
                continue
            first = want["top_logprobs"][0]
            assert (entry["id"], entry["logprob"]) == (first["id"], first["logprob"]), "the likeliest, not the drawn one"
            assert [(t["id"], t["logprob"]) for t in entry["top_logprobs"]] == [(t["id"], t["logprob"]) for t in want["top_logprobs"]]
            assert set(entry) == {"id", "token", "logprob", "top_logprobs"} and set(entry["top_logprobs"][0]) == {"id", "token", "logprob"}
    spellings = {t["token"] for e in entries for t in e["top_logprobs"]}
    assert any(s.startswith("\u0120") for s in spellings), "pieces as the vocabulary spells them"
    assert not any("\u0120" in e["token"] for e in plain)


def test_the_first_of_several_formats_holds(server):
    schema = {"type": "json_schema", "json_schema": {"schema": {"const": 1}}}
    order = [({"guided_grammar": 'root ::= "grammar"'}, "grammar"), ({"response_format": schema}, "1"),
             ({"structured_outputs": {"json": {"const": 2}}}, "2"), ({"guided_regex": "regex"}, "regex"), ({"guided_choice": ["choice"]}, "choice")]
    for i, (_, want) in enumerate(order):
        fields = {k: v for one, _ in order[i:] for k, v in one.items()}
        assert server.chat(max_tokens=40, **fields).json()["choices"][0]["message"]["content"] == want


def test_any_whitespace(server):
    newlines = {str(server.post("/tokenize", {"content": w}).json()["tokens"][0]): 100 for w in ("\n", "\n\n")}
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
    for form, tokens in (({"type": "json_object"}, 150), ({"type": "json_schema", "json_schema": {"schema": schema}}, 600)):
        fields = {"response_format": form, "max_tokens": tokens, "logit_bias": newlines}
        free = server.chat("Numbers?", any_whitespace=True, **fields).json()["choices"][0]
        content = free["message"]["content"]
        assert content.startswith("{\n"), content
        runs = max(len(r) for r in "".join(c if c.isspace() else "|" for c in content).split("|"))
        assert 2 < runs <= 128, "as long as it may be, and no longer"
        if form["type"] == "json_schema":
            assert free["finish_reason"] == "stop" and list(json.loads(content)) == ["a"] and content.endswith("}")
        for tight in ({}, {"any_whitespace": False}):
            answer = server.chat("Numbers?", **{**fields, "max_tokens": 40, **tight}).json()["choices"][0]["message"]["content"]
            assert "\n" not in answer, answer
