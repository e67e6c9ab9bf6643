"""Structured output and calls of tools: every answer is what was asked for, or the request is refused."""
import json
import re

import pytest

SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "people": {"type": "integer"}},
          "required": ["city", "people"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city",
                                           "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}},
                                                          "required": ["city"], "additionalProperties": False}}}]


def content(answer):
    assert answer.status == 200, answer.body
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "stop", choice
    return choice["message"]["content"]


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_a_schema_holds(server, temperature):
    for seed in range(4):
        answer = server.chat("Name a city and how many people live there.", max_tokens=120, temperature=temperature, seed=seed,
                             response_format={"type": "json_schema", "json_schema": {"schema": SCHEMA}})
        value = json.loads(content(answer))
        assert list(value) == ["city", "people"] and isinstance(value["people"], int) and len(value["city"]) <= 20


# What llama-server calls them, and its notation of grammars.
GBNF = '''# a list of two
root   ::= item{2}
item   ::= "- " word "\\n"
word   ::= [a-c] [^\\x00-\\x60{-\\U0010FFFF]{1,5}  # letters
         | "caf\\u00e9"
'''


@pytest.mark.parametrize("path, ask", [("/v1/chat/completions", {"messages": [{"role": "user", "content": "Two things?"}]}),
                                       ("/v1/completions", {"prompt": "Two things:\n"})])
def test_llama_cpps_fields_hold(server, path, ask):
    def text(**fields):
        answer = server.post(path, {"max_tokens": 60, "temperature": 0, **ask, **fields})
        assert answer.status == 200, answer.body
        choice = answer.json()["choices"][0]
        return choice["text"] if "text" in choice else choice["message"]["content"]

    held = text(grammar=GBNF, seed=3, temperature=1.0)
    assert re.fullmatch(r"(- ([a-c][a-z]{1,5}|café)\n){2}", held), held
    assert text(grammar='root ::= ("yes" | "no") "!"') in ("yes!", "no!")
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
    for fields in ({"json_schema": schema}, {"json_schema": json.dumps(schema)},
                   {"response_format": {"type": "json_object", "schema": schema}}, {"structured_outputs": {"json": schema}}):
        assert set(json.loads(text(**fields))) == {"ok"}
    assert text(grammar="", json_schema={"enum": ["only this"]}) == '"only this"'
    for fields, param in (({"grammar": "root ::= undefined"}, "grammar"), ({"json_schema": {"not": {}}}, "json_schema"),
                          ({"grammar": 7}, "grammar"), ({"grammar": 'root ::= "a"', "grammar_lazy": True}, "grammar_lazy")):
        answer = server.post(path, {**ask, **fields})
        assert answer.status == 400 and answer.json()["error"]["param"] == param, answer.body


def test_regex_choice_and_grammar_hold(server):
    assert re.fullmatch(r"\d{3}-\d{4}", content(server.chat("A phone number?", max_tokens=40, guided_regex=r"\d{3}-\d{4}")))
    assert content(server.chat("Yes or no?", max_tokens=40, guided_choice=["maybe", "never"])) in ("maybe", "never")
    assert content(server.chat("Count.", max_tokens=40, guided_grammar='root ::= "one" (" two"){2}')) == "one two two"


@pytest.mark.parametrize("fields, param, words", [
    ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}}, "response_format", "not"),
    ({"guided_regex": "(a"}, "guided_regex", ""),
    ({"guided_regex": "(?=a)b"}, "guided_regex", ""),
    ({"guided_grammar": "root ::= undefined"}, "guided_grammar", "undefined"),
    ({"guided_choice": [""]}, "guided_choice", ""),
])
def test_what_cannot_be_held_to_is_refused(server, fields, param, words):
    answer = server.chat("Hi", **fields)
    assert answer.status == 400, answer.body
    error = answer.json()["error"]
    assert error["param"] == param and words in error["message"], error


def test_required_calls_stream_to_the_same_arguments(server):
    body = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 80, "parallel_tool_calls": False}
    answer = server.chat("What is the weather in Paris?", **body)
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == ""
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather" and set(json.loads(call["function"]["arguments"])) == {"city"}
    assert re.fullmatch(r"call_[A-Za-z]{24}", call["id"])

    fragments, first = "", None
    for _, data in server.chat("What is the weather in Paris?", stream=True, **body).events()[:-1]:
        for part in json.loads(data)["choices"][0]["delta"].get("tool_calls", []):
            if first is None:
                first = part
                assert part["index"] == 0 and part["id"] and part["type"] == "function" and part["function"]["name"] == "get_weather"
            fragments += part["function"].get("arguments", "")
    assert fragments == call["function"]["arguments"]


def test_a_cut_call_is_no_call(server):
    long = {"type": "object", "properties": {"city": {"type": "string", "minLength": 400}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": long}}]
    for tokens in (6, 40):  # before the name is known, and amid the arguments
        answer = server.chat("What is the weather in Paris?", tools=tools, tool_choice="required", max_tokens=tokens)
        choice = answer.json()["choices"][0]
        assert choice["finish_reason"] == "length" and "tool_calls" not in choice["message"], choice


NOW = '{"name": "get_weather", "arguments": {"city": "Rome"}}'


@pytest.mark.parametrize("around, is_call", [("%s", True), ("```json\n%s\n```", True), ("<tools>\n%s\n</tools>", True), ("So: %s", False)])
def test_an_answer_that_is_one_call_without_tags_is_a_call(server, around, is_call):
    """SmolLM2 says again what it said before."""
    text = around % NOW
    turns = [("user", "The weather?"), ("assistant", text)] * 3 + [("user", "The weather?")]
    body = {"messages": [{"role": role, "content": content} for role, content in turns], "max_tokens": 60}
    plain = server.chat(**body).json()["choices"][0]
    said = plain["message"]["content"]
    assert (said == text or not is_call) and said.startswith(text[:4]) and plain["finish_reason"] == "stop", plain
    choice = server.chat(**body, tools=TOOLS).json()["choices"][0]
    events = [json.loads(data)["choices"][0] for _, data in server.chat(**body, tools=TOOLS, stream=True).events()[:-1]]
    parts = [part for event in events for part in event["delta"].get("tool_calls", [])]
    streamed = "".join(event["delta"].get("content") or "" for event in events)
    if not is_call:
        assert choice["finish_reason"] == "stop" and "tool_calls" not in choice["message"] and not parts
        assert choice["message"]["content"] == streamed and streamed.startswith(text[:20])
        return
    assert choice["finish_reason"] == events[-1]["finish_reason"] == "tool_calls" and choice["message"]["content"] == streamed == ""
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Rome"}'}
    assert parts[0]["function"]["name"] == "get_weather" and "".join(p["function"].get("arguments", "") for p in parts) == '{"city": "Rome"}'


def test_an_answer_in_a_format_that_was_asked_for_is_no_call(server):
    schema = {"type": "object", "properties": {"name": {"const": "get_weather"}, "arguments": {"type": "object", "properties": {"city": {"const": "Rome"}},
              "required": ["city"], "additionalProperties": False}}, "required": ["name", "arguments"], "additionalProperties": False}
    turns = [("user", "The weather?"), ("assistant", NOW)] * 3 + [("user", "The weather?")]
    choice = server.chat(messages=[{"role": role, "content": content} for role, content in turns], max_tokens=60, tools=TOOLS,
                         response_format={"type": "json_schema", "json_schema": {"schema": schema}}).json()["choices"][0]
    assert choice["finish_reason"] == "stop" and json.loads(choice["message"]["content"])["name"] == "get_weather", choice


def test_history_must_pair_up(server):
    def ask(*messages):
        return server.post("/v1/chat/completions", {"max_tokens": 2, "tools": TOOLS, "messages": list(messages)})

    user = {"role": "user", "content": "weather?"}
    call = {"role": "assistant", "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}
    assert ask(user, call, result).status == 200
    for bad, words in (((user, call), "messages[1]"), ((user, result), "messages[1]"), ((user, call, {**result, "tool_call_id": "c2"}), "messages[")):
        answer = ask(*bad)
        assert answer.status == 400 and words in answer.json()["error"]["message"], answer.body
    broken = json.loads(json.dumps(call).replace("Rome\\\"}", "Rome"))
    assert ask(user, broken, result).status == 400
