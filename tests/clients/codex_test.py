"""@openai/codex, one-shot, with wire_api = "responses"."""
import json

import agent
import pytest

# Codex knows no bound of turns. A small model calls a tool again and again, with the words that failed before, and Codex goes on as
# long as it does: after so many answers it has been seen enough, and is ended.
TURNS_MAX = 4


def events_of(done):
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert events, done.stderr[-2000:]
    return events


def told(call):
    """The events of a streamed response, in order, without those that only break a silence."""
    events = [json.loads(line[6:]) for line in call["answer"].splitlines() if line.startswith("data: {")]
    return [e for e in events if e["type"] != "keepalive"]


def check_turns(calls):
    """What the protocol promises of each turn, whatever the model says: a response that begins, ends and is numbered throughout; items
    that are added and done; and a next request that brings the outputs of exactly these calls, behind all that was said before."""
    for call in calls:
        events = told(call)
        assert events[0]["type"] == "response.created" and events[-1]["type"] in ("response.completed", "response.incomplete"), events[-1]
        assert [e["sequence_number"] for e in events] == list(range(len(events)))
        added, done = ([e["output_index"] for e in events if e["type"] == f"response.output_item.{what}"] for what in ("added", "done"))
        assert added == done == list(range(len(events[-1]["response"]["output"])))
    for earlier, later in zip(calls, calls[1:]):
        output = told(earlier)[-1]["response"]["output"]
        asked = [item["call_id"] for item in output if item["type"].endswith("_call")]
        items = later["body"]["input"]
        assert items[: len(earlier["body"]["input"])] == earlier["body"]["input"]
        new = items[len(earlier["body"]["input"]):]
        assert sorted(asked) == sorted(item["call_id"] for item in new if item["type"].endswith("_call_output"))


@pytest.mark.full
def test_one_shot(coder, scratch):
    with agent.Watched(coder) as watched:
        answered = lambda: [c for c in watched.calls("/v1/responses") if "answer" in c]
        done = agent.codex(watched.url, watched.model, scratch, kill_after=lambda: len(answered()) >= TURNS_MAX)
        calls = watched.check("/v1/responses")
        turns = answered()
    assert all(c["body"]["stream"] for c in calls)
    check_turns(turns)
    if len(turns) < TURNS_MAX:  # it ended by itself
        events = events_of(done)
        assert agent.codex_ended_well(events), events[-3:]


@pytest.mark.full
def test_overflow_is_told(served, scratch):
    with agent.Watched(served) as watched:
        events = events_of(agent.codex(watched.url, watched.model, scratch, prompt="word " * 20000))
        assert 400 in {c["status"] for c in watched.calls("/v1/responses")}
    failed = [e for e in events if e["type"] == "turn.failed"]
    assert failed and "ran out of room in the model's context window" in json.dumps(failed), events[-3:]
