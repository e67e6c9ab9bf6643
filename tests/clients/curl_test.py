"""curl, as the documentation's examples use it."""
import json
import shutil
import subprocess

import library
import pytest

QUESTION = {"messages": [{"role": "user", "content": "What is the weather in Paris?"}], "temperature": 0, "max_tokens": 32}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"],
              "additionalProperties": False}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]


def curl(server, path, body=None, *flags, timeout=600):
    if shutil.which("curl") is None:
        pytest.fail("the package curl is not installed")
    command = ["curl", "-sS", "-N", "-w", "\n%{http_code}", *flags, server.url + path]
    if body is not None:
        command += ["-H", "Content-Type: application/json", "--data-binary", "@-"]
    done = subprocess.run(command, input=json.dumps(body), capture_output=True, text=True, timeout=timeout)
    text, _, status = done.stdout.rpartition("\n")
    return int(status), text, done


def answer(server, **fields):
    status, text, done = curl(server, "/v1/chat/completions", {**QUESTION, **fields})
    assert status == 200, (text, done.stderr)
    return text


@pytest.mark.full
def test_chat_and_stream(served):
    whole = json.loads(answer(served))["choices"][0]["message"]["content"]
    lines = [line[6:] for line in answer(served, stream=True).splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    assert "".join(c["delta"].get("content") or "" for line in lines[:-1] for c in json.loads(line)["choices"]) == whole


@pytest.mark.full
def test_tool_round_trip(served):
    message = json.loads(answer(served, tools=TOOLS, tool_choice="required", parallel_tool_calls=False))["choices"][0]["message"]
    call = message["tool_calls"][0]
    assert "city" in json.loads(call["function"]["arguments"])
    messages = [*QUESTION["messages"], message, {"role": "tool", "tool_call_id": call["id"], "content": "18 degrees"}]
    second = json.loads(answer(served, tools=TOOLS, tool_choice="none", messages=messages))
    assert second["choices"][0]["message"]["content"]


@pytest.mark.full
def test_cancel(served):
    ends = (151643, 151645) if "qwen" in library.model_of(served).lower() else (0, 2)
    body = {**QUESTION, "max_tokens": 1500, "stream": True, "logit_bias": {str(i): -100 for i in ends}}
    with pytest.raises(subprocess.TimeoutExpired):
        curl(served, "/v1/chat/completions", body, timeout=2)
    library.Library(None, "curl", library.OPENAI_WORDS).check_cancel(served, {})


@pytest.mark.full
def test_overflow_and_models(served):
    status, text, _ = curl(served, "/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 40000}]})
    assert status == 400 and json.loads(text)["error"]["code"] == "context_length_exceeded"
    status, text, _ = curl(served, "/v1/models")
    assert status == 200 and json.loads(text)["data"][0]["id"] == library.model_of(served)
