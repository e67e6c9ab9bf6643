"""`hearth launch`: what a client on PATH is given, without any client installed."""
import json
import pathlib
import re
import subprocess

import pytest
from running import BINARY, Server

KEY = "key-for-launch-4711"
ODD_KEY = "!a-$key${of}-$$4711"
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


def test_pi_of_any_version_finds_the_key(tmp_path, clients, model_file):
    """Old ones look for a variable that is called as "apiKey" says, later ones put variables in place of $NAME in it."""
    keys = tmp_path / "keys"
    keys.write_text(ODD_KEY + "\n")
    keys.chmod(0o600)
    home = tmp_path / "home"
    home.mkdir()
    with Server(home, model_file("smollm2"), "--context", "256", "--batch", "1", "--api-key-file", keys) as server:
        assert launch(server, "pi", path=clients, env={"HEARTH_API_KEY": ODD_KEY}).returncode == 7
        argv, env = seen(server)
        extension = pathlib.Path(argv[argv.index("--extension") + 1]).read_text()
        assert ODD_KEY not in extension
        first, second = extension.splitlines()
        name, value = re.fullmatch(r'process\.env\["(.+?)"\] = process\.env\["(.+?)"\];', first).groups()
        env[name] = env[value]
        provider = json.loads(re.fullmatch(r'export default \(pi\) => pi\.registerProvider\("hearth", (.*)\);', second).group(1))
        old = env.get(provider["apiKey"], provider["apiKey"])
        new = re.sub(r"\$(\w+)", lambda m: env[m.group(1)], provider["apiKey"])
        for key in (old, new):
            assert server.get("/v1/models", headers={"Authorization": f"Bearer {key}"}).status == 200, key


# --- a client that is missing ---

NPM = """#!/bin/sh
printf '%s\\n' "$@" > "$HOME/npm-argv"
while [ $# -gt 1 ]; do
  if [ "$1" = --prefix ]; then folder=$2; fi
  shift
done
echo "added 1 package"
mkdir -p "$folder/node_modules/.bin"
cp "$HOME/fake-client" "$folder/node_modules/.bin/claude"
"""
OFFLINE = """#!/bin/sh
echo "npm error code ENOTFOUND" >&2
echo "npm error network request to https://registry.npmjs.org/x failed" >&2
exit 1
"""
FULL = """#!/bin/sh
echo "npm error code ENOSPC" >&2
exit 228
"""


@pytest.fixture
def shop(server, tmp_path):
    """shop(script): a PATH on which npm is that script, and no client."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (server.home / "fake-client").write_text(FAKE)
    (server.home / "fake-client").chmod(0o755)

    def stock(script):
        (folder / "npm").write_text(script)
        (folder / "npm").chmod(0o755)
        return folder

    yield stock
    for name in ("claude", "pi"):
        launch(server, "--remove", name, path=folder)
    (server.home / "fake-client").unlink()
    (server.home / "npm-argv").unlink(missing_ok=True)


def ours(server):
    return server.home / ".local" / "share" / "hearth" / "clients"


def test_a_missing_client_is_installed_into_our_folder(server, shop):
    path = shop(NPM)
    missing = launch(server, "claude", path=path)
    assert missing.returncode == 3 and "hearth launch --install claude" in missing.stderr and not ours(server).exists(), missing.stderr
    done = launch(server, "--install", "claude", "-p", "hi", path=path)
    assert done.returncode == 7, done.stderr
    assert f"npm install --prefix {ours(server) / 'claude'}" in done.stderr and "@anthropic-ai/claude-code" in done.stderr
    told = (server.home / "npm-argv").read_text().splitlines()
    assert told[:3] == ["install", "--prefix", str(ours(server) / "claude")] and told[-1] == "@anthropic-ai/claude-code"
    assert seen(server)[0] == ["-p", "hi"]
    (server.home / "npm-argv").unlink()
    again = launch(server, "--install", "claude", path=path)
    assert again.returncode == 7 and not (server.home / "npm-argv").exists(), "it is there"
    assert launch(server, "claude", path=path).returncode == 7, "and found without the flag"
    removed = launch(server, "--remove", "claude", path=path)
    assert removed.returncode == 0 and not (ours(server) / "claude").exists(), removed.stderr
    assert launch(server, "--remove", "claude", path=path).returncode == 3
    assert launch(server, "--remove", "--install", "claude", path=path).returncode == 2


def test_an_installed_client_of_the_person_is_taken_first(server, shop, clients):
    shop(NPM)
    done = launch(server, "--install", "claude", path=f"{clients}:{shop(NPM)}")
    assert done.returncode == 7 and not (server.home / "npm-argv").exists()
    assert (server.home / "argv").read_text().splitlines()[0] == str(clients / "claude")


def test_print_installs_nothing_and_says_what_it_would(server, shop):
    path = shop(NPM)
    done = launch(server, "--install", "--print", "pi", path=path)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and not (server.home / "npm-argv").exists(), done.stderr
    assert "'install' '--prefix'" in lines[0] and "'--ignore-scripts'" in lines[0], lines
    assert lines[-1].startswith(f"'{ours(server) / 'pi' / 'node_modules' / '.bin' / 'pi'}' ")
    document = json.loads(launch(server, "--install", "--json", "claude", path=path).stdout)
    assert document["install"][1] == "install" and document["install"][-1] == "@anthropic-ai/claude-code"


@pytest.mark.parametrize("script, code, words", [
    (OFFLINE, 1, "npm's registry cannot be reached"), (FULL, 1, "exit code 228): npm error code ENOSPC"),
    ("#!/bin/sh\nexit 0\n", 1, "there is no program"), (None, 3, "npm, which installs claude, is not on PATH"),
])
def test_what_hinders_an_installation_is_told(server, shop, tmp_path, script, code, words):
    path = shop(script) if script else tmp_path / "nowhere"
    done = launch(server, "--install", "claude", path=path, env=None if script else {"PATH": str(path)})
    assert done.returncode == code and words in done.stderr, done.stderr
    assert not (server.home / "argv").exists()


# --- the page ---

def test_web_opens_the_page(server, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("xdg-open", "firefox"):
        (folder / name).write_text(FAKE)
        (folder / name).chmod(0o755)
    assert launch(server, "web", path=folder).returncode == 7
    assert (server.home / "argv").read_text().splitlines() == [str(folder / "xdg-open"), server.url + "/"]
    for browser in ("firefox", str(folder / "firefox")):
        assert launch(server, "web", path=folder, env={"BROWSER": browser}).returncode == 7
        assert (server.home / "argv").read_text().splitlines() == [str(folder / "firefox"), server.url + "/"]
    shown = launch(server, "--print", "web", path=folder)
    assert shown.stdout == f"'{folder / 'xdg-open'}' '{server.url}/'\n", shown.stderr
    for more in (("--model", "x", "web"), ("--install", "web"), ("web", "two")):
        assert launch(server, *more, path=folder).returncode == 2, more


def test_web_without_a_browser_names_the_address(server, tmp_path):
    done = launch(server, "web", path=tmp_path, env={"PATH": str(tmp_path)})
    assert done.returncode == 3 and f"open {server.url}/ yourself" in done.stderr, done.stderr


def test_flags_and_environment_name_model_and_key(server, clients):
    model = server.get("/v1/models").json()["data"][0]["id"]
    done = launch(server, "--model", model, "--api-key", KEY, "codex", path=clients)
    assert done.returncode == 7, done.stderr
    argv, env = seen(server)
    assert f'model="{model}"' in argv and env["HEARTH_API_KEY"] == KEY and KEY not in " ".join(argv)
