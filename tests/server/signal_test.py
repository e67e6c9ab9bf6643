"""/signal and /generate: the histogram against float logits in numpy, and samples against a chat that draws by the same curve."""
import math

import numpy as np
import pytest

PROMPT = "The capital of France is"
IDENTITY = [{"x_pct": 0.01, "y_pct": 0.01}, {"x_pct": 100, "y_pct": 100}]
SHARP = [{"x_pct": 1, "y_pct": 0.0001}, {"x_pct": 100, "y_pct": 100}]
BINS, FLOOR = 80, math.log(1e-6)


def histogram(logits):
    """count and mass by bin, entropy and the ten likeliest ids of softmax(logits), in float64."""
    z = logits.astype(np.float64)
    z -= z.max()
    logprobs = z - np.log(np.exp(z).sum())
    bins = np.clip(np.floor((logprobs - FLOOR) / (-FLOOR / BINS)), 0, BINS - 1).astype(int)
    probabilities = np.exp(logprobs)
    count = np.bincount(bins, minlength=BINS)
    mass = np.bincount(bins, weights=probabilities, minlength=BINS)
    top = np.argsort(-logprobs, kind="stable")[:10]
    return count, mass, -(probabilities * logprobs).sum(), [(int(i), logprobs[i]) for i in top]


def last_logits(hearth, model, ids, **options):
    return hearth.logits(model, ids, **options)[-1]


def signal(server, **body):
    answer = server.post("/signal", body)
    assert answer.status == 200, answer.body
    document = answer.json()
    assert document["object"] == "signal" and len(document["bins"]) == BINS
    assert document["bins"][0]["low"] == pytest.approx(FLOOR) and document["bins"][-1]["high"] == 0
    assert all(a["high"] == b["low"] for a, b in zip(document["bins"], document["bins"][1:]))
    return document


def expect_histogram(document, logits, exact=True):
    count, mass, entropy, top = histogram(logits)
    got_count, got_mass = ([b[key] for b in document["bins"]] for key in ("count", "mass"))
    assert sum(got_count) == len(logits) and sum(got_mass) == pytest.approx(1, abs=1e-9)
    if exact:
        assert got_count == count.tolist()
        assert got_mass == pytest.approx(mass.tolist(), abs=1e-12)
        assert document["entropy"] == pytest.approx(entropy, abs=1e-9)
        assert [t["id"] for t in document["top"]] == [i for i, _ in top]
        assert [t["logprob"] for t in document["top"]] == pytest.approx([l for _, l in top], abs=1e-9)
    else:  # logits of a model in float32, whose rows lie up to some hundredths of a nat beside those of the file
        assert np.abs(np.cumsum(got_count) - np.cumsum(count)).max() < 0.05 * len(logits)
        assert document["entropy"] == pytest.approx(entropy, abs=0.1)
        assert document["top"][0]["id"] == top[0][0]


def test_the_histogram_is_that_of_the_logits(server, hearth, model_file):
    for prompt in (PROMPT, "x", "def add(a, b):\n    return", "word " * 300):
        ids = server.post("/tokenize", {"content": prompt}).json()["tokens"]
        document = signal(server, prompt=prompt)
        assert document["usage"]["prompt_tokens"] == len(ids) and document["usage"]["completion_tokens"] == 0
        expect_histogram(document, last_logits(hearth, model_file("smollm2"), ids))
        warm = signal(server, prompt=prompt)
        assert [warm[k] for k in ("bins", "entropy", "top")] == [document[k] for k in ("bins", "entropy", "top")]


def test_the_histogram_is_near_that_of_the_float32_oracle(server, oracle):
    ids = server.post("/tokenize", {"content": PROMPT}).json()["tokens"]
    expect_histogram(signal(server, prompt=PROMPT), np.asarray(oracle("smollm2").logits(ids))[-1], exact=False)


def test_a_conversation_is_rendered_first(server, hearth, model_file):
    messages = [{"role": "user", "content": "Why is the sky blue?"}]
    ids = server.post("/tokenize", {"messages": messages}).json()["tokens"]
    document = signal(server, messages=messages)
    expect_histogram(document, last_logits(hearth, model_file("smollm2"), ids))
    first = server.chat(logprobs=True, top_logprobs=10, max_tokens=1).json()["choices"][0]["logprobs"]["content"][0]
    assert [t["id"] for t in document["top"]] == [t["id"] for t in first["top_logprobs"]]
    assert [t["token"] for t in document["top"]] == [t["token"] for t in first["top_logprobs"]]
    assert [t["logprob"] for t in document["top"]] == pytest.approx([t["logprob"] for t in first["top_logprobs"]], abs=1e-4)


def test_nothing_that_shapes_a_draw_shapes_the_histogram(server):
    plain = signal(server, prompt=PROMPT)
    shaped = signal(server, prompt=PROMPT, temperature=2, top_k=1, logit_bias={"5": 100}, repetition_penalty=1.5)
    assert shaped["bins"] == plain["bins"] and shaped["top"] == plain["top"]


def generated(server, points=IDENTITY, **body):
    answer = server.post("/generate", {"points": points, **({} if "messages" in body else {"prompt": PROMPT}), **body})
    assert answer.status == 200, answer.body
    document = answer.json()
    assert document["object"] == "samples" and [s["index"] for s in document["samples"]] == list(range(len(document["samples"])))
    return document


def texts(document):
    return [s["text"] for s in document["samples"]]


def test_samples_are_those_of_raw_completions_with_the_curve(server):
    document = generated(server, SHARP, seed=11, max_tokens=20)
    raw = server.post("/v1/completions", {"prompt": PROMPT, "curve": {"points": SHARP}, "seed": 11, "n": 3, "max_tokens": 20}).json()
    assert texts(document) == [c["text"] for c in raw["choices"]]
    assert [s["finish_reason"] for s in document["samples"]] == [c["finish_reason"] for c in raw["choices"]]
    assert document["usage"] == raw["usage"] and document["seed"] == 11
    messages = [{"role": "user", "content": "Tell me a story."}]
    told = generated(server, SHARP, seed=12, n=2, max_tokens=12, messages=messages)
    chat = server.post("/v1/chat/completions", {"messages": messages, "curve": {"points": SHARP}, "seed": 12, "n": 2, "max_tokens": 12})
    assert texts(told) == [c["message"]["content"] for c in chat.json()["choices"]]


def test_the_identity_draws_as_temperature_one(server):
    body = {"prompt": PROMPT, "temperature": 1, "seed": 5, "n": 3, "max_tokens": 24}
    assert texts(generated(server, seed=5, max_tokens=24)) == [c["text"] for c in server.post("/v1/completions", body).json()["choices"]]


def test_defaults_and_the_seed_that_was_drawn(server):
    document = generated(server)
    assert len(document["samples"]) == 3 and document["usage"]["completion_tokens"] <= 3 * 80
    assert all(s["finish_reason"] == "stop" for s in document["samples"]) or document["usage"]["completion_tokens"] > 80
    again = generated(server, seed=document["seed"])
    assert texts(again) == texts(document) and len(set(texts(document))) == 3
    assert generated(server)["seed"] != document["seed"]
    assert len(generated(server, n=8, max_tokens=1)["samples"]) == 8
    assert generated(server, n=1, max_tokens=256, seed=1)["usage"]["completion_tokens"] <= 256


def test_a_steep_curve_is_greedy(server):
    steep = [{"x_pct": 1, "y_pct": 1e-250}, {"x_pct": 100, "y_pct": 100}]
    greedy = server.post("/v1/completions", {"prompt": PROMPT, "temperature": 0, "max_tokens": 10}).json()["choices"][0]["text"]
    assert set(texts(generated(server, steep, max_tokens=10))) == {greedy}


@pytest.mark.parametrize("path", ["/signal", "/generate"])
@pytest.mark.parametrize("fields, param, words", [
    ({"prompt": None}, "prompt", "prompt or messages"),
    ({"messages": [{"role": "user", "content": "x"}]}, "prompt", "one of them"),
    ({"prompt": ["a"]}, "prompt", "string"),
    ({"prompt": None, "messages": []}, "messages", "between 1"),
    ({"prompt": None, "messages": [{"role": "pirate", "content": ""}]}, "messages", "role"),
    ({"prompt": "", }, None, ""),
    ({"adapter": "nobody's"}, "adapter", "not mounted"),
    ({"model": "no/such"}, None, "there"),
    ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs", "messages"),
])
def test_bad_requests_are_named(server, path, fields, param, words):
    body = {"prompt": PROMPT, **({"points": IDENTITY} if path == "/generate" else {}), **fields}
    answer = server.post(path, body)
    if fields == {"prompt": ""}:  # a BOS stands for it where there is one
        assert answer.status == 200, answer.body
        return
    error = answer.json()["error"]
    assert answer.status == (404 if "model" in fields else 400) and words in error["message"], answer.body
    assert param is None or error["param"] == param, error


@pytest.mark.parametrize("fields, param, words", [
    ({"points": None}, "points", "required"),
    ({"points": "steep"}, "points", "array"),
    ({"points": IDENTITY[:1]}, "points", "between 2 and 64"),
    ({"points": IDENTITY * 33}, "points", "between 2 and 64"),
    ({"points": [{"x_pct": 5}, IDENTITY[1]]}, "points", "point 1"),
    ({"points": [{"x_pct": 5, "y_pct": "5"}, IDENTITY[1]]}, "points", "point 1"),
    ({"points": [{"x_pct": 0, "y_pct": 5}, IDENTITY[1]]}, "points", "point 1"),
    ({"points": [{"x_pct": 5, "y_pct": 101}, IDENTITY[1]]}, "points", "point 1"),
    ({"points": [{"x_pct": 5, "y_pct": 50}, {"x_pct": 50, "y_pct": 5}]}, "points", "falls"),
    ({"points": [{"x_pct": 5, "y_pct": 5}, {"x_pct": 5, "y_pct": 50}]}, "points", "rising"),
    ({"n": 0}, "n", "between 1 and 8"), ({"n": 9}, "n", "between 1 and 8"), ({"n": "3"}, "n", "int"),
    ({"max_tokens": 0}, "max_tokens", "between 1 and 256"), ({"max_tokens": 257}, "max_tokens", "between 1 and 256"),
    ({"seed": 1.5}, "seed", "int"),
])
def test_bad_samples_are_named(server, fields, param, words):
    answer = server.post("/generate", {"prompt": PROMPT, "points": IDENTITY, **fields})
    error = answer.json()["error"]
    assert answer.status == 400 and error["param"] == param and words in error["message"], answer.body


def test_a_prompt_beyond_the_context_is_refused(server):
    for path in ("/signal", "/generate"):
        error = server.post(path, {"prompt": "word " * 4000, "points": IDENTITY}).json()["error"]
        assert error["code"] == "context_length_exceeded"
