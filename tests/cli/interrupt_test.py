"""Ctrl-C in the long phases of every command: exit code 130, soon, and nothing half-written."""
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth").absolute()
SOON = 5  # seconds; a second is promised, on a machine that does nothing else


@pytest.fixture
def start(tmp_path):
    """start(*args) -> a process of hearth in a home, store and working folder of its own; all are ended in the end."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "HF_HUB_CACHE": str(tmp_path / "hub"),
                   "XDG_RUNTIME_DIR": str(tmp_path / "run"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HEARTH_THREADS": "1"}
    (tmp_path / "here").mkdir()
    begun = []

    def call(*args):
        process = subprocess.Popen([BINARY, *map(str, args)], env=environment, cwd=tmp_path / "here", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun.append(process)
        return process

    yield call
    for process in begun:
        process.kill()
        process.wait()


def children(process):
    try:
        return [int(pid) for file in pathlib.Path(f"/proc/{process.pid}/task").glob("*/children") for pid in file.read_text().split()]
    except OSError:
        return []


def words(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def comes(process, what):
    """Waits for what() of a process that still runs."""
    deadline = time.monotonic() + 60
    while not (found := what()):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.001)
    return found


def interrupted(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SOON)
    assert process.returncode == 130, (process.args, process.returncode, err)
    return out, err


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("model, args", [
    ("smollm2", ["perplexity", "MODEL", "--data", "TEXT"]),
    ("smollm2", ["kl", "MODEL", "MODEL", "--data", "TEXT"]),
    ("smollm2", ["bench", "MODEL", "--runs", "1000"]),
    ("smollm2", ["bench", "MODEL", "--runs", "1000", "--parallel", "4"]),
    ("smollm2", ["probe", "cpu", "MODEL"]),
    pytest.param("qwen-1.5b", ["doctor", "MODEL", "--deep"], marks=pytest.mark.full),
    ("smollm2", ["generate", "MODEL", "LONG", "-n", "1", "--executor", "reference"]),
    ("smollm2", ["run", "MODEL", "LONG", "-n", "1", "--executor", "reference"]),
    ("smollm2", ["logits", "MODEL", "--ids", "IDS", "-o", "out.npy"]),
    ("smollm2", ["logits", "MODEL", "--ids", "IDS", "-o", "out.npy", "--executor", "reference"]),
    ("minilm", ["embed", "MODEL", *["word " * 200] * 200, "--executor", "reference"]),
])
def test_while_it_computes(start, tmp_path, model_file, model, args):
    text = tmp_path / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 40_000)
    stand = {"MODEL": model_file(model), "TEXT": text, "LONG": "word " * 4000, "IDS": ",".join(["5"] * 4000)}
    for busy in (0.05, 0.15):  # as it begins to load, and well into its work
        process = start(*[stand.get(a, a) for a in args])
        comes(process, lambda: cpu_seconds(process) >= busy)
        interrupted(process)
    assert list((tmp_path / "here").iterdir()) == []


@pytest.fixture
def store(tmp_path, model_file):
    """A store of six models, all the same file."""
    for number in range(6):
        snapshot = tmp_path / "hub" / f"models--toys--m{number}" / "snapshots" / "1"
        snapshot.mkdir(parents=True)
        if number == 0:
            shutil.copy(model_file("smollm2"), snapshot / "model.gguf")
        else:
            os.link(tmp_path / "hub" / "models--toys--m0" / "snapshots" / "1" / "model.gguf", snapshot / "model.gguf")
        (snapshot.parents[1] / "refs").mkdir()
        (snapshot.parents[1] / "refs" / "main").write_text("1")


@pytest.mark.parametrize("sent, code", [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_while_serve_reads_headers_to_choose_a_model(start, store, sent, code):
    process = start("serve", "--port", "0")
    reader = comes(process, lambda: [pid for pid in children(process) if b"headers" in words(pid)])[0]
    os.kill(reader, signal.SIGSTOP)  # it will not be ready before it is waited for no longer
    process.send_signal(sent)
    _, err = process.communicate(timeout=SOON)
    assert process.returncode == code, err
    assert ("interrupted" in err) == (sent == signal.SIGINT), err
    assert words(reader) == [], "the reader of headers is left behind"


def test_while_a_detached_server_starts(start, store):
    process = start("serve", "--port", "0", "--detach")
    server = comes(process, lambda: children(process))[0]
    _, err = interrupted(process)
    assert "no server was started" in err
    assert words(server) == [], "a server that nobody waits for is left behind"


def test_while_logits_are_computed(start, tmp_path, model_file):
    """A step of the reference executor takes many seconds: nobody waits for its end."""
    process = start("logits", model_file("smollm2"), "--ids", ",".join(["5"] * 4000), "-o", "out.npy", "--executor", "reference")
    begun = comes(process, lambda: list((tmp_path / "here").iterdir()))
    assert begun[0].name.startswith(".out.npy.")
    _, err = interrupted(process)
    assert "out.npy is not written" in err
    assert list((tmp_path / "here").iterdir()) == []


def test_a_disk_is_no_model(start):
    out, err = start("import", "/").communicate(timeout=SOON)
    assert "hearth: / is no model's folder" in err or "hearth: / holds no model" in err, err


def test_while_a_file_is_imported(start, tmp_path, model_file):
    big = tmp_path / "big.gguf"
    shutil.copy(model_file("smollm2"), big)
    with open(big, "r+b") as file:
        file.truncate(8 << 30)  # sparse
    process = start("import", big, "--name", "toys/big")
    comes(process, lambda: any(p.is_file() and p.stat().st_size for p in (tmp_path / "hub").rglob(".hearth-*")) or
          cpu_seconds(process) > 0.5)
    _, err = interrupted(process)
    assert "cancelled" in err
    assert not list((tmp_path / "hub").glob("models--*")) and not list((tmp_path / "hub").rglob(".hearth-*"))
