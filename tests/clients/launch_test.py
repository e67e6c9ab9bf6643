"""Agents started by `hearth launch`: the programs as they are, headless, told of the server by hearth alone."""
import json
import shlex

import agent
import install
import pytest
from running import BINARY, Server

HEADLESS = {
    "claude": ["-p", "--output-format", "json", "--tools", "Read", "--max-turns", "1", "--system-prompt", "Be brief."],
    "codex": ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"],
    "pi": ["-p", "--mode", "json", "--offline", "-ns", "-t", "read"],
}
COMMANDS = {"claude": lambda: [install.claude()], "codex": install.codex, "pi": install.pi}
KEY = "!a-$key${of}-$$4711"  # of characters that pi reads as commands and variables where they stand in its settings


def launched(server, name, scratch, program=None, **env):
    """Standard output of `hearth launch NAME ...` where the agent is on PATH and knows nothing of the server."""
    folder = scratch[1].parent / "bin"
    folder.mkdir()
    words = agent.command_of(program or COMMANDS[name])
    (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
    (folder / name).chmod(0o755)
    pi = scratch[0] / ".pi" / "agent"
    pi.mkdir(parents=True)
    (pi / "settings.json").write_text('{"compaction": {"enabled": false}}')  # it would sum up one turn after the other
    env = {"PATH": f"{folder}:/usr/bin:/bin", "XDG_RUNTIME_DIR": server.env["XDG_RUNTIME_DIR"], "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32", **env}
    done = agent.run([BINARY, "launch", name, *HEADLESS[name], "Say hello."], scratch, env)
    assert done.stdout.strip(), done.stderr[-2000:]
    return done.stdout


def asked(server, name, scratch):
    rows = server.get("/stats").json()["batch"]["submitted_rows"]
    out = launched(server, name, scratch)
    assert server.get("/stats").json()["batch"]["submitted_rows"] > rows
    return out


@pytest.mark.full
def test_claude(small, scratch):
    result = json.loads(asked(small, "claude", scratch).strip().splitlines()[-1])
    assert result["subtype"] in ("success", "error_max_turns") and not result.get("api_error_status"), result
    assert list(result["modelUsage"]) == [agent.model_of(small)], "every model that it asks for is the server's"


@pytest.mark.full
def test_codex(small, scratch):
    events = [json.loads(line) for line in asked(small, "codex", scratch).splitlines() if line.startswith("{")]
    assert agent.codex_ended_well(events), events[-3:]


def check_pi(out, model):
    ends = [json.loads(line) for line in out.splitlines() if '"message_end"' in line]
    said = [e["message"] for e in ends if e["message"]["role"] == "assistant"]
    assert said and all(m["stopReason"] in ("stop", "length", "toolUse") for m in said), said
    assert {m["model"] for m in said} == {model}


@pytest.mark.full
def test_pi(small, scratch):
    check_pi(asked(small, "pi", scratch), agent.model_of(small))


@pytest.mark.full
@pytest.mark.parametrize("version", ["pi", "pi-now"])
def test_pi_sends_the_key_of_the_environment(tmp_path, model_file, scratch, version):
    keys = tmp_path / "keys"
    keys.write_text(KEY + "\n")
    keys.chmod(0o600)
    with Server(tmp_path, model_file("smollm2"), "--context", "8192", "--max-tokens", "32", "--api-key-file", keys) as server:
        model = server.get("/v1/models", headers={"Authorization": f"Bearer {KEY}"}).json()["data"][0]["id"]
        check_pi(launched(server, "pi", scratch, lambda: install.pi(version), HEARTH_API_KEY=KEY), model)
