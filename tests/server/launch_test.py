"""`hearth launch`: what a client on PATH is given, without any client installed."""
import json
import pathlib
import subprocess

import pytest
from running import BINARY, Server

KEY = "key-for-launch-4711"
FAKE = """#!/bin/sh
printf '%s\\n' "$0" "$@" > "$HOME/argv"
env > "$HOME/seen"
exit 7
"""


@pytest.fixture
def clients(tmp_path):
    """A folder with the four programs; each writes its arguments and environment and ends with 7."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("claude", "codex", "opencode", "pi"):
        (folder / name).write_text(FAKE)
        (folder / name).chmod(0o755)
    return folder


def launch(server, *args, path, env=None):
    environment = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(server.home), "XDG_RUNTIME_DIR": server.env["XDG_RUNTIME_DIR"],
                   "XDG_CONFIG_HOME": str(server.home / "config"), **(env or {})}
    for name in ("argv", "seen"):
        (server.home / name).unlink(missing_ok=True)
    return subprocess.run([BINARY, "launch", *args], env=environment, text=True, capture_output=True, timeout=60, cwd=server.home)


def seen(server):
    argv = (server.home / "argv").read_text().splitlines()
    env = dict(line.split("=", 1) for line in (server.home / "seen").read_text().splitlines() if "=" in line)
    return argv[1:], env


def files_of(home):
    return {p for p in home.rglob("*") if p.is_file() and "run" not in p.relative_to(home).parts[:1]} - {home / "argv", home / "seen"}


def test_each_client_gets_address_key_and_model(server, clients):
    model = server.get("/v1/models").json()["data"][0]["id"]
    before = files_of(server.home)
    for name in ("claude", "codex", "opencode", "pi"):
        done = launch(server, name, "-p", "--print", "two words", path=clients, env={"ANTHROPIC_API_KEY": "of another service"})
        assert done.returncode == 7, (name, done.stderr)
        argv, env = seen(server)
        assert argv[-3:] == ["-p", "--print", "two words"], argv
        told = "\n".join([*argv, *(f"{k}={v}" for k, v in env.items())])
        if name == "pi":
            extension = pathlib.Path(argv[argv.index("--extension") + 1])
            assert extension.stat().st_mode & 0o777 == 0o600
            told += extension.read_text()
        assert server.url in told and model in told, told
        assert server.token() not in told, "a client is given no control over the server"
        if name == "claude":
            assert env["ANTHROPIC_BASE_URL"] == server.url and "ANTHROPIC_API_KEY" not in env
            assert env["ANTHROPIC_MODEL"] == env["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == model
        else:
            assert env["HEARTH_API_KEY"]
        if name == "opencode":
            assert json.loads(env["OPENCODE_CONFIG_CONTENT"])["model"] == f"hearth/{model}"
        assert "context of" in done.stderr, "2048 positions are too few for each of them"
    assert files_of(server.home) == before, "nothing is written but in the run folder"


def test_print_shows_what_would_be_done(server, clients):
    done = launch(server, "--print", "claude", "-p", "it's", path=clients)
    assert done.returncode == 0 and not (server.home / "argv").exists(), done.stderr
    shown = subprocess.run(["sh", "-c", done.stdout.rsplit("\n", 2)[0] + "\nenv"], text=True, capture_output=True, check=True).stdout
    assert f"ANTHROPIC_BASE_URL={server.url}\n" in shown
    assert done.stdout.endswith("'claude' '-p' 'it'\\''s'\n")
    document = json.loads(launch(server, "--json", "codex", "exec", path=clients).stdout)
    assert document["command"][0] == "codex" and document["command"][-1] == "exec" and document["set"]["HEARTH_API_KEY"]


def test_what_is_missing_is_told_with_the_command_to_type(server, clients, tmp_path, model_file):
    absent = launch(server, "pi", path=tmp_path / "nowhere")
    assert absent.returncode == 3 and "npm install" in absent.stderr, absent.stderr
    unknown = launch(server, "cloude", path=clients)
    assert unknown.returncode == 2 and "did you mean claude?" in unknown.stderr, unknown.stderr
    model = launch(server, "--model", "no such model", "claude", path=clients)
    assert model.returncode == 3 and "no such model" in model.stderr, model.stderr
    idle = Server(tmp_path / "idle", model_file("smollm2"))
    idle.home.mkdir()
    alone = launch(idle, "claude", path=clients)
    assert alone.returncode == 3 and "hearth serve" in alone.stderr, alone.stderr


def test_a_key_is_passed_on_and_checked_first(tmp_path, clients, model_file):
    keys = tmp_path / "keys"
    keys.write_text(KEY + "\n")
    keys.chmod(0o600)
    home = tmp_path / "home"
    home.mkdir()
    with Server(home, model_file("smollm2"), "--context", "256", "--batch", "1", "--api-key-file", keys) as server:
        none = launch(server, "codex", path=clients)
        assert none.returncode == 2 and "HEARTH_API_KEY=KEY hearth launch codex" in none.stderr, none.stderr
        wrong = launch(server, "codex", path=clients, env={"HEARTH_API_KEY": "x"})
        assert wrong.returncode == 2 and "does not know the key" in wrong.stderr, wrong.stderr
        assert launch(server, "codex", path=clients, env={"HEARTH_API_KEY": KEY}).returncode == 7
        argv, env = seen(server)
        assert env["HEARTH_API_KEY"] == KEY and KEY not in " ".join(argv)
    socket = Server(home, model_file("smollm2"), "--context", "256", "--batch", "1", "--host", home / "socket")
    with socket as server:
        told = launch(server, "claude", path=clients)
        assert told.returncode == 2 and "--port" in told.stderr, told.stderr
