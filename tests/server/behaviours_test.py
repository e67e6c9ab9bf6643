"""Behaviours of spec server 2 and 3.5 that no other test holds: roles, caps, pings, origins, other names of flags, the card of the start."""
import concurrent.futures
import json
import re
import shutil

import pytest
from running import Server

HI = {"role": "user", "content": "Hi"}
ENDS = ("<|im_end|>", "<|endoftext|>")


def prompt_of(server, messages):
    answer = server.post("/apply-template", {"messages": messages})
    assert answer.status == 200, answer.body
    return answer.json()["prompt"]


def never_ends(server):
    """A bias that keeps the model from ending its answer."""
    ids = [t for end in ENDS for t in server.post("/tokenize", {"content": end, "add_special": False}).json()["tokens"]]
    return {"logit_bias": {str(i): -100 for i in [*ids, 0, 1, 2]}, "temperature": 0}


def system(text, role="system"):
    return {"role": role, "content": text}


def test_the_developer_is_the_system(server):
    assert prompt_of(server, [system("Be brief.", "developer"), HI]) == prompt_of(server, [system("Be brief."), HI])


def test_system_messages_are_one_at_the_front(server):
    """Spec server 11."""
    prompt = prompt_of(server, [system("One."), HI, {"role": "assistant", "content": "Yes?"}, system("Two.", "developer"), HI])
    assert prompt.count("<|im_start|>system") == 1
    assert prompt.index("One.") < prompt.index("Two.") < prompt.index("<|im_start|>user")


TAKES_TURNS = """{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif -%}
[{{ m.role }}]{{ m.content }}{% endfor %}"""


def test_same_roles_are_one_where_the_template_wants_them_to_alternate(tmp_path, checkpoint):
    shutil.copytree(checkpoint("llama-tied-q4").path, tmp_path / "model")
    (tmp_path / "model" / "chat_template.jinja").write_text(TAKES_TURNS)
    with Server(tmp_path, tmp_path / "model", "--context", "128", "--batch", "1") as turns:
        said = {"role": "assistant", "content": "Yes?"}
        assert prompt_of(turns, [HI, HI, said, said, HI]).replace("\n\n", "+") == "[user]Hi+Hi[assistant]Yes?+Yes?[user]Hi"
        answer = turns.post("/v1/chat/completions", {"messages": [said, HI]})
        assert answer.status == 400 and "Roles must alternate" in answer.json()["error"]["message"], "what no merging helps is told"


def test_empty_content_is_legal(server):
    for content in ("", [], None):
        answer = server.post("/v1/chat/completions", {"messages": [HI, {"role": "assistant", "content": content}, HI], "max_tokens": 1})
        assert answer.status == 200, (content, answer.body)


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1, 2]], ["One"], 7])
def test_raw_text_is_one_string(server, prompt):
    answer = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1})
    assert answer.status == 400 and answer.json()["error"]["param"] == "prompt", answer.body


def test_tools_that_may_not_be_called_are_not_shown(server):
    tools = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}]
    bare, shown, hidden = (server.chat("Hi", max_tokens=1, **fields).json()["usage"]["prompt_tokens"]
                           for fields in ({}, {"tools": tools}, {"tools": tools, "tool_choice": "none"}))
    assert hidden == bare < shown


def test_answers_of_one_burst_without_a_seed_differ(server):
    body = {"messages": [{"role": "user", "content": "Tell me a story."}], "temperature": 1.0, "max_tokens": 16}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [a.json() for a in pool.map(lambda _: server.post("/v1/chat/completions", body), range(8))]
    assert len({a["choices"][0]["message"]["content"] for a in answers}) == 8


def test_the_default_cap_of_raw_text_is_512_tokens(server):
    document = server.post("/v1/completions", {"prompt": "One", **never_ends(server)}, timeout=600).json()
    assert (document["choices"][0]["finish_reason"], document["usage"]["completion_tokens"]) == ("length", 512)


def test_a_chat_without_a_cap_ends_with_its_context(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), "--context", "128", "--batch", "1") as server:
        document = server.post("/v1/chat/completions", {"messages": [HI], **never_ends(server)}, timeout=600).json()
        usage = document["usage"]
        assert document["choices"][0]["finish_reason"] == "length" and usage["total_tokens"] in (128, 129), usage


def test_strict_admission_refuses_what_cap_lowers(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), "--context", "128", "--batch", "1", "--admission", "strict") as server:
        answer = server.chat("Hi", max_tokens=500)
        assert answer.status == 400 and answer.json()["error"]["param"] == "max_tokens" and "128" in answer.json()["error"]["message"]
        assert "hearth-max-tokens" not in server.chat("Hi", max_tokens=4).headers


def test_silent_streams_show_signs_of_life(tmp_path, model_file):
    words = "word " * 1500
    with Server(tmp_path, model_file("smollm2"), "--context", "2048", "--batch", "1", "--sse-ping", "20ms", "--prompt-cache", "0B",
                "--prefill-chunk", "64") as server:
        chat = server.chat(words, stream=True, max_tokens=2).body.decode()
        assert chat.startswith("data: ") and '"role"' in chat.split("\n\n")[0], "the first event comes ahead of the prefill"
        assert "\n\n: ping\n\n" in chat
        message = server.post("/v1/messages", {"messages": [{"role": "user", "content": words}], "stream": True, "max_tokens": 2})
        names = [name for name, _ in message.events()]
        assert names[0] == "message_start" and "ping" in names[1:]


def test_no_signs_of_life_where_none_are_wanted(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), "--context", "2048", "--batch", "1", "--sse-ping", "0") as server:
        assert ": ping" not in server.chat("word " * 1500, stream=True, max_tokens=2).body.decode()


def test_pages_of_a_named_origin_may_call_and_no_others(tmp_path, model_file):
    origin = "https://example.org"
    with Server(tmp_path, model_file("smollm2"), "--context", "128", "--batch", "1", "--cors-origin", origin) as server:
        asked = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        answer = server.request("OPTIONS", "/v1/chat/completions", headers=asked)
        assert answer.status in (200, 204) and answer.headers["access-control-allow-origin"] == origin
        assert "POST" in answer.headers["access-control-allow-methods"]
        for foreign in ("https://example.org.evil", "null", "http://example.org"):
            answer = server.request("OPTIONS", "/v1/chat/completions", headers={**asked, "Origin": foreign})
            assert answer.status == 403 and "access-control-allow-origin" not in answer.headers, foreign
        body = {"messages": [HI], "max_tokens": 1}
        answer = server.post("/v1/chat/completions", body, headers={"Origin": origin})
        assert answer.status == 200 and answer.headers["access-control-allow-origin"] == origin
        assert server.post("/v1/chat/completions", body, headers={"Origin": "https://other.example"}).status == 403


@pytest.mark.parametrize("flags", [
    ["--context", "320", "--batch", "3", "--kv", "q8", "--temperature", "0", "--max-tokens", "5"],
    ["-c", "320", "--decode-concurrency", "3", "--kv-quant", "8", "--temp", "0", "-n", "5"],
    ["--max-model-len", "320", "--batch", "3", "--kv", "8", "--temp", "0", "-n", "5"],
], ids=["names", "short", "others"])
def test_flags_have_other_names(tmp_path, model_file, flags):
    with Server(tmp_path, model_file("smollm2"), *flags) as server:
        stats = server.get("/stats").json()
        assert stats["admission"]["max_safe_context"] == 320 and stats["batch"]["configured"] == 3
        assert stats["kv_quant"]["layers"] == {"kv4": 0, "kv8": 30, "bf16": 0}, stats["kv_quant"]
        answers = [server.post("/v1/chat/completions", {"messages": [HI]}).json() for _ in range(2)]
        assert answers[0]["choices"] == answers[1]["choices"] and answers[0]["usage"]["completion_tokens"] <= 5


def test_the_card_of_the_start_says_what_runs(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), "--context", "320", "--batch", "3", "--disk-cache", tmp_path / "kv", "--disk-cache-max", "1GB") as server:
        server.chat("Hi", max_tokens=1)
        card = "".join(server.log)
    for words in (r"is ready at http://127\.0\.0\.1:\d+", r"on the CPU with \d+ thread", "context 320 positions", "3 answers at once", r"KV cache \S+,",
                  "weights", "budget", r"prompt cache 2\.0+ GB", r"on the disk 1\.0+ GB", "no key needed"):
        assert re.search(words, card), (words, card)


def test_an_instruction_stands_before_what_is_embedded(tmp_path, model_file):
    with Server(tmp_path, model_file("minilm")) as embedder:
        def vector(text, **fields):
            answer = embedder.post("/v1/embeddings", {"input": text, **fields})
            assert answer.status == 200, answer.body
            return answer.json()["data"][0]["embedding"]

        told = vector("a ship in fog", instruction="Find weather.")
        assert told == vector("Instruct: Find weather.\nQuery:a ship in fog") != vector("a ship in fog")


def test_names_choose_a_model_a_file_or_an_adapter(tmp_path, model_file):
    """Spec server 6: a name, a revision, a part of a name in any case; behind a colon a file's label, else an adapter."""
    store = tmp_path / "hub"
    for repo, files in (("org/one", ["one.gguf"]), ("org/many", ["many-Q4_0.gguf", "many-Q8_0.gguf"])):
        snapshot = store / f"models--{repo.replace('/', '--')}" / "snapshots" / "0123456789abcdef0123456789abcdef01234567"
        snapshot.mkdir(parents=True)
        for folder in ("blobs", "refs"):
            (snapshot.parents[1] / folder).mkdir()
        for number, file in enumerate(files):
            (snapshot.parents[1] / "blobs" / f"{number:040x}").symlink_to(model_file("smollm2").resolve())
            (snapshot / file).symlink_to(f"../../blobs/{number:040x}")
        (snapshot.parents[1] / "refs" / "main").write_text(snapshot.name)
    with Server(tmp_path, "org/one", "--context", "128", "--batch", "1", env={"HF_HUB_CACHE": str(store)}) as server:
        def status(name):
            answer = server.chat("Hi", max_tokens=1, model=name, timeout=600)
            return answer.status, answer.json().get("model") or answer.json()["error"]["message"]

        for name in ("org/one", "org/one@main", "org/one@0123456789abcdef0123456789abcdef01234567", "ONE"):
            assert status(name)[0] == 200 and status(name)[1].startswith("org/one"), (name, status(name))
        assert status("org/many:q8_0")[0] == 200
        for name in ("org/many", "many"):
            code, said = status(name)
            assert code == 404 and "Q4_0" in said and "Q8_0" in said, (name, said)
        code, said = status("nobody/none")
        assert code == 404 and "org/one" in said, said
        code, said = status("org/one:style")
        assert code == 400 and "style" in said, said


def test_names_of_models_are_echoed_as_resolved(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), "--context", "128", "--batch", "1", "--any-model") as server:
        (model,) = server.get("/v1/models").json()["data"]
        for name in (None, model["id"], model["id"].lower(), "gpt-4o"):
            document = server.chat("Hi", max_tokens=1, **({"model": name} if name else {})).json()
            assert document["model"] == model["id"], name
        events = server.chat("Hi", max_tokens=1, model="gpt-4o", stream=True).events()
        assert {json.loads(data)["model"] for _, data in events[:-1]} == {model["id"]}
