"""The openai package against a server: openai_client.py URL MODEL CASE; prints one JSON line."""
import json
import sys

import openai

url, model, case = sys.argv[1:4]
client = openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0, timeout=600)
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
LONG = [{"role": "user", "content": "Write a very long story."}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"],
              "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": PARAMETERS}}]
more = dict(model=model, temperature=0, max_tokens=64)


def chat():
    answer = client.chat.completions.create(messages=QUESTION, **more)
    choice = answer.choices[0]
    return dict(text=choice.message.content, finish=choice.finish_reason, tokens=answer.usage.completion_tokens)


def stream():
    text, finish, usage = "", None, None
    for chunk in client.chat.completions.create(messages=QUESTION, stream=True, stream_options={"include_usage": True}, **more):
        if chunk.usage:
            usage = chunk.usage.completion_tokens
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    return dict(text=text, finish=finish, tokens=usage)


def tools():
    asked = dict(messages=QUESTION, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, **more)
    rounds = []
    for streamed in (False, True):
        if streamed:
            with client.chat.completions.stream(**asked) as events:
                for _ in events:
                    pass
                choice = events.get_final_completion().choices[0]
        else:
            answer = client.chat.completions.create(**asked)
            choice = answer.choices[0]
        call = choice.message.tool_calls[0]
        said = {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
        rest = [{"role": "assistant", "content": None, "tool_calls": [said]},
                {"role": "tool", "tool_call_id": call.id, "content": "18 degrees, sunny"}]
        second = client.chat.completions.create(messages=QUESTION + rest, tools=TOOLS, tool_choice="none", **more)
        rounds.append(dict(name=call.function.name, arguments=json.loads(call.function.arguments), finish=choice.finish_reason,
                           id=call.id, answer=second.choices[0].message.content))
    return rounds


def cancel():
    events = client.chat.completions.create(messages=LONG, stream=True, model=model, max_tokens=1500,
                                            logit_bias={"2": -100, "0": -100})
    next(iter(events))
    events.close()
    return {}


def overflow():
    try:
        client.chat.completions.create(messages=[{"role": "user", "content": "word " * 40000}], **more)
    except openai.BadRequestError as error:
        return dict(status=error.status_code, code=error.code, message=error.message)


def models():
    return [m.id for m in client.models.list()]


def responses():
    first = client.responses.create(model=model, input="Say hello.", max_output_tokens=16, temperature=0)
    second = client.responses.create(model=model, input="Again.", previous_response_id=first.id, max_output_tokens=16, temperature=0)
    kinds = [e.type for e in client.responses.create(model=model, input="Say hello.", max_output_tokens=16, temperature=0, stream=True)]
    flat = [{"type": "function", "name": "get_weather", "parameters": PARAMETERS, "strict": False}]
    call = client.responses.create(model=model, input="What is the weather in Paris?", tools=flat, tool_choice="required",
                                   parallel_tool_calls=False, max_output_tokens=64)
    return dict(text=first.output_text, status=first.status, more=second.usage.input_tokens > first.usage.input_tokens, kinds=kinds,
                calls=[[i.name, json.loads(i.arguments)] for i in call.output if i.type == "function_call"])


print(json.dumps(globals()[case]()))
