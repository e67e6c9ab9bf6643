"""OpenAI's responses: shapes, streams, the store and its chains; the official client."""
import json

import pytest
from running import Server

PROMPT = "Why is the sky blue?"
TOOLS = [{"type": "function", "name": "find", "description": "Finds a file.", "parameters": {"type": "object", "properties": {}}},
         {"type": "web_search"}]


def body(content=PROMPT, **fields):
    return {"input": content, "temperature": 0, "max_output_tokens": 24, **fields}


def ask(server, content=PROMPT, headers=None, **fields):
    answer = server.post("/v1/responses", body(content, **fields), headers=headers)
    assert answer.status == 200, answer.body
    return answer


def text_of(response):
    return "".join(p["text"] for item in response["output"] if item["type"] == "message" for p in item["content"])


def final(answer):
    """The response that a stream ends with; checks the order of its events on the way."""
    events = [(name, json.loads(data)) for name, data in answer.events() if name != "keepalive"]
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    assert all(name == data["type"] for name, data in events)
    names = [name for name, _ in events]
    assert names[:4] == ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]
    assert names[-4:-1] == ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
    assert set(names[4:-4]) == {"response.output_text.delta"}
    assert events[0][1]["response"]["status"] == "in_progress" and events[0][1]["response"]["output"] == []
    response = events[-1][1]["response"]
    assert names[-1] == "response." + response["status"]
    assert "".join(data["delta"] for _, data in events[4:-4]) == text_of(response)
    assert events[-2][1]["item"] == response["output"][0]
    assert {data["item_id"] for _, data in events[3:-2]} == {response["output"][0]["id"]}
    return response


def refused(answer, status, param=None, words="", code=None):
    assert answer.status == status, answer.body
    error = answer.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["param"] == param and words in error["message"], error
    assert error["code"] == code
    return error


def test_a_response_says_what_chat_says(server):
    chat = server.chat(PROMPT, max_tokens=24).json()
    response = ask(server).json()
    assert text_of(response) == chat["choices"][0]["message"]["content"]
    assert response["object"] == "response" and response["id"].startswith("resp_") and response["model"] == chat["model"]
    assert response["status"] == "incomplete" and response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["output"][0]["status"] == "incomplete" and response["error"] is None
    usage = response["usage"]
    assert usage["input_tokens"] == chat["usage"]["prompt_tokens"] and usage["output_tokens"] == 24
    assert usage["total_tokens"] == usage["input_tokens"] + 24 and "cached_tokens" in usage["input_tokens_details"]


def test_a_stream_ends_with_the_document(server):
    document = ask(server, tools=TOOLS, metadata={"a": "b"}).json()
    streamed = final(ask(server, tools=TOOLS, metadata={"a": "b"}, stream=True))
    assert streamed["metadata"] == {"a": "b"} and streamed["tools"] == TOOLS

    def shape(response):
        usage = {k: v for k, v in response["usage"].items() if k != "input_tokens_details"}
        output = [{k: v for k, v in item.items() if k != "id"} for item in response["output"]]
        return {**response, "id": "", "created_at": 0, "usage": usage, "output": output}

    assert shape(streamed) == shape(document)


def test_an_answer_that_ends_is_completed(server):
    response = ask(server, "Say hello.", max_output_tokens=400).json()
    assert response["status"] == "completed" and response["incomplete_details"] is None
    assert final(ask(server, "Say hello.", max_output_tokens=400, stream=True))["status"] == "completed"


def test_items_are_a_conversation(server):
    items = [{"role": "developer", "content": "Answer in French."}, {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
             {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Salut"}]},
             {"role": "user", "content": "And bye?"}]
    messages = [{"role": "system", "content": "Be brief.\n\nAnswer in French."}, {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Salut"}, {"role": "user", "content": "And bye?"}]
    chat = server.post("/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 24}).json()
    response = ask(server, items, instructions="Be brief.").json()
    assert text_of(response) == chat["choices"][0]["message"]["content"] and response["instructions"] == "Be brief."
    assert response["usage"]["input_tokens"] == chat["usage"]["prompt_tokens"]


def test_calls_and_their_results_are_part_of_it(server):
    items = [{"role": "user", "content": "Where?"}, {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": "{}"},
             {"type": "function_call_output", "call_id": "call_1", "output": "in a.txt"}]
    more = ask(server, items, tools=TOOLS).json()["usage"]["input_tokens"]
    assert more > ask(server, items[:1], tools=TOOLS).json()["usage"]["input_tokens"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_chain_is_the_conversation(server, stream):
    def answer(*args, **fields):
        got = ask(server, *args, stream=stream, **fields)
        return final(got) if stream else got.json()

    first = answer(PROMPT, instructions="Be brief.", max_output_tokens=8)
    second = answer("Go on.", previous_response_id=first["id"], max_output_tokens=8)
    third = answer("And then?", previous_response_id=second["id"])
    items = [{"role": "user", "content": PROMPT}, *first["output"], {"role": "user", "content": "Go on."}, *second["output"],
             {"role": "user", "content": "And then?"}]
    whole = ask(server, items, instructions="Be brief.").json()
    assert text_of(third) == text_of(whole) and third["usage"]["input_tokens"] == whole["usage"]["input_tokens"]
    assert third["previous_response_id"] == second["id"] and third["instructions"] == "Be brief."
    assert third["usage"]["input_tokens_details"]["cached_tokens"] > 0
    other = answer("And then?", previous_response_id=second["id"], instructions="Be very brief.")
    assert other["instructions"] == "Be very brief."


def test_what_is_stored_can_be_read_and_forgotten(server):
    response = ask(server).json()
    path = "/v1/responses/" + response["id"]
    assert server.get(path).json() == response
    streamed = final(ask(server, stream=True))
    assert server.get("/v1/responses/" + streamed["id"]).json() == streamed
    kept = server.get("/stats").json()["response_store"]
    assert kept["entries"] >= 2 and 0 < kept["bytes"] <= kept["max_bytes"] == 33554432 and kept["ttl_ms"] == 3600000
    deleted = server.request("DELETE", path)
    assert deleted.status == 200 and deleted.json() == {"id": response["id"], "object": "response", "deleted": True}
    for answer in (server.get(path), server.request("DELETE", path)):
        refused(answer, 404, None, response["id"], "response_not_found")
    refused(server.post("/v1/responses", body(previous_response_id=response["id"])), 404, "previous_response_id", response["id"],
            "previous_response_not_found")


def test_store_false_is_respected(server):
    response = ask(server, store=False).json()
    assert response["store"] is False
    refused(server.get("/v1/responses/" + response["id"]), 404, None, response["id"], "response_not_found")


def test_a_response_is_its_credentials_own(tmp_path, model_file):
    (tmp_path / "keys").write_text("key-of-ann\nkey-of-bob\n")
    (tmp_path / "keys").chmod(0o600)
    ann, bob = ({"Authorization": "Bearer " + key} for key in ("key-of-ann", "key-of-bob"))
    with Server(tmp_path, model_file("smollm2"), "--context", "512", "--api-key-file", tmp_path / "keys") as server:
        assert server.post("/v1/responses", body()).status == 401
        path = "/v1/responses/" + ask(server, headers=ann, max_output_tokens=4).json()["id"]
        assert server.get(path, headers=ann).status == 200
        assert server.get(path, headers=bob).status == 404
        assert server.request("DELETE", path, headers=bob).status == 404
        fields = body(previous_response_id=path.rsplit("/", 1)[1])
        assert server.post("/v1/responses", fields, headers=bob).status == 404
        assert server.post("/v1/responses", fields, headers=ann).status == 200


def test_logprobs_stand_beside_the_text(server):
    part = ask(server, include=["message.output_text.logprobs"], top_logprobs=2, max_output_tokens=6).json()["output"][0]["content"][0]
    assert "".join(bytes(e["bytes"]).decode() for e in part["logprobs"]) == part["text"] and len(part["logprobs"]) == 6
    assert all(len(e["top_logprobs"]) == 2 for e in part["logprobs"])


@pytest.mark.parametrize("fields, param, words", [
    ({"input": None}, "input", "required"),
    ({"input": 3}, "input", "string or an array"),
    ({"input": []}, "input", "at least 1"),
    ({"input": [3]}, "input", "input[0]"),
    ({"input": [{"role": "pirate", "content": "x"}]}, "input", "input[0].role"),
    ({"input": [{"type": "riddle"}]}, "input", "riddle"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x.invalid/a.png"}]}]}, "input", "image"),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "messages", "input[0]"),
    ({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}]}, "messages", "input[0]"),
    ({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]}, "messages", "input[0]"),
    ({"max_output_tokens": "many"}, "max_output_tokens", "int"),
    ({"temperature": 9}, "temperature", "between"),
    ({"tools": [{"name": "x"}]}, "tools", "tools[0].type"),
    ({"tool_choice": "required"}, "tool_choice", "no tools"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "lose"}}, "tool_choice", "lose"),
    ({"reasoning": {"effort": "huge"}}, "reasoning", "effort"),
    ({"text": {"format": {"type": "yaml"}}}, "text.format", "json_schema"),
    ({"background": True}, "background", "not supported"),
    ({"conversation": "conv_1"}, "conversation", "not supported"),
    ({"store": "yes"}, "store", "bool"),
])
def test_fields_are_checked(server, fields, param, words):
    refused(server.post("/v1/responses", {**body(), **fields}), 400, param, words)


def test_a_prompt_beyond_the_context_is_refused_as_in_chat(server):
    error = refused(server.post("/v1/responses", body("word " * 4000)), 400, None, "maximum context length", "context_length_exceeded")
    assert error["type"] == "memory_admission"


@pytest.fixture(scope="module")
def client(server):
    import openai

    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0, timeout=120) as made:
        yield made


def sdk(content=PROMPT, **fields):
    return {"model": "", **body(content, **fields)}


def test_the_official_client_reads_responses(client, server):
    response = client.responses.create(**sdk(tools=TOOLS))
    assert response.output_text and response.status == "incomplete" and response.usage.output_tokens == 24
    again = client.responses.retrieve(response.id)
    assert again.output_text == response.output_text
    second = client.responses.create(**sdk("Go on.", previous_response_id=response.id))
    assert second.previous_response_id == response.id
    client.responses.delete(response.id)


def test_the_official_client_reads_streams(client):
    with client.responses.stream(**sdk("Say hello.", max_output_tokens=400)) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        response = stream.get_final_response()
    assert response.output_text == text and response.status == "completed"


def test_the_official_client_reads_chat(client):
    messages = [{"role": "user", "content": PROMPT}]
    whole = client.chat.completions.create(model="", messages=messages, temperature=0, max_tokens=12)
    chunks = list(client.chat.completions.create(model="", messages=messages, temperature=0, max_tokens=12, stream=True,
                                                 stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == whole.choices[0].message.content
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 12
    assert client.models.list().data


def test_the_official_client_raises_what_the_server_says(client):
    import openai

    with pytest.raises(openai.BadRequestError, match="maximum context length") as caught:
        client.responses.create(**sdk("word " * 4000))
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_unknown")
    with pytest.raises(openai.NotFoundError):
        client.responses.create(**sdk(previous_response_id="resp_unknown"))
    with pytest.raises(openai.BadRequestError, match="temperature"):
        client.responses.create(**{**sdk(), "temperature": 9})
