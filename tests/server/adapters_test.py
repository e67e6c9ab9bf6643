"""serve --adapter: answers go through it unless a request says "none"; a bad one fails the start."""
import pytest
from oracle import adapters
from running import Server


def test_answers_go_through_the_adapter_unless_told_not_to(tmp_path, model_file, hearth, server):
    """Both kinds in one batch; base answers are those of a server without it."""
    path = adapters.smollm2_style(tmp_path / "style")
    question = "Why is the sky blue?"
    alone = hearth.json("generate", model_file("smollm2"), question, "--max-tokens", 16, "--temperature", 0, "--adapter", path)
    with Server(tmp_path, model_file("smollm2"), "--context", "512", "--adapter", path) as running:
        assert [a["id"] for a in running.get("/v1/adapters").json()["data"]] == ["style"]

        def text(**fields):
            answer = running.chat(question, **fields)
            assert answer.status == 200, answer.body
            return answer.json()["choices"][0]["message"]["content"]

        base = server.chat(question).json()["choices"][0]["message"]["content"]
        for _ in range(2):  # the second time with warm prefixes of both kinds
            assert text() == text(adapter="style") == alone["text"] != base
            assert text(adapter="none") == base


def test_an_unknown_adapter_is_refused(server):
    answer = server.chat("Hi", adapter="nowhere")
    assert answer.status == 400 and answer.json()["error"]["param"] == "adapter", answer.body
    assert server.get("/v1/adapters").json() == {"object": "list", "data": []}
    assert server.chat("Hi", adapter="none").json()["choices"] == server.chat("Hi").json()["choices"]


def test_a_folder_without_an_adapter_fails_the_start(tmp_path, model_file):
    (tmp_path / "empty").mkdir()
    broken = Server(tmp_path, model_file("smollm2"), "--adapter", tmp_path / "empty")
    with pytest.raises(AssertionError):
        broken.start()
    assert broken.process.wait(10) == 3 and "adapter" in "".join(broken.log), broken.log
