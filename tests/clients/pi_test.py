"""@mariozechner/pi-coding-agent, one-shot, with its openai-completions provider."""
import json

import agent
import pytest


@pytest.mark.full
def test_one_shot_with_an_edit(coder, scratch):
    with agent.Watched(coder) as watched:
        done = agent.pi(watched.url, watched.model, scratch, 16384)
        calls = watched.check("/v1/chat/completions")
    assert done.returncode == 0, done.stderr[-2000:]
    assert all(c["body"]["stream"] for c in calls)
    ends = [json.loads(line) for line in done.stdout.splitlines() if '"message_end"' in line]
    said = [e["message"] for e in ends if e["message"]["role"] == "assistant"]
    assert said and all(m["stopReason"] in ("stop", "length", "toolUse") for m in said), said


@pytest.mark.full
def test_overflow_is_told(served, scratch):
    with agent.Watched(served) as watched:
        done = agent.pi(watched.url, watched.model, scratch, 2048, prompt="word " * 20000)
        assert 400 in {c["status"] for c in watched.calls("/v1/chat/completions")}
    assert "maximum context length" in done.stdout + done.stderr
