"""Limits of what a body means, not only of what it spells: functions in namespaces and in messages, messages that one of a body becomes, and those of
the responses before; in frames of /ws/chat too (reliability.md section 3, R-11)."""
import json
import re

import pytest
from running import Server
from ws import TEXT, Chat

TOOLS, MESSAGES, DEPTH, MEMBERS, ITEMS = 6, 12, 20, 300, 300


@pytest.fixture(scope="module")
def small(tmp_path_factory, model_file):
    with Server(tmp_path_factory.mktemp("expanded"), model_file("smollm2"), "--context", "2048", "--batch", "2", "--limit",
                f"tools={TOOLS},messages={MESSAGES},json-depth={DEPTH},json-members={MEMBERS},json-items={ITEMS}") as running:
        yield running


def passed(server, name):
    return int(re.search(rf'^hearth_limit_refusals_total\{{limit="{name}"\}} (\d+)$', server.get("/metrics").body.decode(), re.M)[1])


def around(server, name, bound, send):
    """send(n) -> status, error: below and at the bound it is taken, above it is refused in words with the bound, and counted once."""
    before = passed(server, name)
    for n in (bound - 1, bound):
        status, error = send(n)
        assert status == 200, (n, error)
    assert passed(server, name) == before
    status, error = send(bound + 1)
    assert status == 400 and str(bound) in error["message"] and str(bound + 1) in error["message"], error
    assert passed(server, name) == before + 1
    return error


def sent(server, path, body):
    answer = server.post(path, body)
    return answer.status, answer.json().get("error")


def response(server, **fields):
    return sent(server, "/v1/responses", {"input": "Hi", "max_output_tokens": 1, "temperature": 0, **fields})


def function(name):
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}


def test_functions_of_namespaces(small):
    def send(n):
        spaces = [{"type": "namespace", "name": "a", "tools": [function(f"f{i}") for i in range(2)]},
                  {"type": "namespace", "name": "b", "tools": [function(f"f{i}") for i in range(n - 3)]}]
        return response(small, tools=[*spaces, function("g")], tool_choice="none")
    assert around(small, "tools", TOOLS, send)["param"] == "tools"


def test_functions_of_namespaces_at_the_default(server):
    """256, which is the most that the limit may be."""
    def send(n):
        spaces = [{"type": "namespace", "name": f"s{k}", "tools": [{"type": "custom", "name": f"f{i}"} for i in range(k * 100, min(n, k * 100 + 100))]}
                  for k in range(3)]
        return response(server, tools=spaces, tool_choice="none")
    before = passed(server, "tools")
    for n in (255, 256):
        status, error = send(n)
        assert status == 200 or error["param"] != "tools", error  # they may be too many for the context
    assert passed(server, "tools") == before
    status, error = send(257)
    assert status == 400 and error["param"] == "tools" and "256" in error["message"], error
    assert passed(server, "tools") == before + 1


def anthropic(server, path="/v1/messages", **fields):
    model = server.get("/v1/models").json()["data"][0]["id"]
    return sent(server, path, {"model": model, **({} if "count" in path else {"max_tokens": 1}), **fields})


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_functions_that_messages_add(small, path):
    def tool(name):
        return {"name": name, "input_schema": {"type": "object"}}

    def send(n):
        added = [{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool(f"new{i}")}} for i in range(n - 2)]
        return anthropic(small, path, tools=[tool("a"), tool("b")], tool_choice={"type": "none"},
                         messages=[{"role": "user", "content": "Hi"}, {"role": "system", "content": added}, {"role": "user", "content": "Ho"}])
    around(small, "tools", TOOLS, send)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_results_of_calls_are_messages(small, path):
    """Of one message with n results and a text come n + 1."""
    def send(n):
        calls = [{"type": "tool_use", "id": f"c{i}", "name": "f", "input": {}} for i in range(n - 3)]
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "1"} for call in calls]
        return anthropic(small, path, tools=[{"name": "f", "input_schema": {"type": "object"}}],
                         messages=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": calls},
                                   {"role": "user", "content": [*results, {"type": "text", "text": "Go on."}]}])
    around(small, "messages", MESSAGES, send)


def test_what_went_before_counts(small):
    turns = [{"role": "user" if i % 2 == 0 else "assistant", "content": "a"} for i in range(5)]
    first = small.post("/v1/responses", {"input": turns, "max_output_tokens": 2, "temperature": 0, "instructions": "Be brief."}).json()
    before = 1 + 5 + 1  # instructions, input, the answer

    def send(n):
        more = [{"role": "user", "content": "b"} for _ in range(n - before)]
        return response(small, input=more, previous_response_id=first["id"], store=False)
    assert around(small, "messages", MESSAGES, send)["param"] == "input"


def nested(n):
    """A frame of n values in each other."""
    return '{"type": "ping", "id": 1, "ignored": %s}' % ("[" * (n - 1) + "]" * (n - 1))


FRAMES = {
    "json-depth": (DEPTH, nested),
    "json-members": (MEMBERS, lambda n: json.dumps({"type": "ping", "id": 1, **{f"k{i}": 0 for i in range(n - 2)}})),
    "json-items": (ITEMS, lambda n: json.dumps({"type": "ping", "id": 1, "ignored": [0] * n})),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_have_the_limits_of_json(small, name):
    bound, frame = FRAMES[name]
    before = passed(small, name)
    with Chat(small) as chat:
        for n in (bound - 1, bound):
            chat.send_frame(TEXT, frame(n))
            assert chat.next()["type"] == "ack", n
        assert passed(small, name) == before
        chat.send_frame(TEXT, frame(bound + 1))
        refusal = chat.next()
        assert refusal["type"] == "error" and refusal["kind"] == "invalid_argument" and str(bound) in refusal["sentence"], refusal
        assert passed(small, name) == before + 1
        assert chat.answer_to("ping")["type"] == "ack", "the socket stays"
