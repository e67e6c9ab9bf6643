"""Chat and raw completions: shapes, streams, stops, logprobs; equal to `hearth generate`."""
import json

import pytest
from running import streamed_text

PROMPT = "Why is the sky blue?"


def test_a_greedy_answer_is_that_of_generate(server, hearth, model_file):
    alone = json.loads(hearth.run("generate", model_file("smollm2"), PROMPT, "--max-tokens", "24", "--json").stdout)
    answer = server.chat(PROMPT, max_tokens=24)
    assert answer.status == 200, answer.body
    document = answer.json()
    choice = document["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": alone["text"]}
    assert choice["finish_reason"] == "length"
    assert document["object"] == "chat.completion" and document["id"].startswith("chatcmpl-")
    usage = document["usage"]
    assert usage["prompt_tokens"] == len(alone["prompt_ids"]) and usage["completion_tokens"] == 24
    assert usage["total_tokens"] == usage["prompt_tokens"] + 24


def test_a_stream_joins_to_the_same_text(server):
    whole = server.chat(PROMPT, max_tokens=24).json()["choices"][0]["message"]["content"]
    answer = server.chat(PROMPT, max_tokens=24, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert streamed_text(answer) == whole
    chunks = [json.loads(data) for _, data in answer.events()[:-1]]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunks[-1]["choices"][0]["finish_reason"] == "length" and chunks[-1]["usage"]["completion_tokens"] == 24
    assert all(c["choices"][0]["finish_reason"] is None for c in chunks[:-1])


def test_usage_comes_in_a_chunk_of_its_own_when_asked_for(server):
    answer = server.chat(PROMPT, stream=True, stream_options={"include_usage": True})
    chunks = [json.loads(data) for _, data in answer.events()[:-1]]
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] == 16
    assert all(c["usage"] is None for c in chunks[:-1])


def test_a_warm_prefix_changes_nothing(server):
    text = "Count the words of this sentence, and then of this one, and tell both numbers. " * 12
    cold = server.chat(text, max_tokens=12).json()
    warm = server.chat(text, max_tokens=12).json()
    assert warm["choices"] == cold["choices"]
    assert warm["usage"]["prompt_tokens_details"]["cached_tokens"] > 64


def test_stop_strings_are_left_out_and_end_the_answer(server):
    whole = server.chat(PROMPT, max_tokens=40).json()["choices"][0]["message"]["content"]
    stop = whole[20:26]
    for stream in (False, True):
        answer = server.chat(PROMPT, max_tokens=40, stop=[stop], stream=stream)
        text = streamed_text(answer) if stream else answer.json()["choices"][0]["message"]["content"]
        assert text == whole[: whole.index(stop)]
    assert server.chat(PROMPT, max_tokens=40, stop=stop).json()["choices"][0]["finish_reason"] == "stop"


def test_logprobs_stand_beside_their_tokens(server):
    choice = server.chat(PROMPT, max_tokens=8, logprobs=True, top_logprobs=3).json()["choices"][0]
    entries = choice["logprobs"]["content"]
    assert len(entries) == 8
    assert "".join(bytes(e["bytes"]).decode() for e in entries) == choice["message"]["content"]
    for entry in entries:
        top = entry["top_logprobs"]
        assert len(top) == 3 and top[0]["logprob"] == pytest.approx(entry["logprob"], abs=1e-4)
        assert [t["logprob"] for t in top] == sorted((t["logprob"] for t in top), reverse=True)


def test_answers_of_one_prompt_differ_and_a_seed_repeats_them(server):
    def ask():
        document = server.chat("Tell me a story.", n=3, temperature=1.0, seed=7, max_tokens=12).json()
        assert [c["index"] for c in document["choices"]] == [0, 1, 2]
        assert document["usage"]["completion_tokens"] == 36
        return [c["message"]["content"] for c in document["choices"]]

    first = ask()
    assert len(set(first)) == 3 and ask() == first


def test_raw_completions_continue_a_text(server, hearth, model_file):
    alone = json.loads(hearth.run("generate", model_file("smollm2"), "The capital of France is", "--raw", "--max-tokens", "8",
                                  "--json").stdout)
    body = {"prompt": "The capital of France is", "temperature": 0, "max_tokens": 8}
    document = server.post("/v1/completions", body).json()
    assert document["choices"][0]["text"] == alone["text"] and document["object"] == "text_completion"
    events = server.post("/v1/completions", {**body, "stream": True}).events()
    assert "".join(json.loads(d)["choices"][0]["text"] for _, d in events[:-1]) == alone["text"]


def test_max_tokens_beyond_the_context_is_lowered_and_said(server):
    answer = server.chat("Hi", max_tokens=100_000, stop=["."])
    assert answer.status == 200 and int(answer.headers["hearth-max-tokens"]) < 2048


def test_tokens_and_templates_can_be_asked_for(server):
    ids = server.post("/tokenize", {"content": "Hello there"}).json()["tokens"]
    for path in ("/detokenize", "/v1/detokenize"):
        assert server.post(path, {"tokens": ids}).json() == {"content": "Hello there"}
    messages = [{"role": "user", "content": "Hi"}]
    rendered = server.post("/apply-template", {"messages": messages}).json()
    assert "Hi" in rendered["prompt"] and rendered["token_count"] == server.chat("Hi").json()["usage"]["prompt_tokens"]
    with_pieces = server.post("/v1/tokenize", {"content": "Hello there", "with_pieces": True}).json()["tokens"]
    assert "".join(t["piece"] for t in with_pieces) == "Hello there" and [t["id"] for t in with_pieces] == ids


def test_more_pieces_than_an_answer_holds_are_refused(server):
    text = "1" * ((1 << 20) + 1)  # a token each
    answer = server.post("/v1/tokenize", {"content": text, "with_pieces": True})
    assert answer.status == 400 and answer.json()["error"]["param"] == "with_pieces" and "1048577" in answer.json()["error"]["message"]
    assert len(server.post("/v1/tokenize", {"content": text}).json()["tokens"]) == len(text)


def test_models_are_listed_for_both_dialects(server):
    document = server.get("/v1/models").json()
    first = document["data"][0]
    assert document["object"] == "list" and document["first_id"] == first["id"] and document["has_more"] is False
    assert first["serving"] and first["resident"] and first["context_window"] == 2048
    assert server.get("/v1/models/" + first["id"]).json() == first
