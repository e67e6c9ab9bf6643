"""The models on this machine: /library, /fit, words without a load, models.toml, serve without a name, redirects."""
import json
import pathlib
import subprocess
import time

import pytest
from running import BINARY, Server, open_files

REVISION = "0123456789abcdef0123456789abcdef01234567"
MESSAGES = [{"role": "user", "content": "Why is the sky blue?"}]


def add(cache, repo, source):
    """A repository of the store with one snapshot: a .gguf file or a model folder, by links of the hub's shape."""
    folder = cache / ("models--" + repo.replace("/", "--"))
    snapshot, blobs = folder / "snapshots" / REVISION, folder / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    source = pathlib.Path(source).resolve()
    files = [source] if source.is_file() else [f for f in source.rglob("*") if f.is_file()]
    for number, file in enumerate(files):
        inside = pathlib.Path("model.gguf") if source.is_file() else file.relative_to(source)
        blob = blobs / f"{number:040x}"
        blob.symlink_to(file.resolve())
        link = snapshot / inside
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(pathlib.Path(*[".."] * (len(inside.parts) + 1)) / "blobs" / blob.name)
    return snapshot


def add_broken(cache, repo, content):
    snapshot = cache / ("models--" + repo.replace("/", "--")) / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    (snapshot / "broken.gguf").write_bytes(content)


def settings(home, text):
    folder = home / "config" / "hearth"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "models.toml").write_text(text)
    return {"XDG_CONFIG_HOME": str(home / "config")}


def serve(home, cache, *args, env=None):
    return Server(home, *args, env={"HF_HUB_CACHE": str(cache), "XDG_STATE_HOME": str(home / "state"), **(env or {})})


def fails(home, cache, *args, env=None):
    """serve that does not start: exit code and stderr."""
    server = serve(home, cache, *args, env=env)
    done = subprocess.run([BINARY, "serve", "--port", "0", *map(str, args)], env=server.env, cwd=home, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory, model_file):
    cache = tmp_path_factory.mktemp("hub")
    add(cache, "org/talks", model_file("smollm2"))
    add(cache, "org/twin", model_file("smollm2"))
    add(cache, "org/vectors", model_file("minilm"))
    add_broken(cache, "org/broken", b"GGUF" + bytes(64))
    return cache


@pytest.fixture(scope="module")
def serving(tmp_path_factory, cache):
    with serve(tmp_path_factory.mktemp("library"), cache, "org/talks", "--context", "1024", "--batch", "2") as running:
        yield running


def rows(server):
    answer = server.get("/library")
    assert answer.status == 200, answer.body
    return {row["id"]: row for row in answer.json()["models"]}


def test_the_library_tells_every_model(serving, cache):
    library = rows(serving)
    assert set(library) == {"org/talks", "org/twin", "org/vectors", "org/broken"}
    talks = library["org/talks"]
    assert talks["repo_id"] == "org/talks" and talks["revision"] == REVISION and talks["model_type"] == "llama"
    assert talks["size_bytes"] > 50e6 and talks["quant_bits"] == 4 and talks["supported"] and not talks["vision"]
    assert talks["support_tier"] == "supported" and talks["serving"] and not library["org/twin"]["serving"]
    assert talks["assessment"]["fits"] and talks["assessment"]["max_safe_context"] == 1024
    assert talks["assessment"]["predicted_decode_tps"] > 0
    assert library["org/vectors"]["model_type"] == "bert" and library["org/vectors"]["assessment"]["predicted_decode_tps"] is None
    broken = library["org/broken"]
    assert not broken["supported"] and broken["assessment"] is None and "broken.gguf" in broken["problem"]
    assert str(cache) not in json.dumps(library), "no path goes to a client"


def test_an_embedding_model_takes_what_its_files_say(serving):
    """all-MiniLM-L6-v2 has 512 positions and max_seq_length 256."""
    vectors = "org/vectors"
    assert rows(serving)[vectors]["assessment"]["max_safe_context"] == 256
    fit = serving.get(f"/fit?model={vectors}").json()
    assert (fit["context_tokens"], fit["report"]["max_safe_context"], fit["report"]["trained_context"]) == (256, 256, 512)
    assert not serving.get(f"/fit?model={vectors}&ctx=257").json()["report"]["fits"]
    words = "sea " * 254
    taken = serving.post("/v1/embeddings", {"model": vectors, "input": words})
    assert taken.status == 200 and taken.json()["usage"]["prompt_tokens"] == 256, taken.body
    assert serving.get("/v1/models/org%2Fvectors").json()["context_window"] == 256
    assert serving.post("/v1/embeddings", {"model": vectors, "input": words + "sea"}).status == 400
    control = {"Authorization": "Bearer " + serving.token()}
    assert serving.post("/api/models/unload", {"model": vectors}, headers=control).status == 200
    deadline = time.monotonic() + 30
    while vectors in loaded(serving) and time.monotonic() < deadline:
        time.sleep(0.02)


def test_the_front_opens_no_model_file(serving):
    rows(serving)
    assert serving.get("/fit?model=org/twin&ctx=512").status == 200
    front = pathlib.Path(f"/proc/{serving.process.pid}")
    opened = open_files(serving.process.pid)
    assert not [path for path in opened if "blobs" in path or path.endswith((".gguf", ".safetensors", ".json"))], opened
    assert ".gguf" not in (front / "maps").read_text() and "blobs" not in (front / "maps").read_text()


def test_fit_is_what_the_command_prints(serving, cache, tmp_path):
    env = {**serving.env, "XDG_STATE_HOME": str(serving.home / "state")}
    for ctx in (256, 8192):
        served = serving.get(f"/fit?model=org/twin&ctx={ctx}").json()
        done = subprocess.run([BINARY, "fit", "org/twin", "--ctx", str(ctx), "--context", "1024", "--json"], env=env, capture_output=True, text=True)
        printed = json.loads(done.stdout)
        assert printed.pop("schema_version") == 1 and done.returncode == (0 if ctx == 256 else 4)
        for document in (served, printed):  # how fast the memory is differs from one measurement to the next
            assert document["machine"].pop("ram_gbs") > 0 and document.pop("typical_decode_tps") > 0
            assert document["report"].pop("predicted_decode_tps") > 0
        assert served == printed
        report = served["report"]
        assert report["fits"] == (ctx == 256) and report["max_safe_context"] == 1024
        assert report["total_bytes"] >= report["weights_bytes"] + report["kv_bytes"] + report["arena_bytes"]
        assert report["pools"] == {"ram": {"total_bytes": report["total_bytes"], "usable_bytes": report["usable_bytes"]}}
        assert served["context_tokens"] == ctx and served["measured_decode_tps"] is None and served["measured_at"] is None
        cards = [row["memory_bytes"] / 1e9 for row in served["sku_matrix"] if row["kind"] == "card"]
        hosts = [row["memory_bytes"] / 1e9 for row in served["sku_matrix"] if row["kind"] == "host"]
        assert cards == [8, 12, 16, 24, 48, 80, 141] and hosts == [8, 16, 32, 64, 128]


@pytest.mark.parametrize("query, status, words", [
    ("model=org/none", 404, "org/none"),
    ("model=org/talks&ctx=0", 400, "between 1 and"),
    ("model=org/talks&ctx=many", 400, "ctx"),
    ("model=org/broken", 422, "broken.gguf"),
])
def test_fit_says_what_is_wrong(serving, query, status, words):
    answer = serving.get("/fit?" + query)
    assert answer.status == status and words in answer.json()["error"]["message"], answer.body
    assert "/snapshots/" not in answer.json()["error"]["message"]


def test_a_measured_speed_wins(serving, cache, tmp_path):
    env = {**serving.env, "XDG_STATE_HOME": str(tmp_path / "state")}

    def fit(ctx):
        return json.loads(subprocess.run([BINARY, "fit", "org/talks", "--ctx", str(ctx), "--json"], env=env, capture_output=True, text=True, check=True).stdout)

    assert fit(512)["measured_decode_tps"] is None
    text = subprocess.run([BINARY, "fit", "org/talks", "--ctx", "512"], env=env, capture_output=True, text=True, check=True).stdout
    assert "tok/s at 512 positions, by this memory's" in text and "141 GB" not in text
    bench = json.loads(subprocess.run([BINARY, "bench", "org/talks", "--prompt", "0", "--tokens", "8", "--depth", "32", "--runs", "1", "--json"], env=env,
                                      capture_output=True, text=True, check=True).stdout)
    short, long = fit(36), fit(1024)
    assert abs(short["measured_decode_tps"] - bench["decode_tps"]["median"]) < 0.1 and short["measured_at"].startswith("20")
    assert abs(short["typical_decode_tps"] - bench["decode_tps"]["median"]) < 0.2, "32 + 8 / 2 positions, as measured"
    assert long["typical_decode_tps"] < short["typical_decode_tps"], "more of the cache is read"
    text = subprocess.run([BINARY, "fit", "org/talks", "--ctx", "1024", "--skus"], env=env, capture_output=True, text=True, check=True).stdout
    assert "measured on 20" in text and "141 GB" in text and "host" in text


# --- words of a model that is not loaded ---

def loaded(server):
    return {m["model"] for m in server.get("/api/ps", headers={"Authorization": "Bearer " + server.token()}).json()["models"]}


@pytest.mark.parametrize("path, body", [
    ("/v1/tokenize", {"content": "Why is the sky blue?"}),
    ("/v1/tokenize", {"content": "Why <|im_end|>", "with_pieces": True}),
    ("/v1/tokenize", {"messages": MESSAGES}),
    ("/v1/detokenize", {"tokens": [504, 1789, 338]}),
    ("/apply-template", {"messages": MESSAGES, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}),
    ("/v1/messages/count_tokens", {"messages": MESSAGES, "system": "Be brief."}),
    ("/v1/detokenize", {"tokens": [-1]}),
])
def test_words_of_a_model_that_is_not_loaded_are_those_of_a_loaded_one(serving, path, body):
    absent = serving.post(path, {"model": "org/twin", **body})
    present = serving.post(path, {"model": "org/talks", **body})
    assert loaded(serving) == {"org/talks"}, "nothing was loaded for it"
    assert absent.status == present.status
    if absent.status == 200:
        assert absent.json() == present.json()
    else:
        assert absent.json()["error"]["message"] == present.json()["error"]["message"]


def test_one_process_without_weights_serves_many_such_requests(serving):
    (whole,) = [m["open_requests"] for m in serving.get("/stats").json()["models"]]
    for _ in range(5):
        assert serving.post("/v1/tokenize", {"model": "org/twin", "content": "Hello"}).json()["count"] > 0
    workers = {}
    for pid in serving.workers():
        line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        workers[pid] = [word.decode() for word in line]
    text = [pid for pid, words in workers.items() if "text" in words and "org/twin" in words]
    assert len(text) == 1, workers
    resident = int(next(line for line in pathlib.Path(f"/proc/{text[0]}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1])
    assert resident < 80_000, f"{resident} kB: its weights alone are 90 MB"
    status = pathlib.Path(f"/proc/{text[0]}/status").read_text()
    assert "Seccomp:\t2" in status, "strangers' tokenizers are read in the sandbox"


def test_words_of_an_embedding_model(serving):
    assert serving.post("/v1/tokenize", {"model": "org/vectors", "content": "harbour"}).json()["count"] > 2
    refused = serving.post("/apply-template", {"model": "org/vectors", "messages": MESSAGES})
    assert refused.status == 400 and "embedding model" in refused.json()["error"]["message"]
    assert loaded(serving) == {"org/talks"}


def test_words_of_a_broken_model_are_a_422(serving):
    answer = serving.post("/v1/tokenize", {"model": "org/broken", "content": "x"})
    assert answer.status == 422 and "broken.gguf" in answer.json()["error"]["message"]


# --- models.toml ---

@pytest.mark.parametrize("text, words", [
    ('["org/talks"]\n\ncontxt = 4096\n', ["models.toml:3", "contxt", "context"]),
    ('["org/talks"]\ncontext = "long"\n', ["models.toml:2", "context", "an integer"]),
    ('["org/talks"]\ncontext = 0\n', ["models.toml:2", "context"]),
    ('["org/talks"]\nkv = "q7"\n', ["models.toml:2", "kv", "q7"]),
    ('["org/talks"]\npinned = "yes"\n', ["models.toml:2", "pinned", "true or false"]),
    ('["org/talks"]\nttl = "soon"\n', ["models.toml:2", "ttl", "soon"]),
    ('["org/talks"]\ntemperature = 9\n', ["models.toml:2", "temperature"]),
    ('["org/talks"]\nport = 1\n', ["models.toml:2", "port"]),
    ('["org/talks"]\nalias = 3\n', ["models.toml:2", "alias"]),
    ('short = 3\n', ["models.toml:1", "short", "a model's name"]),
    ('["org/talks"]\ndefault = true\n["org/twin"]\ndefault = true\n', ["models.toml:4", "org/talks", "default"]),
    ('["org/talks"]\ntop_k = 1\ntop_k = 2\n', ["models.toml:3", "top_k", "twice"]),
    ('["org/talks"]\nalias = "x"\n["org/twin"]\nalias = "x"\n', ["models.toml:4", "alias x", "org/talks", "line 2", "org/twin"]),
    ('x = "org/talks"\n["org/twin"]\nalias = "x"\n', ["models.toml:3", "alias x", "org/talks", "line 1", "org/twin"]),
    ('["org/talks"]\nalias = "org/twin"\n', ["models.toml:2", "alias org/twin", "a model here is called so", "org/talks"]),
    ('"org/twin" = "org/talks"\n', ["models.toml:1", "alias org/twin", "org/talks"]),
])
def test_a_wrong_setting_is_told_at_the_start(tmp_path, cache, text, words):
    code, said = fails(tmp_path, cache, "org/talks", env=settings(tmp_path, text))
    assert code == 2 and all(word in said for word in words), (code, said)


def test_an_alias_is_no_other_name_of_the_command_line(tmp_path, cache):
    env = settings(tmp_path, 'mine = "org/twin"\n')
    code, said = fails(tmp_path, cache, "org/talks", "--served-model-name", "mine", env=env)
    assert code == 2 and all(word in said for word in ("models.toml:1", "alias mine", "org/twin")), (code, said)


def test_settings_of_models(tmp_path, cache):
    env = settings(tmp_path, """
small = "org/talks"
["org/talks"]
context = 512
max_tokens = 3
["org/twin"]
alias = "other"
context = 256
pinned = true
kv = "q8"
["org/gone"]
pinned = true
""")
    with serve(tmp_path, cache, "small", "--batch", "2", env=env) as server:
        assert any("models.toml:12" in line and "org/gone" in line for line in server.log), server.log
        assert server.chat("Hi", model="other", max_tokens=2).status == 200
        answer = server.post("/v1/chat/completions", {"model": "small", "messages": MESSAGES}).json()
        assert answer["model"] == "org/talks" and answer["usage"]["completion_tokens"] <= 3
        headers = {"Authorization": "Bearer " + server.token()}

        def seen():
            return {m["model"]: (m["context_window"], m["kv"], m["pinned"]) for m in server.get("/api/ps", headers=headers).json()["models"]}

        assert seen() == {"org/talks": (512, "config", True), "org/twin": (256, "q8", True)}
        assert server.post("/api/models/unload", {"model": "other"}, headers=headers).status == 200
        assert server.post("/api/models/load", {"model": "other"}, headers=headers).status == 200
        assert seen()["org/twin"] == (256, "q8", True), "they outlive an unload"
        assert rows(server)["org/twin"]["assessment"]["max_safe_context"] == 256, "what is planned for is what is loaded"


def test_what_is_said_for_this_run_wins_over_models_toml_and_that_over_files(tmp_path, cache):
    env = settings(tmp_path, '["org/talks"]\ncontext = 512\n')
    (tmp_path / "config" / "hearth" / "config.toml").write_text("context = 256\n")
    for args, context in (((), 512), (("--context", "384"), 384)):
        with serve(tmp_path, cache, "org/talks", "--batch", "2", *args, env=env) as server:
            assert server.get("/v1/models/org/talks").json()["context_window"] == context


# --- memory ---

def test_a_load_that_can_never_fit_evicts_nobody(tmp_path, cache):
    env = settings(tmp_path, '["org/twin"]\ncontext = 8192\n["org/talks"]\ncontext = 256\n')
    with serve(tmp_path, cache, "org/vectors", "--allow-models", "org/talks", "--allow-models", "org/twin", "--batch", "1",
               "--prompt-cache", "0", "--memory-budget", "300MB", env=env) as server:
        assert server.chat("Hi", model="org/talks", max_tokens=2).status == 200
        before = loaded(server)
        answer = server.chat("Hi", model="org/twin", max_tokens=2)
        error = answer.json()["error"]
        assert answer.status == 503 and error["code"] == "out_of_memory", answer.body
        assert error["needed_bytes"] > error["usable_bytes"] > 0 and "retry-after" in answer.headers
        assert loaded(server) == before and "org/talks" in before
        assert server.chat("Hi", model="org/talks", max_tokens=2).status == 200


# --- serve without a name ---

def test_without_a_name_the_largest_that_fits_well_is_served(tmp_path, cache):
    with serve(tmp_path, cache, "--context", "256", "--batch", "1") as server:
        (served,) = [m["id"] for m in server.get("/v1/models").json()["data"] if m["serving"]]
        assert served in ("org/talks", "org/twin"), "the embedding model answers nobody"
        assert any("org/broken is passed over" in line for line in server.log), server.log


def test_without_a_name_the_marked_one_is_served(tmp_path, cache):
    env = settings(tmp_path, '["org/vectors"]\ndefault = true\n')
    with serve(tmp_path, cache, env=env) as server:
        (served,) = [m["id"] for m in server.get("/v1/models").json()["data"] if m["serving"]]
        assert served == "org/vectors"


def test_without_a_name_and_without_a_model_there_is_a_way_on(tmp_path):
    empty = tmp_path / "hub"
    code, said = fails(tmp_path, empty)
    assert code == 3 and "hearth import FILE.gguf" in said and str(empty) in said, (code, said)


def test_without_a_name_and_room_the_smallest_need_is_told(tmp_path, cache):
    code, said = fails(tmp_path, cache, "--memory-budget", "30MB")
    assert code == 4 and "30 MB" in said and "org/vectors" in said and "--memory-budget" in said, (code, said)


# --- redirects ---

@pytest.mark.parametrize("path", ["/status", "/chat", "/quantize", "/finetune", "/dataset"])
def test_plain_names_lead_to_the_page(server, path):
    answer = server.get(path)
    assert answer.status == 302 and answer.headers["location"] == "/#" + path and answer.body == b""
