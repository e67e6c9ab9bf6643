"""The README's commands, as they stand there: each line that begins with hearth or curl is run, with another port."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from running import BINARY, ROOT, Server  # noqa: E402

STORE = {"hearth/SmolLM2-135M-Instruct-Q4_1-GGUF": "smollm2", "hearth/all-MiniLM-L6-v2": "minilm",
         "hearth/Qwen2.5-Coder-1.5B-Instruct-Q4_K_M-GGUF": "smollm2"}  # the name alone is looked at  # fmt: skip
# Not run here: what needs a network, or has tests of its own under this name.
ELSEWHERE = {
    "hearth launch --install claude": "tests/server/launch_test.py",
    "hearth launch web": "tests/server/launch_test.py",
    "hearth serve smollm2 --adapter DIR": "tests/server/adapters_test.py",
    "hearth serve smollm2 --detach": "tests/server/flags_test.py",
}


def commands():
    """Lines of the indented blocks that start a program, joined where one goes on, without their comments."""
    text = (ROOT / "README.md").read_text().split("## Figures")[0]
    found = []
    for block in re.findall(r"(?m)(?:^    .*\n)+", text):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r" {4}\S", line):
                found.append(line.strip())
            else:
                found[-1] += " " + line.strip()
    return [re.sub(r"\s{2,}#.*", "", line) for line in found]


def of_program(name):
    return [line for line in commands() if line.split()[0] == name]


@pytest.fixture(scope="module")
def home(tmp_path_factory, model_file):
    home = tmp_path_factory.mktemp("readme")
    for repo, name in STORE.items():
        source = model_file(name)
        snapshot = home / "hub" / f"models--{repo.replace('/', '--')}" / "snapshots" / "1"
        if source.is_dir():
            shutil.copytree(source, snapshot)
        else:
            snapshot.mkdir(parents=True)
            shutil.copy(source, snapshot)
        (snapshot.parents[1] / "refs").mkdir()
        (snapshot.parents[1] / "refs" / "main").write_text("1")
    return home


@pytest.fixture(scope="module")
def server(home):
    with Server(home, "smollm2", "--context", "2048", "--max-tokens", "64", env={"HF_HUB_CACHE": str(home / "hub")}) as running:
        yield running


@pytest.mark.parametrize("line", of_program("curl"))
def test_curl(server, line):
    if shutil.which("curl") is None:
        pytest.fail("the package curl is not installed")
    words = shlex.split(line.replace("127.0.0.1:8080", f"{server.host}:{server.port}"))
    done = subprocess.run([*words, "-sS"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    body, answer = json.loads(words[words.index("-d") + 1]), json.loads(done.stdout)
    if "input" in body:
        assert [len(d["embedding"]) for d in answer["data"]] == [384, 384]
        return
    message = answer["choices"][0]["message"]
    if "tools" in body:
        assert "city" in json.loads(message["tool_calls"][0]["function"]["arguments"])
    elif "response_format" in body:
        assert set(json.loads(message["content"])) == {"name", "age"}
    else:
        assert message["content"]


@pytest.mark.parametrize("line", [line for line in of_program("hearth") if line not in ELSEWHERE])
def test_hearth(server, home, tmp_path, model_file, line):
    words = shlex.split(line)[1:]
    if words[0] == "serve":
        if "--host" in words:
            socket = Server(home, *words[1:], "--context", "256", env={**server.env, "XDG_RUNTIME_DIR": str(tmp_path)})
            with socket as running:
                assert running.url.startswith("unix:")
                url = ["--unix-socket", str(home / "hearth.sock"), "http://localhost/v1/models"]
                assert json.loads(subprocess.run(["curl", "-sS", *url], capture_output=True).stdout)["data"]
            return
        found = subprocess.run([BINARY, "show", words[1]], env=server.env, capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
        return
    if words[0] == "import":
        (tmp_path / "FILE.gguf").symlink_to(model_file("smollm2"))
    env = {**server.env, "HF_HUB_CACHE": str(tmp_path / "hub")} if words[0] == "import" else server.env
    done = subprocess.run([BINARY, *words], env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 or words[0] == "doctor", done.stderr
    assert done.stdout or words[0] == "run", "a chat without questions says nothing"


def test_what_is_tested_elsewhere_is_named_there():
    for line, file in ELSEWHERE.items():
        assert line in of_program("hearth"), line
        assert line.split()[1] in (ROOT / file).read_text() and line.split("--")[-1].split()[0] in (ROOT / file).read_text()


def test_scripts_files_and_verbs_of_the_text_exist():
    text = (ROOT / "README.md").read_text()
    for name in re.findall(r"`((?:docs|contrib|bench|scripts)/[\w./-]*[\w/])", text) + ["start", "test"]:
        assert (ROOT / name).exists(), name
    known = (ROOT / "scripts" / "models").read_text()
    for model in re.findall(r"scripts/models ([a-z][\w.-]*)", text):
        assert model in known, model
    for verb in set(re.findall(r"`hearth ([a-z]+)", text)):
        done = subprocess.run([BINARY, verb, "--help"], capture_output=True, text=True, env={"PATH": os.environ["PATH"], "HOME": "/"})
        assert done.returncode == 0, verb
