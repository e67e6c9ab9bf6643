"""POST /api/models/load, unload, pin and GET /api/ps, GET /version: the pool of models as a person drives it."""
import json
import shutil
import subprocess
import threading
import time

import pytest
from running import BINARY, Server

FIRST, SECOND = "toys/first", "toys/second"


@pytest.fixture(scope="module")
def pool(tmp_path_factory, model_file):
    """A server whose store holds one file under two names; the first is its default model."""
    home = tmp_path_factory.mktemp("pool")
    store = home / "hub"
    for name in (FIRST, SECOND):
        snapshot = store / f"models--{name.replace('/', '--')}" / "snapshots" / "1"
        snapshot.mkdir(parents=True)
        shutil.copy(model_file("smollm2"), snapshot / "model.gguf")
        refs = snapshot.parents[1] / "refs"
        refs.mkdir()
        (refs / "main").write_text("1")
    with Server(home, FIRST, "--context", "512", "--ttl", "1h", env={"HF_HUB_CACHE": str(store)}) as running:
        yield running


def control(server, path, body=None):
    headers = {"Authorization": f"Bearer {server.token()}"}
    return server.get(path, headers=headers) if body is None else server.post(path, body, headers=headers)


def states(server):
    return {m["model"]: m["state"] for m in control(server, "/api/ps").json()["models"]}


def until(server, wanted):
    deadline = time.monotonic() + 60
    while states(server) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    assert states(server) == wanted


def test_a_model_is_loaded_used_and_unloaded(pool):
    assert states(pool) == {FIRST: "ready"}
    loaded = control(pool, "/api/models/load", {"model": "second"})
    assert (loaded.status, loaded.json()) == (200, {"model": SECOND, "state": "ready"})
    assert states(pool) == {FIRST: "ready", SECOND: "ready"} and len(pool.workers()) == 2
    first, second = (pool.chat(model=name).json() for name in (FIRST, SECOND))
    assert first["choices"][0]["message"] == second["choices"][0]["message"] and second["model"] == SECOND
    assert control(pool, "/api/models/unload", {"model": SECOND}).status == 200
    until(pool, {FIRST: "ready"})
    assert pool.chat(model="second").json()["model"] == SECOND, "a request brings it back"
    control(pool, "/api/models/unload", {"model": SECOND})
    until(pool, {FIRST: "ready"})


def test_an_unloaded_model_finishes_what_it_has_begun(pool):
    control(pool, "/api/models/load", {"model": SECOND})
    answers = []
    asking = threading.Thread(target=lambda: answers.append(pool.chat(model=SECOND, max_tokens=96, logit_bias={"2": -100, "0": -100})))
    asking.start()
    while not any(m["model"] == SECOND and m["open_requests"] for m in control(pool, "/api/ps").json()["models"]) and asking.is_alive():
        time.sleep(0.005)
    assert control(pool, "/api/models/unload", {"model": SECOND}).status == 200
    asking.join()
    assert answers[0].status == 200 and answers[0].json()["usage"]["completion_tokens"] == 96
    until(pool, {FIRST: "ready"})


def test_keep_alive_zero_unloads_behind_the_answer_and_a_pin_holds(pool):
    assert pool.chat(model=SECOND, keep_alive=0).status == 200
    until(pool, {FIRST: "ready"})
    assert control(pool, "/api/models/pin", {"model": SECOND}).status == 200
    control(pool, "/api/models/load", {"model": SECOND})
    pinned = {m["model"]: m["pinned"] for m in control(pool, "/api/ps").json()["models"]}
    assert pinned == {FIRST: True, SECOND: True}
    assert control(pool, "/api/models/pin", {"model": SECOND, "pinned": False}).status == 200
    pinned = {m["model"]: m["pinned"] for m in control(pool, "/api/ps").json()["models"]}
    assert pinned == {FIRST: True, SECOND: False}
    control(pool, "/api/models/unload", {"model": SECOND})
    until(pool, {FIRST: "ready"})


def test_an_unloaded_model_writes_its_prefixes_first(tmp_path, model_file):
    """Each answer's prefix is on its way to the disk when the model goes; of a worker that was killed nothing stays."""
    kept = tmp_path / "kv"
    left = kept / ("0" * 32) / "1" / ".prefix.hkv.4711-0.tmp"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    snapshot = tmp_path / "hub" / "models--toys--goes" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    shutil.copy(model_file("smollm2"), snapshot / "model.gguf")
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("1")
    with Server(tmp_path, model_file("smollm2"), "--context", "1024", "--disk-cache", kept,
                env={"HF_HUB_CACHE": str(tmp_path / "hub")}) as server:  # fmt: skip
        assert not left.exists()
        for number in range(3):
            text = f"Letter {number}. " + "The harbour lay quiet under the morning fog, and nobody spoke of the ship. " * 24
            answer = server.chat(text, model="toys/goes", max_tokens=4, keep_alive=0)
            assert answer.status == 200, answer.body
            deadline = time.monotonic() + 60
            while any(m["model"] == "toys/goes" for m in control(server, "/api/ps").json()["models"]) or len(server.workers()) > 1:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert len(list(kept.rglob("*.hkv"))) == number + 1 and not list(kept.rglob("*.tmp"))
        assert not [line for line in server.log if "signal" in line], server.log


@pytest.mark.parametrize("path", ["/api/models/load", "/api/models/unload", "/api/models/pin"])
def test_bad_bodies_are_told_by_field(pool, path):
    for body, param in [({}, "model"), ({"model": 5}, "model"), ({"model": ""}, "model"), ({"model": SECOND, "pinned": "yes"}, "pinned"),
                        ({"model": SECOND, "keep_alive": []}, "keep_alive")]:  # fmt: skip
        answer = control(pool, path, body)
        assert answer.status == 400 and answer.json()["error"]["param"] == param, (body, answer.body)
    unknown = control(pool, path, {"model": "third"})
    assert unknown.status == 404 and FIRST in unknown.json()["error"]["message"]
    assert states(pool) == {FIRST: "ready"}


def test_a_wrong_keep_alive_loads_nothing(pool):
    for keep_alive in ("soon", "", "-", "-soon", "5 m", "1e99", "3e8h", "1e9h" * 3000):
        answer = control(pool, "/api/models/load", {"model": SECOND, "keep_alive": keep_alive})
        assert answer.status == 400 and answer.json()["error"]["param"] == "keep_alive", (keep_alive, answer.body)
    assert states(pool) == {FIRST: "ready"}


def test_the_person_of_this_machine_alone_may_drive(pool):
    for headers in ({}, {"Authorization": "Bearer 0"}, {"x-api-key": "0"}):
        for method, path in [("GET", "/api/ps"), ("POST", "/api/models/load")]:
            assert pool.request(method, path, body={"model": SECOND} if method == "POST" else None, headers=headers).status == 401
    assert states(pool) == {FIRST: "ready"}


def test_files_beside_the_server_are_no_models_of_its_clients(pool, model_file):
    folder = pool.home / "sub"
    folder.mkdir()
    shutil.copy(model_file("smollm2"), folder / "m.gguf")
    (folder / "secret.txt").write_text("secret")
    for name in ("sub", "sub/m.gguf", "sub/secret.txt", "sub/nothing.txt", "sub//m.gguf", "./sub/m.gguf", "sub/m.gguf:x"):
        for answer in (pool.chat(model=name), pool.get(f"/fit?model={name}"), control(pool, "/api/models/load", {"model": name})):
            assert answer.status == 404, (name, answer.status, answer.body)
    assert states(pool) == {FIRST: "ready"}


@pytest.mark.parametrize("parameters", [{}, None, {"type": ["object", "null"]}, {"properties": {"a": {"type": "integer"}}}])
def test_arguments_are_an_object_where_the_schema_leaves_it_open(pool, parameters):
    function = {"name": "now", **({} if parameters is None else {"parameters": parameters})}
    choice = pool.chat("Call it", tools=[{"type": "function", "function": function}], tool_choice="required", max_tokens=300).json()["choices"][0]
    assert choice["finish_reason"] in ("tool_calls", "length"), choice
    for call in choice["message"].get("tool_calls", []):
        assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_arguments_that_can_be_no_object_are_refused(pool):
    function = {"name": "now", "parameters": {"type": "string"}}
    answer = pool.chat("Call it", tools=[{"type": "function", "function": function}], tool_choice="required")
    assert answer.status == 400 and "now" in answer.json()["error"]["message"], answer.body


def test_version_is_that_of_the_program(pool):
    said = subprocess.run([BINARY, "version"], capture_output=True, text=True, check=True).stdout
    version = pool.get("/version").json()
    assert version["version"].rstrip(")") in said


def test_stats_are_the_same_under_both_paths(pool):
    short, long = pool.get("/stats").json(), pool.get("/v1/stats").json()
    assert short.keys() == long.keys() and short["server"] == long["server"] and short["models"] == long["models"]
    assert {"batch", "admission", "prompt_cache", "disk_cache", "response_store", "last_token_age_s"} <= short.keys()
    assert short["kv_quant"] == {"mode": "config", "layers": {"kv4": 0, "kv8": 0, "bf16": 30},
                                 "attention": {"global": 30, "sliding_window": 0, "recurrent": 0}}
    assert 0 < short["admission"]["ram"]["planned_bytes"] <= short["admission"]["usable_bytes"]
