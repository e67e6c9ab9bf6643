"""SIGHUP: settings and keys are read again, all of them or none (spec server 54)."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import signal
import time

import pytest
from library_test import REVISION, add, add_broken
from running import Server

SMALL = ("--context", "256", "--batch", "2")
FIRST, SECOND = "key-of-the-first-day-01234", "key-of-the-second-day-56789"


class Reloaded(Server):
    """Its settings file is written by the test."""

    def settings(self, text):
        folder = self.home / "config" / "hearth"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(text)

    def hang_up(self):
        """What is logged in answer to SIGHUP."""
        seen = len(self.log)
        self.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            said = "".join(self.log[seen:])
            if "were read again" in said or "stay as they were" in said:
                time.sleep(0.05)  # a second line may follow
                return "".join(self.log[seen:])
            time.sleep(0.01)
        raise AssertionError(f"nothing was said: {self.log}")


def made(home, model, text, *args):
    server = Reloaded(home, model, *args, env={"XDG_CONFIG_HOME": str(home / "config")})
    server.settings(text)
    return server


@pytest.fixture
def server(tmp_path, model_file):
    with made(tmp_path, model_file("smollm2"), "[serve]\nadmission = \"cap\"\n", *SMALL) as running:
        yield running


def test_what_can_change_changes_and_the_rest_is_named(server):
    assert server.chat("Hi", max_tokens=5000).status == 200
    assert server.request("GET", "/health", headers={"Host": "other.example"}).status == 421
    server.settings('[serve]\nadmission = "strict"\nallow-host = ["other.example"]\nany-model = true\ntemperature = 0.5\n'
                    'metrics-listen = "9"\nserved-model-name = "new"\n')
    said = server.hang_up()
    assert server.chat("Hi", max_tokens=5000).status == 400, "admission is strict now"
    assert server.request("GET", "/health", headers={"Host": "other.example"}).status == 200
    assert server.chat("Hi", model="gpt-4o", max_tokens=2).status == 200, "any model means the default one"
    lines = [line for line in said.splitlines() if "next start" in line]
    assert len(lines) == 1 and "metrics-listen" in lines[0] and "served-model-name" in lines[0], said
    assert "next load on: temperature" in said and "allow-host, any-model, admission" in said, said
    server.settings("")
    server.hang_up()
    assert server.request("GET", "/health", headers={"Host": "other.example"}).status == 421, "and back"


def test_a_flag_of_the_command_line_stays(tmp_path, model_file):
    with made(tmp_path, model_file("smollm2"), "", *SMALL, "--admission", "strict") as server:
        server.settings('[serve]\nadmission = "cap"\n')
        assert "admission" not in server.hang_up()
        assert server.chat("Hi", max_tokens=5000).status == 400


@pytest.mark.parametrize("text, why", [
    ('[serve]\nadmission = "strict"\nttl = "soon"\n', "config.toml:3: ttl"),
    ("[serve]\nadmission = strict\n", "config.toml:2"),
    ('[serve]\nadmission = "strict"\ndemote-idle = 5\n', "--disk-cache"),
    ('[serve]\nadmission = "strict"\napi-key-file = "/nowhere/keys"\n', "/nowhere/keys"),
    ('[serve]\nadmission = "strict"\nmetrics-listen = "here"\n', "--metrics-listen is 'here'"),
])
def test_a_broken_file_changes_nothing_and_says_why(server, text, why):
    server.settings(text)
    said = server.hang_up()
    assert "settings and keys stay as they were" in said and why in said, said
    assert server.chat("Hi", max_tokens=5000).status == 200, "admission is still cap"


def hub_of(home, model):
    """A store with one file under two names."""
    for name in ("org/one", "org/two"):
        add(home / "hub", name, model)
    return {"HF_HUB_CACHE": str(home / "hub"), "XDG_CONFIG_HOME": str(home / "config")}


def test_settings_of_models_change_all_or_none(tmp_path, model_file):
    env = hub_of(tmp_path, model_file("smollm2"))
    with Reloaded(tmp_path, model_file("smollm2"), *SMALL, env=env) as server:
        def models(text):
            folder = tmp_path / "config" / "hearth"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "models.toml").write_text(text)
            return server.hang_up()

        def meaning(name):
            answer = server.get("/v1/models/" + name)
            return answer.json()["id"] if answer.status == 200 else answer.status

        assert "stay as" not in models('work = "org/one"\n["org/two"]\ntemperature = 0.5\n')
        assert meaning("work") == "org/one"
        for text, words in [
            ('work = "org/one"\n["org/two"]\nalias = "work"\n', ["alias work", "org/one", "org/two"]),
            ('other = "org/two"\n["org/one"]\nalias = "org/two"\n', ["alias org/two", "org/one"]),
            ('other = "org/two"\n["org/one"]\nno-such = 1\n', ["no-such"]),
        ]:
            said = models(text)
            assert "stay as they were" in said and all(word in said for word in words), said
            assert (meaning("work"), meaning("other"), meaning("org%2Ftwo")) == ("org/one", 404, "org/two"), "the old ones hold"
        assert "stay as" not in models('work = "org/two"\n["org/two"]\npinned = true\nmax_tokens = 3\n')
        assert meaning("work") == "org/two"
        answer = server.post("/v1/chat/completions", {"model": "work", "messages": [{"role": "user", "content": "Hi"}]})
        assert answer.status == 200 and answer.json()["usage"]["completion_tokens"] <= 3, "from its next load on"
        loaded = server.get("/api/ps", headers={"Authorization": "Bearer " + server.token()}).json()["models"]
        assert {m["model"]: m["pinned"] for m in loaded}["org/two"]


def test_a_model_is_loaded_with_the_settings_of_its_day(server):
    assert server.get("/stats").json()["batch"]["configured"] == 2
    server.args = [a for a in server.args if a not in ("--batch", "2")]
    server.stop()
    server.settings("[serve]\nbatch = 3\n")
    server.start()
    server.settings("[serve]\nbatch = 5\n")
    server.hang_up()
    assert server.get("/stats").json()["batch"]["configured"] == 3
    name = server.get("/v1/models").json()["data"][0]["id"]
    control = {"Authorization": "Bearer " + server.token()}
    assert server.post("/api/models/unload", {"model": name}, headers=control).status == 200
    deadline = time.monotonic() + 30
    while json.loads(server.get("/v1/models").body)["data"][0]["resident"] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.chat("Hi", max_tokens=2).status == 200
    assert server.get("/stats").json()["batch"]["configured"] == 5


def test_keys_may_come_and_go_in_the_settings(tmp_path, model_file):
    with made(tmp_path, model_file("smollm2"), f'[serve]\napi-key = ["{FIRST}"]\n', *SMALL) as server:
        def status(key):
            return server.get("/v1/models", headers={"x-api-key": key}).status

        assert status(FIRST) == 200 and status(SECOND) == 401
        server.settings(f'[serve]\napi-key = ["{SECOND}"]\n')
        said = server.hang_up()
        assert status(FIRST) == 401 and status(SECOND) == 200
        assert "api-key" in said and SECOND not in said and FIRST not in said, said


def test_a_server_that_others_reach_is_never_left_without_a_key(tmp_path, model_file):
    with made(tmp_path, model_file("smollm2"), f'[serve]\napi-key = ["{FIRST}"]\n', *SMALL, "--host", "0.0.0.0") as server:
        server.host = "127.0.0.1"
        server.settings("")
        said = server.hang_up()
        assert "stay as they were" in said and "there is no key" in said, said
        assert server.get("/v1/models").status == 401 and server.get("/v1/models", headers={"x-api-key": FIRST}).status == 200


def test_the_numerics_that_answers_name_are_those_they_have(server):
    """They hold until the server ends: a model that is loaded behind a reload has them too."""
    server.settings('[serve]\nnumerics = "fast"\n')
    assert "numerics" in [w for line in server.hang_up().splitlines() if "next start" in line for w in line.replace(",", " ").split()]
    name = server.get("/v1/models").json()["data"][0]["id"]
    control = {"Authorization": "Bearer " + server.token()}
    server.post("/api/models/unload", {"model": name}, headers=control)
    deadline = time.monotonic() + 30
    while server.get("/v1/models").json()["data"][0]["resident"] and time.monotonic() < deadline:
        time.sleep(0.02)
    answer = server.chat("Hi", max_tokens=2)
    assert answer.status == 200 and answer.headers["hearth-numerics"] == "deterministic"
    (worker,) = server.workers()
    assert b"fast" not in open(f"/proc/{worker}/cmdline", "rb").read()


def test_a_signal_while_headers_are_read_is_heard_behind_them(tmp_path, model_file):
    cache = tmp_path / "hub"
    for name in ("org/one", "org/two"):  # one alone is not looked at
        add(cache, name, model_file("smollm2"))
    folders = {"HF_HUB_CACHE": str(cache), "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}
    server = Reloaded(tmp_path, *SMALL, env=folders)
    server.settings("")
    with concurrent.futures.ThreadPoolExecutor(1) as starter:
        start = starter.submit(server.start)
        try:
            reader = None
            while reader is None:
                assert not start.done(), start.result()
                for pid in server.workers() if server.process else []:
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # readers come and go
                        if b"\0headers\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                            os.kill(pid, signal.SIGSTOP)
                            reader = pid
            server.settings("[serve]\nany-model = true\n")
            server.process.send_signal(signal.SIGHUP)
            while int(re.search(r"ShdPnd:\s*(\w+)", pathlib.Path(f"/proc/{server.process.pid}/status").read_text())[1], 16):
                time.sleep(0.01)  # it is not taken yet
            os.kill(reader, signal.SIGCONT)
            start.result()
            assert server.chat("Hi", model="gpt-4o", max_tokens=2).status == 200, "any model means the default one"
            said = "".join(server.log)
            assert "were read again; other than at the start: any-model" in said, said
        finally:
            server.stop()


def test_another_default_model_takes_over(tmp_path, model_file):
    cache = tmp_path / "hub"
    for name in ("org/one", "org/two"):
        add(cache, name, model_file("smollm2"))
    add_broken(cache, "org/broken", b"GGUF" + bytes(64))
    folders = {"HF_HUB_CACHE": str(cache), "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}
    file = tmp_path / "config" / "hearth" / "models.toml"

    def mark(name):
        file.write_text(f'["{name}"]\ndefault = true\n')

    def default(server):
        return server.chat("Hi", max_tokens=2).json()["model"]

    server = Reloaded(tmp_path, *SMALL, env=folders)
    server.settings("")
    mark("org/one")
    with server:
        assert default(server) == "org/one"
        mark("org/two")
        assert "the default model is org/two now" in server.hang_up()
        assert default(server) == "org/two"
        pinned = {m["model"]: m["pinned"] for m in server.get("/api/ps", headers={"Authorization": "Bearer " + server.token()}).json()["models"]}
        assert pinned == {"org/one": False, "org/two": True}
        mark("org/broken")
        said = server.hang_up()
        assert "org/broken is the default of models.toml and cannot be served" in said and "org/two stays" in said, said
        assert default(server) == "org/two"
        # A newer revision of a model that was asked for already: the rest of the reload is taken over.
        assert server.chat("Hi", model="org/one", max_tokens=2).status == 200
        snapshots = cache / "models--org--one" / "snapshots"
        (snapshots / REVISION).rename(snapshots / ("f" * 40))
        mark("org/one")
        said = server.hang_up()
        assert "cannot be served: org/one: until its next start this server means" in said and "were read again" in said, said
        assert default(server) == "org/two"
        (snapshots / ("f" * 40)).rename(snapshots / REVISION)
        file.write_text("")
        server.hang_up()
        assert default(server) == "org/two", "where none is marked, the one at hand stays"
    mark("org/one")
    with Reloaded(tmp_path, "org/two", *SMALL, env=folders) as named:
        assert "default model is" not in named.hang_up() and default(named) == "org/two", "the command line wins"
    with Reloaded(tmp_path, "--served-model-name", "mine", *SMALL, env=folders) as called:
        mark("org/two")
        assert "not before the server's next start: default of models.toml" in called.hang_up()
        assert default(called) == "mine"
