"""What is wrong with the model store is told without its folders, by every route that may say it (spec server 4)."""
import json
import pathlib

import pytest
from library_test import REVISION, add, add_broken, serve, settings
from running import BINARY

MESSAGES = [{"role": "user", "content": "Hi"}]


def snapshot(cache, repo, **files):
    folder = cache / ("models--" + repo.replace("/", "--")) / "snapshots" / REVISION
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, model_file):
    """A server whose store, with a space in its path, holds what cannot be loaded, each in its own way."""
    home = tmp_path_factory.mktemp("hostile") / "my models"
    home.mkdir()
    cache = home / "hub"
    cache.mkdir()
    add(cache, "org/good", model_file("smollm2"))
    add_broken(cache, "org/zeros", b"GGUF" + bytes(64))
    add_broken(cache, "org/text", b"this is no model")
    config = json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}).encode()
    index = json.dumps({"weight_map": {"a": "model-00002-of-00002.safetensors"}}).encode()
    incomplete = snapshot(cache, "org/incomplete", config__json=config, model__safetensors=b"", other__safetensors=b"")
    (incomplete / "model.safetensors.index.json").write_bytes(index)
    snapshot(cache, "org/garbage", config__json=b"{{{", model__safetensors=b"\xff" * 64)
    snapshot(cache, "org/card", README__md=b"# nothing")
    for name in ("one", "two"):
        snapshot(cache, "org/files", **{name + "__gguf": b"GGUF"})
    gone = snapshot(cache, "org/gone", model__gguf=b"GGUF")
    (gone / "model.gguf").unlink()
    (gone / "model.gguf").symlink_to(pathlib.Path("../../blobs") / ("0" * 40))
    env = settings(home, f'absent = "org/nowhere"\nfolder = "{home / "empty"}"\nfile = "{home / "x.gguf"}"\n')
    (home / "empty").mkdir()
    with serve(home, cache, "org/good", "--context", "256", "--batch", "2", env=env) as server:
        yield server


NAMES = ["org/zeros", "org/text", "org/incomplete", "org/garbage", "org/card", "org/files", "org/files:none", "org/gone", "org/good@0000000",
         "absent", "folder", "file", "org/none", "zeros@", "a\0b", "zeros:", "/etc/passwd", "~", "../x", "org", "absent:x", "folder:x"]


def asks(server, name):
    """(what, answer) of every route that a model's name is given to."""
    control = {"Authorization": "Bearer " + server.token()}
    quoted = "".join(f"%{byte:02x}" for byte in name.encode())
    for path, body in [
        ("/v1/chat/completions", {"messages": MESSAGES}), ("/v1/completions", {"prompt": "x"}),
        ("/v1/messages", {"messages": MESSAGES, "max_tokens": 1}), ("/v1/messages/count_tokens", {"messages": MESSAGES}),
        ("/v1/responses", {"input": "x"}), ("/v1/embeddings", {"input": "x"}), ("/v1/tokenize", {"content": "x"}),
        ("/v1/detokenize", {"tokens": [1]}), ("/apply-template", {"messages": MESSAGES}), ("/signal", {"prompt": "x"}),
        ("/generate", {"prompt": "x", "points": [{"x_pct": 1, "y_pct": 1}, {"x_pct": 90, "y_pct": 90}]}),
        ("/api/models/load", {}), ("/api/models/unload", {}), ("/api/models/pin", {"pinned": False}), ("/v1/adapters", {"id": "x"}),
    ]:
        yield path, server.post(path, {"model": name, **body}, headers=control)
    for path in ("/fit?model=" + quoted, "/v1/adapters/available?model=" + quoted):
        yield path, server.get(path)
    yield "/v1/models/" + name, server.get("/v1/models/" + quoted)
    yield "DELETE", server.request("DELETE", "/v1/adapters/x?model=" + quoted, headers=control)


def check(server, what, answer):
    text = answer.body.decode()
    for folder in (str(server.home), str(server.home.parent), "my models", "snapshots", "models--", "/blobs", str(BINARY.parent)):
        assert folder not in text, (what, text)


@pytest.mark.parametrize("name", NAMES)
def test_no_route_names_a_folder(hostile, name):
    for what, answer in asks(hostile, name):
        check(hostile, what, answer)
        assert answer.status != 500, (what, answer.body)
    for path in ("/library", "/v1/models", "/stats", "/v1/adapters", "/api/ps", "/v1/adapters/available"):
        check(hostile, path, hostile.get(path, headers={"Authorization": "Bearer " + hostile.token()}))


@pytest.mark.parametrize("name, status, words", [
    ("org/zeros", 422, "broken.gguf"),
    ("org/garbage", 422, "config.json"),
    ("org/incomplete", 422, "org/incomplete is incomplete: model-00002-of-00002.safetensors is absent"),
    ("org/gone", 422, "org/gone is incomplete: the blob of model.gguf is absent"),
    ("org/card", 400, "model: org/card holds no model"),
    ("org/files", 404, "org/files holds 2 .gguf files; choose one as org/files:FILE: one.gguf, two.gguf"),
    ("org/good@0000000", 404, "org/good has no revision 0000000 here; it has " + REVISION),
    ("absent", 404, "the alias absent of models.toml means org/nowhere, which is not here"),
    ("zeros@", 400, "model: 'zeros@': a revision stands behind '@'"),
    ("/etc/passwd", 404, "there is no model /etc/passwd; there are "),
    ("org/none", 404, "there is no model org/none; there are "),
    ("org/g", 404, "'org/g' names 3 models: org/garbage, org/gone, org/good; say which"),
])
def test_what_is_wrong_is_said(hostile, name, status, words):
    answer = hostile.chat("Hi", model=name)
    assert answer.status == status and words in answer.json()["error"]["message"], answer.body
    shown = hostile.get("/v1/models/" + "".join(f"%{byte:02x}" for byte in name.encode()))
    if status != 422 or "incomplete" in words:
        assert shown.status == status and words in shown.json()["error"]["message"], shown.body


def test_an_alias_of_a_path_and_a_revision_are_served_as_what_they_are(tmp_path, model_file):
    cache, other = tmp_path / "hub", "1" * 40
    cache.mkdir()
    add(cache, "org/good", model_file("smollm2"))
    snapshots = cache / "models--org--good" / "snapshots"
    (snapshots / other).mkdir()
    (snapshots / other / "model.gguf").symlink_to(pathlib.Path("../../blobs") / ("0" * 40))
    (snapshots.parent / "refs").mkdir(exist_ok=True)
    (snapshots.parent / "refs" / "main").write_text(REVISION)
    (tmp_path / "outside.gguf").symlink_to(model_file("smollm2"))
    env = settings(tmp_path, f'work = "{tmp_path / "outside.gguf"}"\n')
    with serve(tmp_path, cache, "org/good", "--context", "256", "--batch", "2", env=env) as server:
        for name, told in (("work", "outside"), ("org/good@" + other, "org/good@" + other), ("org/good@" + REVISION, "org/good"),
                           ("org/good@" + other[:8], "org/good@" + other)):
            answer = server.chat("Hi", model=name, max_tokens=2)
            assert answer.status == 200 and answer.json()["model"] == told, (name, answer.body)
        for text in (server.get("/v1/models").body, server.get("/stats").body):
            assert str(tmp_path) not in text.decode()


def test_a_store_that_breaks_while_the_server_runs(tmp_path, model_file):
    cache = tmp_path / "hub"
    cache.mkdir()
    add(cache, "org/good", model_file("smollm2"))
    with serve(tmp_path, cache, "org/good", "--context", "256", "--batch", "2") as server:
        cache.rename(tmp_path / "away")
        cache.write_text("a file where the store was")
        for path in ("/v1/models", "/library", "/fit?model=other", "/v1/models/other", "/v1/adapters/available?model=other"):
            answer = server.get(path)
            assert answer.status == 503 and str(tmp_path) not in answer.body.decode(), (path, answer.body)
            assert "model store" in answer.json()["error"]["message"], answer.body
        answer = server.chat("Hi", model="other")
        assert answer.status == 503 and "model store" in answer.json()["error"]["message"] and str(tmp_path) not in answer.body.decode()
        assert server.chat("Hi", max_tokens=2).status == 200, "what is loaded goes on"
        assert str(tmp_path) in "".join(server.log), "this machine's own person is told where"
