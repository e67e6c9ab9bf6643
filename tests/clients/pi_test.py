"""@mariozechner/pi-coding-agent, one-shot, with its openai-completions provider."""
import json

import agent
import pytest
from running import Server

ROUTE = "/v1/chat/completions"


def said(done):
    """The assistant's messages of a session, in order."""
    assert done.returncode == 0, done.stderr[-2000:]
    ends = [json.loads(line) for line in done.stdout.splitlines() if '"message_end"' in line]
    return [e["message"] for e in ends if e["message"]["role"] == "assistant"]


@pytest.mark.full
def test_one_shot_with_an_edit(coder, scratch):
    with agent.Watched(coder) as watched:
        done = agent.pi(watched.url, watched.model, scratch, 16384)
        calls = watched.check(ROUTE)
    assert all(c["body"]["stream"] for c in calls)
    messages = said(done)
    assert messages and all(m["stopReason"] in ("stop", "length", "toolUse") for m in messages), messages


@pytest.mark.full
def test_overflow_is_told(served, scratch):
    with agent.Watched(served) as watched:
        done = agent.pi(watched.url, watched.model, scratch, 2048, prompt="word " * 20000)
        assert 400 in {c["status"] for c in watched.calls(ROUTE)}
    assert "maximum context length" in done.stdout + done.stderr


@pytest.mark.full
def test_overflow_makes_it_compact(tmp_path, model_file, scratch):
    """The words of the refusal are those that it looks for: it has the talk summed up."""
    settings = {"enabled": True, "reserveTokens": 256, "keepRecentTokens": 64}
    with Server(tmp_path, model_file("smollm2"), "--context", "4096", "--max-tokens", "64") as server, agent.Watched(server) as watched:
        asked = (watched.url, watched.model, scratch, 100_000)  # it believes in more room than there is
        said(agent.pi(*asked, prompt="word " * 1500, compaction=settings))
        before = len(watched.calls(ROUTE))
        done = agent.pi(*asked, "--continue", prompt="Again: " + "word " * 1500, compaction=settings)
        first, *summaries = watched.calls(ROUTE)[before:]
    assert done.returncode == 0, done.stderr[-2000:]
    assert first["status"] == 400
    starts = [json.loads(line)["reason"] for line in done.stdout.splitlines() if '"compaction_start"' in line]
    assert starts == ["overflow"], starts  # its end is not told by a one-shot run
    assert summaries[0]["status"] == 200 and not summaries[0]["body"].get("tools")
