"""The anthropic package against a server: anthropic_client.py URL MODEL CASE; prints one JSON line."""
import json
import sys

import anthropic

url, model, case = sys.argv[1:4]
client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0, timeout=600)
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
LONG = [{"role": "user", "content": "Write a very long story."}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"],
          "additionalProperties": False}
TOOLS = [{"name": "get_weather", "description": "Weather of a city", "input_schema": SCHEMA}]
more = dict(model=model, max_tokens=64, extra_body={"temperature": 0})


def joined(message):
    return "".join(block.text for block in message.content if block.type == "text")


def chat():
    answer = client.messages.create(messages=QUESTION, **more)
    return dict(text=joined(answer), finish=answer.stop_reason, tokens=answer.usage.output_tokens)


def stream():
    with client.messages.stream(messages=QUESTION, **more) as events:
        text = "".join(events.text_stream)
        final = events.get_final_message()
    assert text == joined(final)
    return dict(text=text, finish=final.stop_reason, tokens=final.usage.output_tokens)


def tools():
    rounds = []
    for streamed in (False, True):
        asked = dict(messages=QUESTION, tools=TOOLS, tool_choice={"type": "any", "disable_parallel_tool_use": True}, **more)
        if streamed:
            with client.messages.stream(**asked) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**asked)
        call = next(block for block in answer.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "18 degrees, sunny"}
        rest = [{"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]},
                {"role": "user", "content": [result]}]
        second = client.messages.create(messages=QUESTION + rest, tools=TOOLS, tool_choice={"type": "none"}, **more)
        rounds.append(dict(name=call.name, arguments=call.input, finish=answer.stop_reason, id=call.id, answer=joined(second)))
    return rounds


def cancel():
    events = client.messages.create(messages=LONG, stream=True, model=model, max_tokens=1500)
    for event in events:
        if event.type == "content_block_delta":
            break
    events.close()
    return {}


def overflow():
    try:
        client.messages.create(messages=[{"role": "user", "content": "word " * 40000}], **more)
    except anthropic.BadRequestError as error:
        return dict(status=error.status_code, code=error.body["error"]["type"], message=error.body["error"]["message"])


def models():
    return [m.id for m in client.models.list()]


def count():
    counted = client.messages.count_tokens(model=model, messages=QUESTION).input_tokens
    return dict(counted=counted, used=client.messages.create(messages=QUESTION, **more).usage.model_dump())


print(json.dumps(globals()[case]()))
