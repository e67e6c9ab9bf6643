"""langchain-openai against a server: langchain_client.py URL MODEL CASE; prints one JSON line."""
import json
import sys

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, ConfigDict, Field

url, model, case = sys.argv[1:4]
chat_model = ChatOpenAI(base_url=url + "/v1", api_key="any", model=model, temperature=0, max_tokens=64, max_retries=0, timeout=600)
QUESTION = [HumanMessage("What is the weather in Paris?")]
LONG = [HumanMessage("Write a very long story.")]


class Where(BaseModel):
    """Arguments of the tool; closed, so that a small model ends its call."""

    model_config = ConfigDict(extra="forbid")
    city: str = Field(max_length=20)


@tool(args_schema=Where)
def get_weather(city: str) -> str:
    """Weather of a city"""
    return "18 degrees, sunny"


def chat():
    answer = chat_model.invoke(QUESTION)
    return dict(text=answer.content, finish=answer.response_metadata["finish_reason"], tokens=answer.usage_metadata["output_tokens"])


def stream():
    whole = None
    for chunk in chat_model.stream(QUESTION, stream_usage=True):
        whole = chunk if whole is None else whole + chunk
    return dict(text=whole.content, finish=whole.response_metadata["finish_reason"], tokens=whole.usage_metadata["output_tokens"])


def tools():
    bound = chat_model.bind_tools([get_weather], tool_choice="required", parallel_tool_calls=False, strict=True)
    rounds = []
    for streamed in (False, True):
        if streamed:
            answer = None
            for chunk in bound.stream(QUESTION):
                answer = chunk if answer is None else answer + chunk
        else:
            answer = bound.invoke(QUESTION)
        call = answer.tool_calls[0]
        result = ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
        second = chat_model.bind_tools([get_weather], tool_choice="none").invoke([*QUESTION, answer, result])
        rounds.append(dict(name=call["name"], arguments=call["args"], finish=answer.response_metadata["finish_reason"],
                           id=call["id"], answer=second.content))
    return rounds


def cancel():
    long = ChatOpenAI(base_url=url + "/v1", api_key="any", model=model, max_tokens=1500, max_retries=0)
    events = long.stream(LONG)
    next(events)
    events.close()
    return {}


def overflow():
    try:
        chat_model.invoke([HumanMessage("word " * 40000)])
    except openai.BadRequestError as error:
        return dict(status=error.status_code, code=error.code, message=error.message, kind=type(error).__name__)


def models():
    return [m.id for m in chat_model.root_client.models.list()]


print(json.dumps(globals()[case]()))
