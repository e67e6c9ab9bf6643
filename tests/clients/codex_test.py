"""@openai/codex, one-shot, with wire_api = "responses"."""
import json

import agent
import pytest


def events_of(done):
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert events, done.stderr[-2000:]
    return events


@pytest.mark.full
def test_one_shot(coder, scratch):
    with agent.Watched(coder) as watched:
        events = events_of(agent.codex(watched.url, watched.model, scratch))
        calls = watched.check("/v1/responses")
    assert all(c["body"]["stream"] for c in calls)
    assert agent.codex_ended_well(events), events[-3:]


@pytest.mark.full
def test_overflow_is_told(served, scratch):
    with agent.Watched(served) as watched:
        events = events_of(agent.codex(watched.url, watched.model, scratch, prompt="word " * 20000))
        assert 400 in {c["status"] for c in watched.calls("/v1/responses")}
    failed = [e for e in events if e["type"] == "turn.failed"]
    assert failed and "ran out of room in the model's context window" in json.dumps(failed), events[-3:]
