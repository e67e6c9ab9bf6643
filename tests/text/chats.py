"""Conversations that the template tests render: with and without system, tools, thinking, parts, odd content."""

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather; \"quoted\" & <tagged>, caf\u00e9.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": None},
                "days": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["city"],
        },
    },
}
ADD = {"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object", "properties": {}}}}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def call(name, arguments, id="call_0001"):
    return {"type": "function", "id": id, "function": {"name": name, "arguments": arguments}}


def tool(content, name="get_weather", id="call_0001"):
    return {"role": "tool", "content": content, "name": name, "tool_call_id": id}


def text(s):
    return {"type": "text", "text": s}


ONE_CALL = assistant("", tool_calls=[call("get_weather", {"city": "Z\u00fcrich", "unit": "celsius"})])
TWO_CALLS = assistant("I look.", tool_calls=[call("get_weather", {"city": "Oslo"}, "call_0001"), call("add", {"a": 1, "b": 2.5}, "call_0002")])

CHATS = [
    {"messages": [user("Hi")]},
    {"messages": [system("Be brief."), user("Hi")]},
    {"messages": [user("Hi"), assistant("Hello!"), user("How are you?")]},
    {"messages": [system("Be brief."), user("1+1?"), assistant("2"), user("2+2?"), assistant("4")]},
    {"messages": [user("")]},
    {"messages": [system(""), user("  padded  \n"), assistant("\n\nanswer\n")]},
    {"messages": [user("\u4f60\u597d \U0001f44b\u200d caf\u00e9 <b>&amp;</b> {{ x }} {% if %} 'q' \"d\" \\")]},
    {"messages": [user("Weather?")], "tools": [WEATHER]},
    {"messages": [system("Use tools."), user("Weather?")], "tools": [WEATHER, ADD]},
    {"messages": [user("Weather?"), ONE_CALL, tool("{\"t\": 21.5}")], "tools": [WEATHER]},
    {"messages": [system("S"), user("Both"), TWO_CALLS, tool("sunny"), tool("3.5", "add", "call_0002"), assistant("Done."), user("Thanks")],
     "tools": [WEATHER, ADD]},
    {"messages": [user("Weather?"), assistant(None, tool_calls=[call("add", "{\"a\": 1}")]), tool("1", "add"), assistant("1")]},
    {"messages": [user("Q"), assistant("<think>\nhm\n</think>\n\nA"), user("Q2"), assistant("<think>x</think>B")]},
    {"messages": [user("Q"), assistant("A", reasoning_content="thought a lot\n"), user("Q2")]},
    {"messages": [user("Q"), assistant("A", reasoning_content="last")], "extra": {"enable_thinking": True}},
    {"messages": [system("S /no_think"), user("Q /think")], "extra": {"enable_thinking": False}},
    {"messages": [user([text("part one"), text("part two")])]},
    {"messages": [system([text("sys")]), user([text("see"), {"type": "image"}, text("after")]), assistant([text("ok")])]},
    {"messages": [user("Find it")], "documents": [{"title": "T\u00e9", "text": "body"}, {"title": "U", "text": "more\nlines"}]},
    {"messages": [assistant("I begin"), user("no")]},
    {"messages": [user("a"), user("b")]},
    {"messages": []},
    {"messages": [user("Q"), assistant("A"), tool("orphan")], "tools": []},
    {"messages": [{"role": "developer", "content": "dev"}, user("Q")]},
    {"messages": [{"role": "user", "content": "x", "name": "Ann", "extra": [1, None, True, 2.5]}, assistant("y", tool_calls=[])]},
    {"messages": [system("S"), user("Q")], "extra": {"date_string": "01 Jan 2026", "custom": {"a": [1, 2]}, "reasoning_effort": "high",
                                                        "xml_tools": ["x"], "tools_in_user_message": False}},
]
