"""Coding agents as one-shot programs: their settings for a server on loopback, and what must hold whatever the model says."""
import contextlib
import json
import os
import signal
import subprocess
import time

import install
import pytest
from library import model_of
from record import Recorder

TASK = 'Use the edit tool to change "Hello" to "Goodbye" in greet.py.'
TURNS_MAX, TOKENS_MAX = 3, 160  # a small model would go on and on


def command_of(make):
    """What starts the agent; a client that cannot be installed fails the test by the package's name."""
    try:
        return make()
    except install.NotInstalled as missing:
        pytest.fail(str(missing))


def run(command, scratch, env, timeout=1500, kill_after=None, stdin=os.devnull):
    """The agent to its end; or, with kill_after, killed a second after that says yes, with all that it has started."""
    home, project = scratch
    everything = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", **env}
    with open(stdin) as words:
        started = subprocess.Popen([str(c) for c in command], cwd=project, env=everything, stdin=words, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        if kill_after is not None:
            deadline = time.monotonic() + timeout
            while not kill_after() and started.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(1)
            with contextlib.suppress(ProcessLookupError):  # it ended by itself
                os.killpg(started.pid, signal.SIGKILL)
        out, err = started.communicate(timeout=timeout)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
    return subprocess.CompletedProcess(command, started.returncode, out, err)


def claude(server_url, model, scratch, *flags, prompt=TASK, kill_after=None):
    env = {
        "ANTHROPIC_BASE_URL": server_url, "ANTHROPIC_AUTH_TOKEN": "any", "ANTHROPIC_MODEL": model, "DISABLE_AUTOUPDATER": "1",
        "ANTHROPIC_SMALL_FAST_MODEL": model, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(TOKENS_MAX),
    }  # fmt: skip
    command = [command_of(install.claude), "-p", "--output-format", "json", "--tools", "Read,Edit", "--max-turns", TURNS_MAX]
    command += ["--permission-mode", "acceptEdits", "--system-prompt", "You edit files with the Edit tool.", *flags]
    prompt_file = scratch[1].parent / "prompt.txt"  # a long one does not fit an argument
    prompt_file.write_text(prompt)
    return run(command, scratch, env, kill_after=kill_after, stdin=prompt_file)


def codex(server_url, model, scratch, prompt=TASK, kill_after=None):
    folder = scratch[0] / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        f'model = "{model}"\nmodel_provider = "hearth"\n[model_providers.hearth]\nname = "hearth"\nbase_url = "{server_url}/v1"\n'
        'wire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
    )
    command = [*command_of(install.codex), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"]
    return run([*command, prompt], scratch, {"CODEX_HOME": str(folder)}, kill_after=kill_after)


def codex_ended_well(events):
    """A turn that is done; or one that the server's --max-tokens cut, which Codex calls failed."""
    failed = [e["error"]["message"] for e in events if e["type"] == "turn.failed"]
    if failed:
        return all("reason: max_output_tokens" in message for message in failed)
    return any(e["type"] == "turn.completed" for e in events)


def pi(server_url, model, scratch, context, *flags, prompt=TASK, compaction=None):
    """compaction: its settings for that; None: off, since its defaults keep 16,384 tokens free, more than these servers have."""
    folder = scratch[0] / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    known = {"id": model, "contextWindow": context, "maxTokens": TOKENS_MAX}
    provider = {"baseUrl": server_url + "/v1", "api": "openai-completions", "apiKey": "any", "models": [known]}
    (folder / "models.json").write_text(json.dumps({"providers": {"hearth": provider}}))
    (folder / "settings.json").write_text(json.dumps({"compaction": compaction or {"enabled": False}}))
    command = [*command_of(install.pi), "-p", "--provider", "hearth", "--model", model, "--mode", "json", "--offline", "-ns"]
    return run([*command, "-t", "read,edit", *flags, prompt], scratch, {})


class Watched:
    """A recording proxy before the server, for the length of a test."""

    def __init__(self, server):
        self.server, self.model = server, model_of(server)

    def __enter__(self):
        self.recorder = Recorder(self.server.url)
        self.url = self.recorder.url
        return self

    def __exit__(self, *_):
        self.recorder.close()

    def calls(self, route):
        return [c for c in self.recorder.calls if c["path"].split("?")[0] == route]

    def check(self, route):
        """The agent asked by this route, with tools, and every such request was answered."""
        calls = self.calls(route)
        calls = [c for c in calls if "status" in c]  # not one that its client was killed over
        assert calls, f"no request to {route}: {[c['path'] for c in self.recorder.calls]}"
        assert all(c["status"] == 200 for c in calls), [(c["path"], c["status"]) for c in calls]
        assert any(c["body"].get("tools") for c in calls)
        return calls
