"""Adapters while the server runs: mounted, chosen by request, stacked, unmounted; spec server 38, case 27."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import signal
import threading
import time

import pytest
from oracle import adapters
from running import Server, open_files

QUESTION = "Why is the sky blue?"
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of adapters: two good ones in files of both kinds, some that must be refused."""
    root = tmp_path_factory.mktemp("adapters")
    style = adapters.smollm2_style(root / "style")
    adapters.write_peft(root / "voice", adapters.smollm2_factors(1), 2.0)
    shutil.copytree(style, root / "bad+name")
    wide = adapters.smollm2_factors(2)
    wide["model.layers.3.mlp.up_proj"] = tuple(x[:, :-1] if i else x for i, x in enumerate(wide["model.layers.3.mlp.up_proj"]))
    adapters.write_native(root / "wide", wide, 2.0)
    cut = shutil.copytree(style, root / "cut")
    weights = cut / "adapters.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    shutil.copytree(style, root / "words")
    (root / "words" / "adapter_config.json").write_text("no json")
    (root / "empty").mkdir()
    fifo = root / "fifo"
    fifo.mkdir()
    os.mkfifo(fifo / "adapters.safetensors")
    (fifo / "adapter_config.json").write_text("{}")
    device = root / "device"
    device.mkdir()
    (device / "adapters.safetensors").symlink_to("/dev/zero")
    (device / "adapter_config.json").write_text("{}")
    return root


class Adapted(Server):
    def control(self, method, path, body=None, **more):
        return self.request(method, path, body, headers={"Authorization": "Bearer " + self.token()}, **more)

    def mount(self, **body):
        return self.control("POST", "/v1/adapters", body)

    def unmount(self, adapter):
        return self.control("DELETE", "/v1/adapters/" + adapter)

    def adapters(self):
        return {a["id"]: a for a in self.get("/v1/adapters").json()["data"]}

    def tokens(self, **fields):
        """Text and log-probabilities of an answer."""
        answer = self.chat(fields.pop("content", QUESTION), logprobs=True, top_logprobs=5, **fields)
        assert answer.status == 200, answer.body
        choice = answer.json()["choices"][0]
        return json.dumps([choice["message"], choice["logprobs"]])


def start(home, model, *args, **more):
    return Adapted(home, model, "--context", "512", "--batch", "16", *args, **more)


@pytest.fixture(scope="module")
def running(tmp_path_factory, model_file, made):
    with start(tmp_path_factory.mktemp("running"), model_file("smollm2"), "--adapters-dir", made) as server:
        yield server


@pytest.fixture
def clean(running):
    yield running
    for adapter in running.adapters():
        assert running.unmount(adapter).status == 200


def refused(answer, status, param=None, *words):
    error = answer.json()["error"]
    assert (answer.status, error["param"]) == (status, param), answer.body
    for word in words:
        assert word in error["message"], answer.body
    return error["message"]


def comes(what, within=60):
    deadline = time.monotonic() + within
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_mounted_chosen_listed_unmounted(clean, made, hearth, model_file):
    base = clean.tokens()
    alone = {name: hearth.json("generate", model_file("smollm2"), QUESTION, "--max-tokens", 16, "--temperature", 0, "--adapter",
                               made / name)["text"] for name in ("style", "voice")}
    assert alone["style"] != alone["voice"]
    answer = clean.mount(path=str(made / "style"))
    assert answer.status == 200, answer.body
    assert answer.json()["id"] == "style" and answer.json()["compatible"] is True and answer.json()["rank"] == 8
    assert clean.mount(id="tone", path="voice").status == 200, "a path inside the folder of adapters, under another name"
    listed = clean.adapters()
    assert set(listed) == {"style", "tone"}
    for one in listed.values():
        assert one["model"] == clean.get("/v1/models").json()["data"][0]["id"]
        assert (one["default"], one["uses"], one["compatible"], one["resident"]) == (False, 0, True, True)
    for name, adapter in (("style", "style"), ("voice", "tone")):
        assert json.loads(clean.tokens(adapter=adapter))[0]["content"] == alone[name]
    assert clean.tokens() == clean.tokens(adapter="none") == base, "nothing is on that no request asks for"
    for _ in range(2):
        assert clean.tokens(adapter="style+tone") == clean.tokens(adapter="tone+style")
    assert clean.tokens(adapter="style+tone") not in (clean.tokens(adapter="style"), clean.tokens(adapter="tone"), base)
    assert str(made) not in clean.get("/v1/adapters").body.decode() + answer.body.decode()

    for adapter in ("style", "tone"):
        gone = clean.unmount(adapter)
        assert gone.status == 200 and gone.json()["deleted"] is True, gone.body
    assert clean.adapters() == {}
    assert clean.tokens() == base, "byte for byte what it was before the first mount"
    refused(clean.unmount("style"), 404, None, "style")
    refused(clean.chat(adapter="style"), 400, "adapter", "style is not mounted", "none is")


def test_rows_of_one_batch_have_their_own(clean):
    assert clean.mount(id="style").status == 200
    assert clean.mount(id="voice").status == 200
    specs = [{}, {"adapter": "style"}, {"adapter": "voice"}, {"adapter": "style+voice"}, {"adapter": "none"}]
    asks = [{"content": f"Tell me about {thing}.", **spec} for thing in ("rain", "iron", "bees") for spec in specs]
    alone = [clean.tokens(**ask) for ask in asks]
    assert len(set(alone[:4])) == 4 and alone[0] == alone[4]
    with concurrent.futures.ThreadPoolExecutor(len(asks)) as pool:
        for _ in range(2):
            assert list(pool.map(lambda ask: clean.tokens(**ask), asks)) == alone


def test_each_dialect_and_each_of_n_answers(clean):
    assert clean.mount(id="style").status == 200
    base, style = (clean.chat(adapter=a, n=3).json()["choices"] for a in ("none", "style"))
    assert [c["message"] for c in style] == [style[0]["message"]] * 3 and style[0]["message"] != base[0]["message"]
    raw = {"prompt": "The sky is", "max_tokens": 8, "temperature": 0}
    texts = [clean.post("/v1/completions", {**raw, "adapter": a}).json()["choices"][0]["text"] for a in ("none", "style")]
    assert texts[0] != texts[1]
    body = {"max_tokens": 8, "temperature": 0, "messages": [{"role": "user", "content": QUESTION}]}
    texts = [clean.post("/v1/messages", {**body, "adapter": a}).json()["content"] for a in ("none", "style")]
    assert texts[0] != texts[1]
    assert clean.post("/v1/messages", {**body, "adapter": "nowhere"}).status == 400


def test_cached_prefixes_are_the_adapters_own(clean):
    assert clean.mount(id="style").status == 200
    content = "A long story about the hearth and its keeper. " * 20

    def cached(adapter):
        return clean.chat(content, adapter=adapter, max_tokens=1).json()["usage"]["prompt_tokens_details"]["cached_tokens"]

    few = 64  # what all conversations begin with
    assert cached("style") < few and cached("none") < few
    assert cached("style") >= 128 and cached("none") >= 128
    assert clean.mount(id="voice").status == 200
    assert cached("voice") < few and cached("style+voice") < few
    assert clean.unmount("style").status == 200
    assert clean.mount(id="style", path="voice").status == 200
    assert cached("style") >= 128, "the factors of voice, whatever their name"


def test_a_failed_mount_changes_nothing(clean, made):
    assert clean.mount(id="style").status == 200
    before, listed, workers = [clean.tokens(adapter=a) for a in ("none", "style")], clean.adapters(), clean.workers()
    said = refused(clean.mount(id="wide"), 400, None, "model.layers.3.mlp.up_proj.lora_b", "[8, 1535]", "[R, 1536]")
    cut = clean.mount(id="cut")
    assert cut.status == 422 and cut.json()["error"]["code"] == "adapter_not_loadable", cut.body
    words = clean.mount(id="words")
    assert words.status == 422 and "adapter_config.json" in words.json()["error"]["message"], words.body
    texts = [said, cut.body.decode(), words.body.decode()]
    for name in ("empty", "gone", "fifo", "device", "style/adapters.safetensors"):
        texts.append(refused(clean.mount(id="x", path=str(made / name)), 400, "path"))
    refused(clean.mount(id="style"), 400, "id", "mounted already")
    refused(clean.mount(id="bad+name"), 400, "id")
    assert not any(str(made) in text or "/tmp" in text for text in texts), texts
    assert clean.adapters() == listed and clean.workers() == workers
    assert [clean.tokens(adapter=a) for a in ("none", "style")] == before


def test_hostile_ids_paths_and_bodies(clean, made):
    workers = clean.workers()
    path = str(made / "style")
    for name in ("a+b", "a,b", "a/b", "a:b", "none", ".", "..", "", "a\u0000b", "a\nb", "\u007f", "x" * 129):
        refused(clean.mount(id=name, path=path), 400, "id")
    for bad in ("", "../style", "x/../../style", "style\u0000", "/" + "x" * 4095, "x" * 5000, "/proc/self", "/dev/zero", "/etc/passwd", "~",
                "/dev/fd/3"):
        message = refused(clean.mount(id="x", path=bad), 400, "path")
        assert len(bad) < 6 or bad not in message, message
    for field, value in (("id", 7), ("path", ["style"]), ("force", "yes"), ("model", {})):
        refused(clean.mount(**{"id": "style", field: value}), 400, field)
    for body in (b"", b"[]", b"{", b'{"id": "style"', b"\xff\xfe", b'"style"', b"null"):
        assert clean.control("POST", "/v1/adapters", body).status == 400, body
    assert clean.mount().status == 400
    assert clean.mount(id="style", model="nowhere").status == 404
    for name in ("x", "none", "%2e%2e", "a%2Fb", "a+b", "%00", "%0a", "x" * 2000):
        assert clean.unmount(name).status in (400, 404), name
    for spec in ("+", "style+", "+style", "style+style", "none+style", "a" * 1024, "style\n", "+" * 1000):
        assert clean.mount(id="style").status in (200, 400)
        refused(clean.chat(adapter=spec), 400, "adapter")
    for method, target in (("POST", "/v1/adapters"), ("DELETE", "/v1/adapters/style")):
        assert clean.request(method, target, {"id": "voice"}).status == 401
    assert set(clean.adapters()) == {"style"} and clean.workers() == workers


def test_the_sandbox_stays_closed(clean, made):
    """The worker gets descriptors, reads them and lets go of them."""
    (worker,) = clean.workers()

    def in_front():
        return len([name for name in open_files(clean.process.pid) if name.startswith(str(made))])

    before = sorted(open_files(worker))
    for name in ("style", "wide", "cut", "voice"):
        clean.mount(id=name)
    clean.get("/v1/adapters/available")
    assert comes(lambda: sorted(open_files(worker)) == before), open_files(worker)
    assert comes(lambda: in_front() == 4), "two files of two adapters"
    for name in ("style", "voice"):
        assert clean.unmount(name).status == 200
    assert comes(lambda: in_front() == 0)


def test_what_is_available(clean, made):
    assert clean.mount(id="style").status == 200
    answer = clean.get("/v1/adapters/available")
    found = {a["path"]: a for a in answer.json()["data"]}
    assert list(found) == ["bad+name", "cut", "style", "voice", "wide", "words"] and str(made) not in answer.body.decode()
    assert found["style"]["mounted"] is True and found["voice"]["mounted"] is False
    assert found["voice"]["base"] == "org/model" and found["voice"]["compatible"] is True, "the model is of no repository"
    assert found["style"]["base"] is None and "+" in found["bad+name"]["problem"] and "json" in found["words"]["problem"].lower()
    assert clean.get("/v1/adapters/available?model=nowhere").status == 404


@pytest.fixture(scope="module")
def stored(tmp_path_factory, model_file, made):
    """A server of a model that the hub's cache names org/smol."""
    home = tmp_path_factory.mktemp("stored")
    repo = home / "hub" / "models--org--smol"
    snapshot = repo / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(REVISION)
    blob = repo / "blobs" / ("a" * 64)
    blob.parent.mkdir()
    shutil.copy(model_file("smollm2"), blob)
    (snapshot / "smol.gguf").symlink_to(f"../../blobs/{blob.name}")
    folder = home / "own"
    for name, base, revision in (("same", "org/smol", REVISION), ("other", "org/else", None), ("old", "org/smol", "f" * 40)):
        shutil.copytree(made / "voice", folder / name)
        config = folder / name / "adapter_config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "base_model_name_or_path": base, "revision": revision}))
    with start(home, "org/smol", "--adapters-dir", folder, env={"HF_HUB_CACHE": str(home / "hub")}) as server:
        yield server


def test_one_of_another_base_needs_force(stored):
    found = {a["id"]: a["compatible"] for a in stored.get("/v1/adapters/available").json()["data"]}
    assert found == {"same": True, "other": False, "old": False}
    refused(stored.mount(id="other"), 400, None, "org/else", "org/smol", "force")
    refused(stored.mount(id="old"), 400, None, "f" * 40, REVISION)
    assert stored.mount(id="same").json()["compatible"] is True
    assert stored.mount(id="old", force=True).json()["compatible"] is False
    listed = stored.adapters()
    assert {a: listed[a]["compatible"] for a in listed} == {"same": True, "old": False}
    assert listed["old"]["revision"] == "f" * 40 and listed["old"]["base"] == "org/smol"
    assert stored.tokens(adapter="same") == stored.tokens(adapter="old"), "the same factors"
    for name in ("same", "old"):
        assert stored.unmount(name).status == 200


def test_a_models_name_may_name_an_adapter(stored):
    assert stored.mount(id="same").status == 200
    base, same = stored.tokens(adapter="none"), stored.tokens(adapter="same")
    for name in ("org/smol:same", "smol:same", "default:same"):
        assert stored.tokens(model=name) == same, name
    assert stored.tokens(model="org/smol:same", adapter="none") == base, "the field says it last"
    assert stored.chat(model="org/smol:same").json()["model"] == "org/smol"
    refused(stored.chat(model="org/smol:nowhere"), 400, "adapter", "nowhere", "same is")
    assert stored.chat(model="nowhere:same").status == 404
    assert stored.post("/tokenize", {"model": "org/smol:same", "content": "x"}).status == 200
    assert stored.unmount("same").status == 200


def test_a_name_of_the_command_line_may_too(clean):
    assert clean.mount(id="style").status == 200
    (model,) = {a["model"] for a in clean.adapters().values()}
    assert clean.tokens(model=model + ":style") == clean.tokens(adapter="style") != clean.tokens(model=model)


def test_unmounting_waits_for_those_who_use_it(clean):
    assert clean.mount(id="style").status == 200
    assert clean.mount(id="voice").status == 200
    base = clean.tokens(adapter="none")
    ask = {"messages": [{"role": "user", "content": QUESTION}], "temperature": 0, "max_tokens": 400, "stream": True,
           "adapter": "style+voice", "logit_bias": {"2": -100, "0": -100}}
    whole = clean.post("/v1/chat/completions", ask).body
    connection = http.client.HTTPConnection(clean.host, clean.port, timeout=120)
    connection.request("POST", "/v1/chat/completions", json.dumps(ask), {"Content-Type": "application/json"})
    response = connection.getresponse()
    begun = response.read1()
    assert clean.adapters()["style"]["uses"] == clean.adapters()["voice"]["uses"] == 1
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(clean.unmount("style")))
    waiter.start()
    assert comes(lambda: "style" not in clean.adapters())
    for spec in ("style", "voice+style"):
        refused(clean.chat(adapter=spec), 404, None, "style is being unmounted")
    refused(clean.unmount("style"), 404)
    assert clean.mount(id="style").status == 503, "not before the old one has gone"
    assert clean.tokens(adapter="none") == base and clean.chat(adapter="voice").status == 200
    assert answers == [], "the stream has not ended"
    rest = begun + response.read()
    connection.close()

    def text(body):
        deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in body.decode().split("\n") if line.startswith("data: {")]
        return "".join(delta.get("content") or "" for delta in deltas)

    assert text(rest) == text(whole), "it was not disturbed"
    waiter.join(60)
    assert answers[0].status == 200
    refused(clean.chat(adapter="style"), 400, "adapter")
    assert clean.tokens(adapter="none") == base


def test_mounts_and_requests_under_load(clean):
    """Adapters come and go while base rows decode: theirs stay what they are."""
    base = clean.tokens(max_tokens=48)
    stop = threading.Event()

    def ask():
        seen = []
        while not stop.is_set():
            seen.append(clean.tokens(max_tokens=48))
        return seen

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        styles = set()
        for _ in range(4):
            assert clean.mount(id="style").status == 200
            styles.add(clean.tokens(adapter="style"))
            assert clean.mount(id="wide").status == 400
            assert clean.unmount("style").status == 200
        stop.set()
        seen = [text for future in asking for text in future.result()]
    assert len(styles) == 1 and set(seen) == {base}


def test_mounted_ones_outlive_a_worker(tmp_path, model_file, made):
    own = tmp_path / "own"
    for name in ("style", "voice"):
        shutil.copytree(made / name, own / name)
    with start(tmp_path, model_file("smollm2"), "--adapter", own / "style", "--adapters-dir", own) as server:
        assert server.mount(id="voice").status == 200
        specs = [{}, {"adapter": "style"}, {"adapter": "voice"}, {"adapter": "style+voice"}, {"adapter": "none"}]
        before, listed = [server.tokens(**spec) for spec in specs], server.adapters()
        assert before[0] == before[1] != before[4] and listed["style"]["default"] is True
        shutil.rmtree(own)  # the front holds the files
        for _ in range(2):
            (worker,) = server.workers()
            os.kill(worker, signal.SIGKILL)
            assert comes(lambda: server.workers() not in ([], [worker])), "no new worker"
            assert [server.tokens(**spec) for spec in specs] == before
            assert server.adapters() == listed
        assert server.unmount("style").status == 200
        assert server.tokens() == before[4], "the default is the base model then"


def test_files_that_changed_are_not_mounted_again(tmp_path, model_file, made):
    own = shutil.copytree(made / "style", tmp_path / "own" / "style")
    with start(tmp_path, model_file("smollm2"), "--adapters-dir", own.parent) as server:
        assert server.mount(id="style").status == 200
        config = own / "adapter_config.json"
        config.write_text(config.read_text().replace("2.0", "3.0"))
        os.kill(server.workers()[0], signal.SIGKILL)
        assert comes(lambda: server.chat(adapter="style").status == 400)
        refused(server.chat(adapter="style"), 400, "adapter", "not mounted")
        assert server.adapters() == {}
        assert any("style is no longer mounted" in line for line in server.log), server.log


def test_the_first_one_of_the_start_is_the_default(tmp_path, model_file, hearth, server, made):
    alone = hearth.json("generate", model_file("smollm2"), QUESTION, "--max-tokens", 16, "--temperature", 0, "--adapter",
                        made / "style")
    with start(tmp_path, model_file("smollm2"), "--adapter", made / "style", "--adapter", made / "voice") as running:
        assert {a: one["default"] for a, one in running.adapters().items()} == {"style": True, "voice": False}

        def text(**fields):
            answer = running.chat(QUESTION, **fields)
            assert answer.status == 200, answer.body
            return answer.json()["choices"][0]["message"]["content"]

        base = server.chat(QUESTION).json()["choices"][0]["message"]["content"]
        for _ in range(2):  # the second time with warm prefixes of both kinds
            assert text() == text(adapter="style") == alone["text"] != base
            assert text(adapter="none") == base != text(adapter="voice")


def test_memory_for_adapters_is_bounded(tmp_path, model_file, made):
    """Each takes 24 MB: 2.4 million values as a copy, and in its slot with A padded to 16 columns."""
    with start(tmp_path, model_file("smollm2"), "--adapters-dir", made, "--adapter-memory", "40MB") as server:
        assert server.mount(id="style").status == 200
        full = server.mount(id="voice")
        assert full.status == 503 and full.json()["error"]["code"] == "out_of_memory" and "40.0 MB" in full.body.decode(), full.body
        assert set(server.adapters()) == {"style"}
        assert server.chat(adapter="style").status == 200
    with start(tmp_path, model_file("smollm2"), "--adapters-dir", made, "--adapter-memory", "0") as server:
        assert server.mount(id="style").status == 503
        assert server.chat().status == 200


def test_a_stack_that_finds_no_room_is_a_503(tmp_path, model_file, made):
    with start(tmp_path, model_file("smollm2"), "--adapters-dir", made, "--adapter-memory", "60MB") as server:
        assert server.mount(id="style").status == server.mount(id="voice").status == 200
        full = server.chat(adapter="style+voice")
        assert full.status == 503 and "style+voice" in full.body.decode() and int(full.headers["retry-after"]) > 0, full.body
        assert server.chat(adapter="style").status == server.chat(adapter="voice").status == 200


def test_an_unknown_adapter_is_refused(server):
    refused(server.chat("Hi", adapter="nowhere"), 400, "adapter", "nowhere is not mounted", "none is")
    assert server.get("/v1/adapters").json() == {"object": "list", "data": []}
    assert server.chat("Hi", adapter="none").json()["choices"] == server.chat("Hi").json()["choices"]


def test_a_folder_without_an_adapter_fails_the_start(tmp_path, model_file, made):
    for folder, code, word in ((made / "empty", 3, "adapter"), (made / "gone", 3, "adapter"), (made / "wide", 1, "[R, 1536]"),
                               (made / "bad+name", 2, "+")):
        broken = start(tmp_path, model_file("smollm2"), "--adapter", folder)
        with pytest.raises(AssertionError):
            broken.start()
        assert broken.process.wait(10) == code and word in "".join(broken.log), broken.log


def test_embedding_models_take_none(tmp_path, model_file, made):
    with Adapted(tmp_path, model_file("minilm"), "--adapters-dir", made) as server:
        refused(server.mount(id="style"), 400, None, "embedding")
        assert server.get("/v1/adapters").json()["data"] == []
