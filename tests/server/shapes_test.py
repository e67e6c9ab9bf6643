"""The members of each answer, whole: what spec server 3.3 and 3.4 name, and nothing that nobody wrote down."""
import json
import re

import pytest

PROMPT = "Why is the sky blue?"
MESSAGES = [{"role": "user", "content": PROMPT}]
USAGE = {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"}
TIMINGS = {"queue_ms", "prefill_ms", "decode_ms", "prefill_tps", "decode_tps"}


def chunks_of(server, path, **body):
    events = server.post(path, {"temperature": 0, "max_tokens": 4, "stream": True, **body}).events()
    assert events[-1][1] == "[DONE]"
    return [json.loads(data) for _, data in events[:-1]]


def test_a_chat_completion(server):
    document = server.chat(PROMPT, max_tokens=4, logprobs=True, top_logprobs=2).json()
    assert set(document) == {"id", "object", "created", "model", "choices", "usage", "timings"}
    assert isinstance(document["created"], int) and re.fullmatch(r"chatcmpl-\w+", document["id"])
    (choice,) = document["choices"]
    assert set(choice) == {"index", "message", "finish_reason", "logprobs"} and set(choice["message"]) == {"role", "content"}
    entry = choice["logprobs"]["content"][0]
    assert set(entry) == {"token", "id", "bytes", "logprob", "top_logprobs"} and set(entry["top_logprobs"][0]) == {"token", "id", "bytes", "logprob"}
    usage = document["usage"]
    assert set(usage) == USAGE and set(usage["prompt_tokens_details"]) == {"cached_tokens"}
    assert set(usage["completion_tokens_details"]) == {"reasoning_tokens"}
    assert set(document["timings"]) == TIMINGS and all(document["timings"][name] >= 0 for name in TIMINGS)


def test_a_chat_stream(server):
    chunks = chunks_of(server, "/v1/chat/completions", messages=MESSAGES, logprobs=True)
    assert len({c["id"] for c in chunks}) == 1 and {c["object"] for c in chunks} == {"chat.completion.chunk"}
    for chunk in chunks:
        assert {"id", "object", "created", "model", "choices"} <= set(chunk) <= {"id", "object", "created", "model", "choices", "usage", "timings"}
    assert sum(len(c["choices"][0]["logprobs"]["content"]) for c in chunks if c["choices"][0].get("logprobs")) == 4
    assert set(chunks[-1]["usage"]) == USAGE and chunks[-1]["choices"][0]["delta"] == {}


def test_a_raw_completion(server):
    document = server.post("/v1/completions", {"prompt": PROMPT, "temperature": 0, "max_tokens": 4}).json()
    assert set(document) == {"id", "object", "created", "model", "choices", "usage", "timings"} and re.fullmatch(r"cmpl-\w+", document["id"])
    assert {"index", "text", "finish_reason"} <= set(document["choices"][0]) <= {"index", "text", "finish_reason", "logprobs"}
    for chunk in chunks_of(server, "/v1/completions", prompt=PROMPT):
        assert chunk["object"] == "text_completion" and chunk["id"].startswith("cmpl-")
        assert {"index", "text", "finish_reason"} <= set(chunk["choices"][0])


def test_a_message(server):
    document = server.post("/v1/messages", {"messages": MESSAGES, "temperature": 0, "max_tokens": 4}).json()
    assert {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"} <= set(document)
    assert re.fullmatch(r"msg_\w+", document["id"]) and document["type"] == "message" and document["role"] == "assistant"
    assert document["stop_reason"] == "max_tokens" and document["stop_sequence"] is None
    assert [set(block) for block in document["content"]] == [{"type", "text"}]
    assert {"input_tokens", "output_tokens", "cache_read_input_tokens"} <= set(document["usage"])
    counted = server.post("/v1/messages/count_tokens", {"messages": MESSAGES}).json()
    assert set(counted) == {"input_tokens"}


def test_a_response(server):
    document = server.post("/v1/responses", {"input": PROMPT, "temperature": 0, "max_output_tokens": 4}).json()
    assert {"id", "object", "created_at", "status", "model", "output", "usage"} <= set(document)
    assert re.fullmatch(r"resp_\w+", document["id"]) and document["status"] == "incomplete"
    (item,) = document["output"]
    assert item["type"] == "message" and item["content"][0]["type"] == "output_text"
    assert {"input_tokens", "output_tokens", "total_tokens"} <= set(document["usage"])


def test_a_stream_of_a_response(server):
    events = server.post("/v1/responses", {"input": PROMPT, "temperature": 0, "max_output_tokens": 4, "stream": True}).events()
    documents = [json.loads(data) for _, data in events]
    assert [d["type"] for d in documents] == [name for name, _ in events]
    assert [d["sequence_number"] for d in documents] == list(range(len(documents)))
    names = [name for name, _ in events if name != "response.output_text.delta"]
    assert names == ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                     "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete"]


def test_the_list_of_models(server):
    document = server.get("/v1/models").json()
    assert set(document) == {"object", "data", "has_more", "first_id", "last_id"} and document["last_id"] == document["data"][-1]["id"]
    (model,) = document["data"]
    assert set(model) == {"id", "object", "type", "created", "created_at", "owned_by", "display_name", "context_window", "vision", "reasoning",
                          "tools", "resident", "serving"}
    assert (model["object"], model["type"], model["vision"]) == ("model", "model", False)


# spec server 3.4 but for speculation{}, which comes with draft models
STATS = {
    "server": {"owner", "model", "started_at", "version", "numerics", "row_classes", "warm_turn_kl"},
    "prompt_cache": {"entries", "bytes", "max_bytes", "hits", "misses"},
    "disk_cache": {"entries", "bytes", "max_bytes", "restores", "spills"},
    "response_store": {"entries", "bytes", "max_bytes", "ttl_ms"},
    "kv_quant": {"mode", "layers", "attention"},
    "admission": {"max_safe_context", "memory_budget_bytes", "usable_bytes", "weights_bytes", "memory_bytes", "vram", "ram"},
    "batch": {"configured", "active_rows", "pending_rows", "parked_rows", "submitted_rows", "cancelled_rows", "pages_total", "pages_free", "kv_bytes"},
}


def test_stats(server):
    server.chat(PROMPT)
    document = server.get("/stats").json()
    assert set(document) == {*STATS, "models", "last_token_age_s"}
    for part, members in STATS.items():
        assert set(document[part]) == members, part
    assert set(document["kv_quant"]["layers"]) == {"kv4", "kv8", "bf16"} and document["kv_quant"]["layers"]["bf16"] == 30
    assert document["kv_quant"]["attention"] == {"global": 30, "sliding_window": 0, "recurrent": 0}
    assert document["server"]["row_classes"] == 1 and document["server"]["warm_turn_kl"] == 0, "every row has the bits it has alone, warm or cold"
    store, admission, batch = document["response_store"], document["admission"], document["batch"]
    assert store["max_bytes"] == 33554432 and store["ttl_ms"] == 3600000 and document["prompt_cache"]["max_bytes"] == 2_000_000_000
    assert admission["max_safe_context"] == 2048 and 0 < admission["weights_bytes"] < admission["usable_bytes"]
    assert 0 < batch["pages_free"] <= batch["pages_total"] and batch["submitted_rows"] > 0 and batch["kv_bytes"] > 0


METRICS = {  # spec server 3.4: name -> labels
    "hearth_requests_total": {"route", "code"}, "hearth_tokens_total": {"kind"}, "hearth_ttft_seconds": None, "hearth_inter_token_seconds": None,
    "hearth_queue_depth": set(), "hearth_rows": None, "hearth_pages_free": set(), "hearth_cache_hits_total": set(),
    "hearth_worker_restarts_total": set(), "hearth_last_token_age_seconds": set(), "hearth_bytes": {"pool"},
}


def test_metrics(server):
    server.chat(PROMPT)
    text = server.get("/metrics").body.decode()
    seen = {}
    for name, labels in re.findall(r"^(hearth_\w+?)(?:_bucket|_sum|_count)?(?:\{([^}]*)\})? ", text, re.M):
        seen.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    for name, labels in METRICS.items():
        assert name in seen, (name, sorted(seen))
        assert labels is None or seen[name] == labels, (name, seen[name])
    assert PROMPT not in text


@pytest.mark.parametrize("method, path, body", [("GET", "/health", None), ("GET", "/nowhere", None), ("POST", "/v1/chat/completions", {}),
                                                ("POST", "/v1/messages", {}), ("DELETE", "/v1/models", None), ("GET", "/", None)])
def test_every_answer_has_an_id_of_its_own(server, method, path, body):
    first, second = (server.request(method, path, body).headers["x-request-id"] for _ in range(2))
    assert first and first != second
