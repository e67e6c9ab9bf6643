"""What every client library must see, asked by its script in scripts/ in a process of its own."""
import json
import os
import pathlib
import shutil
import subprocess
import time

import install
import pytest

SCRIPTS = pathlib.Path(__file__).parent / "scripts"
CASES = ["chat", "stream", "tools", "cancel", "overflow", "models"]


def model_of(server):
    return server.get("/v1/models").json()["data"][0]["id"]


class Library:
    """A client library: command(script) -> argv. `finishes` are its words for a tool call's, a stop's and a cut's end."""

    def __init__(self, command, script, finishes):
        self.command, self.script, self.finishes = command, script, finishes

    def ask(self, server, case, timeout=600):
        try:
            command = self.command(SCRIPTS / self.script)
        except install.NotInstalled as missing:
            pytest.fail(str(missing))
        env = {"PATH": os.environ["PATH"], "HOME": str(server.home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        done = subprocess.run([*map(str, command), server.url, model_of(server), case], capture_output=True, text=True, env=env,
                              timeout=timeout, cwd=server.home)
        assert done.returncode == 0, f"{self.script} {case}: {done.stderr[-3000:]}"
        return json.loads(done.stdout.strip().splitlines()[-1])

    def check(self, server, case):
        getattr(self, "check_" + case)(server, self.ask(server, case))

    def check_chat(self, server, got):
        call, stop, cut = self.finishes
        assert got["text"] and 1 <= got["tokens"] <= 64 and got["finish"] in (stop, cut)

    def check_stream(self, server, got):
        assert got == self.ask(server, "chat"), "a stream adds up to the answer in one piece"

    def check_tools(self, server, rounds):
        assert len(rounds) == 2
        for got in rounds:
            assert got["name"] == "get_weather" and isinstance(got["arguments"]["city"], str)
            assert got["finish"] == self.finishes[0] and got["id"] and got["answer"]
        assert rounds[0]["arguments"] == rounds[1]["arguments"] and rounds[0]["id"] != rounds[1]["id"]

    def check_cancel(self, server, got):
        deadline = time.monotonic() + 20
        while (rows := server.get("/stats").json()["batch"])["active_rows"] + rows["pending_rows"] or rows["cancelled_rows"] == 0:
            assert time.monotonic() < deadline, f"a client that went away still has a row, or had none: {rows}"
            time.sleep(0.05)

    def check_overflow(self, server, got):
        assert got["status"] == 400
        if got["code"] == "context_length_exceeded":
            assert "maximum context length" in got["message"] and "exceeds the available context" in got["message"]
        else:
            assert got["code"] == "invalid_request_error" and got["message"].startswith("prompt is too long: ")

    def check_models(self, server, ids):
        assert [i.removeprefix("openai/") for i in ids] == [m["id"] for m in server.get("/v1/models").json()["data"]]

    def check_responses(self, server, got):
        assert got["text"] and got["status"] in ("completed", "incomplete") and got["more"]
        kinds = got["kinds"]
        assert kinds[:2] == ["response.created", "response.in_progress"]
        assert kinds[-1] in ("response.completed", "response.incomplete") and "response.output_text.delta" in kinds
        assert got["calls"] and got["calls"][0][0] == "get_weather" and "city" in got["calls"][0][1]

    def check_count(self, server, got):
        used = got["used"]
        assert got["counted"] == used["input_tokens"] + (used["cache_read_input_tokens"] or 0)


OPENAI_WORDS, ANTHROPIC_WORDS = ("tool_calls", "stop", "length"), ("tool_use", "end_turn", "max_tokens")


def python_library(name, script, finishes=OPENAI_WORDS):
    return Library(lambda path: [install.python_of(name), path], script, finishes)


def npm_library(name, script, finishes=OPENAI_WORDS):
    def command(path):
        copy = install.npm_prefix(name) / path.name  # an import looks for packages from the script's folder upwards
        fresh = copy.with_name(f"{os.getpid()}.{copy.name}")
        shutil.copyfile(path, fresh)
        fresh.replace(copy)
        return [install.node(), copy]

    return Library(command, script, finishes)
