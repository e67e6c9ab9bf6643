"""litellm against a server: litellm_client.py URL MODEL CASE; prints one JSON line."""
import json
import sys

import litellm

url, model, case = sys.argv[1:4]
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
LONG = [{"role": "user", "content": "Write a very long story."}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"],
              "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": PARAMETERS}}]
where = dict(model="openai/" + model, api_base=url + "/v1", api_key="any", num_retries=0, timeout=600)
more = dict(where, temperature=0, max_tokens=64)


def chat():
    answer = litellm.completion(messages=QUESTION, **more)
    choice = answer.choices[0]
    return dict(text=choice.message.content, finish=choice.finish_reason, tokens=answer.usage.completion_tokens)


def stream():
    chunks = list(litellm.completion(messages=QUESTION, stream=True, stream_options={"include_usage": True}, **more))
    whole = litellm.stream_chunk_builder(chunks, messages=QUESTION)
    choice = whole.choices[0]
    return dict(text=choice.message.content, finish=choice.finish_reason, tokens=whole.usage.completion_tokens)


def tools():
    rounds = []
    for streamed in (False, True):
        asked = dict(messages=QUESTION, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, **more)
        if streamed:
            answer = litellm.stream_chunk_builder(list(litellm.completion(stream=True, **asked)), messages=QUESTION)
        else:
            answer = litellm.completion(**asked)
        choice = answer.choices[0]
        call = choice.message.tool_calls[0]
        said = {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
        rest = [{"role": "assistant", "content": None, "tool_calls": [said]},
                {"role": "tool", "tool_call_id": call.id, "content": "18 degrees, sunny"}]
        second = litellm.completion(messages=QUESTION + rest, tools=TOOLS, tool_choice="none", **more)
        rounds.append(dict(name=call.function.name, arguments=json.loads(call.function.arguments), finish=choice.finish_reason,
                           id=call.id, answer=second.choices[0].message.content))
    return rounds


def cancel():
    events = litellm.completion(messages=LONG, stream=True, max_tokens=1500, **where)
    next(iter(events))
    events.completion_stream.close()
    return {}


def overflow():
    try:
        litellm.completion(messages=[{"role": "user", "content": "word " * 40000}], **more)
    except litellm.ContextWindowExceededError as error:
        return dict(status=error.status_code, code="context_length_exceeded", message=str(error))


def models():
    return litellm.get_valid_models(check_provider_endpoint=True, custom_llm_provider="openai", api_base=url + "/v1", api_key="any")


print(json.dumps(globals()[case]()))
