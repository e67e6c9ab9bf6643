"""Calls in every family's markup: held to the tools' schemas, streamed as they come, the same bytes either way."""
import json
import re

import pytest
from running import Server

FAMILIES = ["qwen3-coder", "minicpm5", "gemma4", "llama3", "mistral", "mistral-args"]  # structured_test.py has Hermes' calls
CITIES = ["Paris", "Oslo <&>", "007"]


def tool(name, properties, required):
    return {"type": "function", "function": {"name": name, "description": f"Finds the {name}",
                                             "parameters": {"type": "object", "properties": properties, "required": required,
                                                            "additionalProperties": False}}}


TOOLS = [tool("get_weather", {"city": {"enum": CITIES}, "days": {"type": "integer", "minimum": 1, "maximum": 9},
                              "units": {"type": "array", "items": {"enum": ["C", "F"]}, "minItems": 1, "maxItems": 2}},
              ["city", "days", "units"]),
         tool("get_note", {"text": {"type": "string", "maxLength": 12}, "of": {"type": ["string", "null"], "maxLength": 6}}, ["text", "of"])]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory, model_file):
    folder = tmp_path_factory.mktemp("dialect")
    with Server(folder, model_file("smollm2"), "--context", "1024", "--batch", "4", "--tool-dialect", request.param) as running:
        yield running


def is_valid(call):
    arguments = json.loads(call["function"]["arguments"])
    if call["function"]["name"] == "get_note":
        return (list(arguments) == ["text", "of"] and len(arguments["text"]) <= 12
                and (arguments["of"] is None or len(arguments["of"]) <= 6))
    return (list(arguments) == ["city", "days", "units"] and arguments["city"] in CITIES and arguments["days"] in range(1, 10)
            and 1 <= len(arguments["units"]) <= 2 and set(arguments["units"]) <= {"C", "F"})


def streamed(server, **body):
    """Calls and finish reason of a streamed answer: each begins with everything but its arguments."""
    calls, reason, text = [], None, ""
    for _, data in server.chat("What is the weather in Paris?", **{"stream": True, **body}).events()[:-1]:
        for choice in json.loads(data)["choices"]:
            reason = choice["finish_reason"] or reason
            text += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls", []):
                if part["index"] == len(calls):
                    assert re.fullmatch(r"call_[A-Za-z]{24}", part["id"]) and part["type"] == "function" and part["function"]["name"]
                    assert part["function"]["arguments"] == ""
                    calls.append({"name": part["function"]["name"], "arguments": []})
                else:
                    assert part["index"] == len(calls) - 1
                    calls[-1]["arguments"].append(part["function"]["arguments"])
    return calls, reason, text


def test_required_calls_hold_to_their_schemas_streamed_or_whole(family):
    body = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 240, "parallel_tool_calls": False, "temperature": 1.0, "seed": 3}
    choice = family.chat("What is the weather in Paris?", **body).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == "", choice
    (call,) = choice["message"]["tool_calls"]
    assert is_valid(call), call
    calls, reason, text = streamed(family, **body)
    assert reason == "tool_calls" and text == "" and len(calls) == 1
    assert calls[0]["name"] == call["function"]["name"] and "".join(calls[0]["arguments"]) == call["function"]["arguments"]
    assert len(calls[0]["arguments"]) > 1, "the arguments came in one piece"


def test_a_named_function_is_the_one_that_is_called(family):
    choice = family.chat("Hello!", tools=TOOLS, tool_choice={"type": "function", "function": {"name": "get_note"}}, max_tokens=240,
                         parallel_tool_calls=False).json()["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "get_note" and is_valid(call), call


def test_several_calls_are_whole_but_for_a_cut_one(family):
    body = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 160, "temperature": 1.0, "seed": 7}
    choice = family.chat("Oslo and Paris?", **body).json()["choices"][0]
    calls = choice["message"].get("tool_calls", [])
    assert all(is_valid(call) for call in calls), calls
    assert choice["finish_reason"] == "length" or (choice["finish_reason"] == "tool_calls" and calls)


# Inside of its marker, of its name, of its arguments: what is left of it is neither a call nor text.
def test_a_cut_call_is_none(family):
    for tokens in (1, 2, 3, 5, 8, 11, 14):
        body = {"tools": TOOLS, "tool_choice": "required", "max_tokens": tokens}
        choice = family.chat("What is the weather in Paris?", **body).json()["choices"][0]
        assert choice["finish_reason"] == "length" and "tool_calls" not in choice["message"], choice
        assert choice["message"]["content"] == "", choice
        _, reason, text = streamed(family, **body)
        assert reason == "length" and text == ""


def test_text_stays_text_when_tools_are_shown(family):
    body = {"max_tokens": 24, "tools": TOOLS}
    shown = family.chat("Say hello.", **body).json()["choices"][0]
    free = family.chat("Say hello.", tool_grammar=False, **body).json()["choices"][0]
    assert shown["message"]["content"] == free["message"]["content"] != "" and shown["finish_reason"] == free["finish_reason"]


# Markup as each family writes it, for a city that the schema does not know.
LONDON = {
    "qwen3-coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\nLondon\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
                   '<parameter=units>\n["C"]\n</parameter>\n</function>\n</tool_call>',
    "minicpm5": '<function name="get_weather"><param name="city">London</param><param name="days">2</param><param name="units">["C"]</param></function>',
    "gemma4": '<|tool_call>call:get_weather{city:<|"|>London<|"|>,days:2,units:[<|"|>C<|"|>]}<tool_call|>',
    "llama3": '{"name": "get_weather", "parameters": {"city": "London", "days": 2, "units": ["C"]}}',
    "mistral": '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "London", "days": 2, "units": ["C"]}}]',
    "mistral-args": '[TOOL_CALLS]get_weather[ARGS]{"city": "London", "days": 2, "units": ["C"]}',
}


def after(answer):
    """A conversation in which the model has answered so before."""
    turns = [("user", "The weather?"), ("assistant", answer)] * 3 + [("user", "The weather?")]
    return [{"role": role, "content": content} for role, content in turns]


def test_a_call_of_the_models_own_accord_is_held_from_its_marker_on(family):
    name = family.args[family.args.index("--tool-dialect") + 1]
    body = {"messages": after(LONDON[name]), "tools": TOOLS, "max_tokens": 240, "parallel_tool_calls": False}
    choice = family.chat(**body).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls", choice
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather" and is_valid(call), call
    calls, reason, text = streamed(family, **body)
    assert reason == "tool_calls" and text == "" and "".join(calls[0]["arguments"]) == call["function"]["arguments"]
    assert len(calls[0]["arguments"]) > 1, "the arguments came in one piece"
    free = family.chat(**body, tool_grammar=False).json()["choices"][0]
    assert free["finish_reason"] == "tool_calls" and "London" in free["message"]["tool_calls"][0]["function"]["arguments"], free


def test_what_a_family_cannot_hold_to_is_refused(family):
    bad = [tool("f", {"v": {"type": "array", "uniqueItems": True}}, ["v"])]
    for choice in ("auto", "required"):
        answer = family.chat("Hello!", tools=bad, tool_choice=choice)
        assert answer.status == 400 and answer.json()["error"]["param"] == "tools" and "uniqueItems" in answer.json()["error"]["message"]
