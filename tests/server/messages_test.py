"""Anthropic's messages and count_tokens: shapes, streams, stops, errors in its shape; the official client."""
import json

import pytest

PROMPT = "Why is the sky blue?"
TOOLS = [{"name": "find", "description": "Finds a file.", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}]


def body(content=PROMPT, **fields):
    return {"model": "", "messages": [{"role": "user", "content": content}], "temperature": 0, "max_tokens": 24, **fields}


def ask(server, content=PROMPT, **fields):
    answer = server.post("/v1/messages", body(content, **fields))
    assert answer.status == 200, answer.body
    return answer


def joined(answer):
    """The message that a stream adds up to; checks the order and indexes of its events on the way."""
    events = [(name, json.loads(data)) for name, data in answer.events()]
    assert all(name == data["type"] for name, data in events)
    assert events[0][0] == "message_start" and events[-1][0] == "message_stop" and events[-2][0] == "message_delta"
    message = events[0][1]["message"]
    assert message["content"] == [] and message["stop_reason"] is None
    open_block = None
    for name, data in events[1:-2]:
        if name == "content_block_start":
            assert open_block is None and data["index"] == len(message["content"])
            open_block = data["index"]
            message["content"].append(data["content_block"])
        elif name == "content_block_delta":
            assert data["index"] == open_block and data["delta"]["type"] == "text_delta"
            message["content"][-1]["text"] += data["delta"]["text"]
        elif name == "content_block_stop":
            assert data["index"] == open_block
            open_block = None
        else:
            assert name == "ping"
    assert open_block is None
    message.update(events[-2][1]["delta"])
    message["usage"].update(events[-2][1]["usage"])
    return message


def refused(answer, status, kind, words=""):
    assert answer.status == status, answer.body
    document = answer.json()
    assert document["type"] == "error" and set(document["error"]) == {"type", "message"}
    assert document["error"]["type"] == kind and words in document["error"]["message"], document
    assert document["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]
    return document["error"]


def prompt_tokens(usage):
    return usage["input_tokens"] + usage["cache_read_input_tokens"]


def test_a_message_says_what_chat_says(server):
    chat = server.chat(PROMPT, max_tokens=24).json()
    message = ask(server).json()
    assert message["content"] == [{"type": "text", "text": chat["choices"][0]["message"]["content"]}]
    assert message["type"] == "message" and message["role"] == "assistant" and message["id"].startswith("msg_")
    assert message["model"] == chat["model"] and message["stop_reason"] == "max_tokens" and message["stop_sequence"] is None
    assert prompt_tokens(message["usage"]) == chat["usage"]["prompt_tokens"] and message["usage"]["output_tokens"] == 24


def test_a_stream_joins_to_the_document(server):
    document = ask(server).json()
    answer = ask(server, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    message = joined(answer)
    for part in ("type", "role", "model", "content", "stop_reason", "stop_sequence"):
        assert message[part] == document[part]
    assert prompt_tokens(message["usage"]) == prompt_tokens(document["usage"])
    assert message["usage"]["output_tokens"] == document["usage"]["output_tokens"]


def test_stop_sequences_end_the_answer_and_are_named(server):
    whole = ask(server, max_tokens=40).json()["content"][0]["text"]
    stop = whole[20:26]
    for stream in (False, True):
        answer = ask(server, max_tokens=40, stop_sequences=["never said", stop], stream=stream)
        message = joined(answer) if stream else answer.json()
        assert message["content"][0]["text"] == whole[: whole.index(stop)]
        assert message["stop_reason"] == "stop_sequence" and message["stop_sequence"] == stop


def test_cached_tokens_are_counted_apart(server):
    text = "Repeat after me, word for word, and leave out nothing of what is said here. " * 12
    cold = ask(server, text).json()
    warm = ask(server, text).json()
    assert cold["usage"]["cache_read_input_tokens"] < 64 and warm["usage"]["cache_read_input_tokens"] > 64
    assert prompt_tokens(cold["usage"]) == prompt_tokens(warm["usage"]) and warm["content"] == cold["content"]


@pytest.mark.parametrize("fields", [
    {},
    {"system": "Answer in French."},
    {"system": [{"type": "text", "text": "Answer in French.", "cache_control": {"type": "ephemeral"}}]},
    {"tools": TOOLS, "tool_choice": {"type": "auto"}},
    {"tools": TOOLS, "tool_choice": {"type": "none"}},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    {"messages": [
        {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "text", "text": "I look."},
                                          {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"q": "x"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"},
                                     {"type": "text", "text": "And now?", "cache_control": {"type": "ephemeral"}}]}]},
])
def test_count_tokens_is_the_usage_of_the_request(server, fields):
    request = {**body(max_tokens=4), **fields}
    usage = server.post("/v1/messages?beta=true", request).json()["usage"]
    del request["max_tokens"]
    counted = server.post("/v1/messages/count_tokens?beta=true", request, headers={"anthropic-beta": "something-new-2031-01-01"})
    assert counted.status == 200 and counted.json() == {"input_tokens": prompt_tokens(usage)}


def test_the_billing_line_is_not_part_of_the_prompt(server):
    def count(system):
        return server.post("/v1/messages/count_tokens", body(system=system)).json()["input_tokens"]

    plain = count("Be brief.")
    assert count("x-anthropic-billing-header: cc_version=2.1; cch=9;\nBe brief.") == plain
    assert count([{"type": "text", "text": "x-anthropic-billing-header: cch=1;"}, {"type": "text", "text": "Be brief."}]) == plain
    assert count("Be brief. x-anthropic-billing-header: no line of its own") > plain


def test_a_second_turn_with_another_billing_line_finds_the_first_one_cached(server):
    def turn(number, messages):
        system = [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.{number}; cch={number * 7919};"},
                  {"type": "text", "text": "You help with a program. " * 40, "cache_control": {"type": "ephemeral"}}]
        return server.post("/v1/messages?beta=true", {"model": "", "system": system, "messages": messages, "temperature": 0,
                                                      "max_tokens": 12, "tools": TOOLS}).json()

    first = [{"role": "user", "content": [{"type": "text", "text": PROMPT, "cache_control": {"type": "ephemeral"}}]}]
    answer = turn(1, first)
    second = [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}, {"role": "assistant", "content": answer["content"]},
              {"role": "user", "content": [{"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}]}]
    usage = turn(2, second)["usage"]
    assert usage["cache_read_input_tokens"] > 0.9 * prompt_tokens(usage)


def user(*blocks):
    return [{"role": "user", "content": list(blocks)}]


CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}}]}


@pytest.mark.parametrize("fields, words", [
    ({"max_tokens": None}, "max_tokens is required"),
    ({"max_tokens": "9"}, "max_tokens"),
    ({"messages": []}, "messages"),
    ({"messages": None}, "messages is required"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": user({"type": "image", "source": {"type": "url", "url": "https://x.invalid/a.png"}})}, "messages[0].content[0] is an image"),
    ({"messages": user({"type": "audio"})}, "audio"),
    ({"messages": user({"type": "text"})}, "messages[0].content[0].text"),
    ({"messages": user({"type": "tool_result", "tool_use_id": "toolu_9", "content": "x"})}, "messages[0].content[0]"),
    ({"messages": [*user({"type": "text", "text": "a"}), CALL, *user({"type": "text", "text": "b"})]}, "toolu_1"),
    ({"messages": [*user({"type": "text", "text": "a"}), {"role": "assistant", "content": "{"}]}, "prefill"),
    ({"system": 3}, "system"),
    ({"system": [{"type": "image"}]}, "system[0]"),
    ({"tools": [{"name": "x"}]}, "tools[0].input_schema"),
    ({"tool_choice": {"type": "any"}}, "no tools"),
    ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
    ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "lose"}}, "lose"),
    ({"thinking": {"type": "maybe"}}, "thinking.type"),
    ({"thinking": {"type": "enabled", "budget_tokens": "many"}}, "budget_tokens"),
    ({"temperature": 9}, "temperature"),
    ({"stop_sequences": [""]}, "stop_sequences"),
    ({"output_config": {"effort": "none"}}, "effort"),
])
def test_fields_are_checked(server, fields, words):
    refused(server.post("/v1/messages", {**body(), **fields}), 400, "invalid_request_error", words)


def test_errors_have_its_shape(server):
    refused(server.post("/v1/messages", b"{"), 400, "invalid_request_error", "JSON")
    refused(server.post("/v1/messages", body(model="no/such-model")), 404, "not_found_error", "no/such-model")
    refused(server.post("/v1/messages/count_tokens", body(model="no/such-model")), 404, "not_found_error", "no/such-model")
    refused(server.get("/v1/messages"), 405, "invalid_request_error")
    refused(server.get("/v1/messages/nothing"), 404, "not_found_error")
    error = refused(server.post("/v1/messages", body("word " * 4000)), 400, "invalid_request_error", "prompt is too long: ")
    assert error["message"].endswith(" tokens > 2048 maximum")
    # A stream that cannot begin is refused as any other answer.
    refused(server.post("/v1/messages", body("word " * 4000, stream=True)), 400, "invalid_request_error", "prompt is too long: ")


def test_logit_bias_is_no_field_here(server):
    assert ask(server, logit_bias={"1": "nothing of ours"}).json()["content"] == ask(server).json()["content"]


def sdk(content=PROMPT, **fields):
    """The same as arguments of the client, which knows no temperature any more."""
    fields = body(content, **fields)
    temperature = fields.pop("temperature")
    return {**fields, "extra_body": {"temperature": temperature}}


@pytest.fixture(scope="module")
def client(server):
    import anthropic

    with anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0, timeout=120) as made:
        yield made


def test_the_official_client_reads_messages(client, server):
    message = client.messages.create(**sdk())
    assert message.content[0].text == ask(server).json()["content"][0]["text"] and message.stop_reason == "max_tokens"
    assert message._request_id and message.usage.output_tokens == 24
    assert client.messages.count_tokens(model="", messages=body()["messages"]).input_tokens == (
        message.usage.input_tokens + message.usage.cache_read_input_tokens)
    assert client.models.list().data[0].display_name


def test_the_official_client_reads_streams(client):
    whole = client.messages.create(**sdk())
    with client.messages.stream(**sdk(system=[{"type": "text", "text": "Be brief."}], tools=TOOLS)) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert final.content[0].text == text and final.usage.output_tokens <= 24 and final.stop_reason
    with client.messages.stream(**sdk()) as stream:
        assert stream.get_final_message().content[0].text == whole.content[0].text


def test_the_official_client_raises_what_the_server_says(client):
    import anthropic

    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        client.messages.create(**sdk("word " * 4000))
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.messages.create(**sdk(model="no/such-model"))
    assert caught.value.type == "not_found_error"
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        client.messages.create(**sdk(temperature=9))
