"""What real clients asked of a server (tests/vectors/clients, recorded by tests/clients/record.py), asked again."""
import copy
import json
import pathlib

import pytest
from running import Server

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "vectors" / "clients"
FILES = sorted(FOLDER.glob("*.json"))
CLIENTS = ["claude-code 2.1.332", "codex 0.171.0", "pi-coding-agent 0.73.1", "openai 3.57.0", "openai 7.59.0", "anthropic 2.14.0",
           "@anthropic-ai/sdk 1.14.0", "langchain-openai 1.7.4", "litellm 1.110.2"]
GENERATING = {"/v1/messages": "max_tokens", "/v1/chat/completions": "max_tokens", "/v1/responses": "max_output_tokens"}
TOKENS = 12  # of each answer: the shapes are of interest


@pytest.fixture(scope="module")
def replayed(tmp_path_factory, model_file):
    with Server(tmp_path_factory.mktemp("replay"), model_file("smollm2"), "--context", "8192", "--batch", "4") as running:
        yield running


def calls_of(file):
    return json.loads(file.read_text())["calls"]


def route_of(call):
    return call["path"].split("?")[0]


def repeat(server, call, previous=None):
    """The call as recorded, but for the model (this server's own), the response before it and the length of the answer."""
    body = copy.deepcopy(call["body"])
    if isinstance(body, dict):
        if "model" in body:
            body["model"] = server.get("/v1/models").json()["data"][0]["id"]
        if "previous_response_id" in body:
            body["previous_response_id"] = previous
        if field := GENERATING.get(route_of(call)):
            for name in {field, "max_completion_tokens"} & set(body) | {field}:
                body[name] = TOKENS
            if "max_completion_tokens" in body:
                body.pop("max_tokens", None)
    return server.request(call["method"], call["path"], body=body, headers=call["headers"], timeout=600)


def check_messages(answer):
    """message_start, blocks that open, grow and close one after the other, message_delta, message_stop."""
    events = [(name, json.loads(data)) for name, data in answer.events() if name != "ping"]
    assert all(name == event["type"] for name, event in events)
    names = [name for name, _ in events]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    open_block, blocks = None, 0
    for name, event in events[1:-2]:
        if name == "content_block_start":
            assert open_block is None and event["index"] == blocks
            open_block, blocks = blocks, blocks + 1
        else:
            assert event["index"] == open_block
            if name == "content_block_stop":
                open_block = None
            else:
                assert name == "content_block_delta"
    assert open_block is None
    assert events[-2][1]["delta"]["stop_reason"] in ("end_turn", "max_tokens", "tool_use")


def check_responses(answer):
    """response.created first, items that open and close, one closing event; numbers without a gap."""
    events = [json.loads(data) for name, data in answer.events() if name != "keepalive"]
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    kinds = [e["type"] for e in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] in ("response.completed", "response.incomplete")
    added = [e["output_index"] for e in events if e["type"] == "response.output_item.added"]
    done = [e["output_index"] for e in events if e["type"] == "response.output_item.done"]
    assert added == done == list(range(len(events[-1]["response"]["output"])))
    for event in events:
        if event["type"] == "response.output_text.done":
            deltas = [e["delta"] for e in events if e["type"] == "response.output_text.delta" and e["item_id"] == event["item_id"]]
            assert "".join(deltas) == event["text"]


def check_chat(answer):
    events = answer.events()
    assert events[-1][1] == "[DONE]"
    chunks = [json.loads(data) for _, data in events[:-1]]
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    ends = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]]
    assert ends[-1] in ("stop", "length", "tool_calls") and not any(ends[:-1])
    assert chunks[-1]["usage"]["completion_tokens"] >= 1


STREAMS = {"/v1/messages": check_messages, "/v1/responses": check_responses, "/v1/chat/completions": check_chat}


def check_whole(call, document):
    route = route_of(call)
    if route == "/v1/messages":
        assert document["type"] == "message" and document["usage"]["output_tokens"] >= 1
    elif route == "/v1/messages/count_tokens":
        assert document["input_tokens"] > 0
    elif route == "/v1/responses":
        assert document["status"] in ("completed", "incomplete") and document["usage"]["output_tokens"] >= 1
    elif route == "/v1/chat/completions":
        assert document["choices"][0]["finish_reason"] in ("stop", "length", "tool_calls")
    elif route == "/v1/models":
        assert document["data"][0]["id"] and document["has_more"] is False


def test_there_are_recordings_of_every_client():
    clients = " ".join(json.loads(file.read_text())["client"] for file in FILES)
    for name in CLIENTS:
        assert name in clients
    for file in FILES:
        assert not {"authorization", "x-api-key", "cookie"} & {k for call in calls_of(file) for k in call["headers"]}, file.name


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_every_recorded_call_is_answered_whole(replayed, file):
    previous = None
    for call in calls_of(file):
        answer = repeat(replayed, call, previous)
        assert answer.status == call["status"], (call["path"], answer.body[:400])
        if answer.status != 200 or call["method"] == "HEAD":
            continue
        if isinstance(call["body"], dict) and call["body"].get("stream"):
            assert answer.headers["content-type"].startswith("text/event-stream")
            STREAMS[route_of(call)](answer)
        else:
            check_whole(call, answer.json())
            previous = answer.json().get("id")


def usage_of(answer):
    events = dict((name, json.loads(data)) for name, data in answer.events() if name in ("message_start", "message_delta"))
    return {**events["message_start"]["message"]["usage"], **events["message_delta"]["usage"]}


def billed(body, number):
    """The body with the line that Claude Code puts in front of its instructions, which changes with every turn."""
    body, line = copy.deepcopy(body), f"x-anthropic-billing-header: cc_version=2.1.332.{number:03x}; cc_entrypoint=sdk-cli; cch={number:05x};"
    system = body.get("system") or []
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    rest = [b for b in system if not b["text"].startswith("x-anthropic-billing-header")]
    body["system"] = [{"type": "text", "text": line}, *rest]
    return body


def test_the_second_turn_of_claude_code_reuses_its_prompt(replayed):
    """The first request of the second turn finds more than 90 % of its prompt in the cache of the one before."""
    turns = [c for c in calls_of(FOLDER / "claude-code.json") if route_of(c) == "/v1/messages" and c["body"].get("tools")]
    assert len(turns) >= 2
    for number, call in enumerate(turns[-2:]):
        answer = repeat(replayed, {**call, "body": billed(call["body"], 7919 * number + 1)})
        assert answer.status == 200, answer.body[:400]
    usage = usage_of(answer)
    prompt = usage["input_tokens"] + usage["cache_read_input_tokens"]
    assert prompt > 500 and usage["cache_read_input_tokens"] > 0.9 * prompt, usage
