"""@anthropic-ai/claude-code, headless, with the tools Read and Edit on a scratch folder."""
import json

import agent
import library
import pytest


def result_of(done):
    assert done.stdout.strip(), done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.full
def test_one_shot_with_an_edit(coder, scratch):
    """Protocol errors end a session with is_error and a status of the API; a wrong word of the model does not."""
    with agent.Watched(coder) as watched:
        done = agent.claude(watched.url, watched.model, scratch)
        result = result_of(done)
        calls = watched.check("/v1/messages")
    assert result["subtype"] in ("success", "error_max_turns"), result
    assert not result.get("api_error_status"), result
    assert any(c["path"].endswith("?beta=true") and c["body"].get("stream") for c in calls)
    if '"Goodbye' in (scratch[1] / "greet.py").read_text():  # the model did as it was told
        assert any(b["type"] == "tool_result" for m in calls[-1]["body"]["messages"] for b in m["content"] if isinstance(b, dict))


@pytest.mark.full
def test_a_second_turn_goes_on(small, scratch):
    with agent.Watched(small) as watched:
        result_of(agent.claude(watched.url, watched.model, scratch, prompt="Say hello."))
        result_of(agent.claude(watched.url, watched.model, scratch, "--continue", prompt="Say it again."))
        calls = watched.check("/v1/messages")
    assert len(calls[-1]["body"]["messages"]) >= 3


@pytest.mark.full
def test_overflow_is_told_in_its_words(served, scratch):
    with agent.Watched(served) as watched:
        result = result_of(agent.claude(watched.url, watched.model, scratch, prompt="word " * 20000))
        assert {c["status"] for c in watched.calls("/v1/messages")} == {400}
    assert "prompt is too long" in result["result"].lower(), result


@pytest.mark.full
def test_a_killed_session_frees_its_rows(small, scratch):
    with agent.Watched(small) as watched:
        begun = lambda: small.get("/stats").json()["batch"]["active_rows"]
        agent.claude(watched.url, watched.model, scratch, prompt="Tell a very long story.", kill_after=begun)
        assert watched.calls("/v1/messages")
    library.Library(None, "claude-code", library.ANTHROPIC_WORDS).check_cancel(small, {})
