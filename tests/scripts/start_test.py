"""./start in a copy of its scripts, with a cmake and a package database that only note what they are asked."""
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).parents[2]

FAKE_CMAKE = """#!/bin/bash
echo "cmake $*" >>"$FAKE/calls"
if [[ $1 == --preset ]]; then
  if [[ -e $FAKE/bad-cache && " $* " != *" --fresh "* ]]; then exit 1; fi
  mkdir -p "build/$2" && echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"build/$2/CMakeCache.txt"
  exit
fi
if [[ -e $FAKE/hangs ]]; then touch "$FAKE/hanging"; sleep 60; fi
if [[ -e $FAKE/build-fails ]]; then exit 1; fi
printf '#!/bin/bash\\nprintf "%%s|" "$@"\\n' >build/release/hearth
chmod +x build/release/hearth
"""
FAKE_DPKG_QUERY = """#!/bin/bash
shift 2
for name in "$@"; do if [[ ! -e $FAKE/missing-$name ]]; then echo "$name installed"; fi; done
"""


class Checkout:
    def __init__(self, folder: pathlib.Path):
        self.root = folder / "a clone"
        self.fake = folder / "fake"
        self.store = folder / "hub"
        for name in ("src", "cmake"):
            (self.root / name).mkdir(parents=True)
        for name in ("start", "scripts/lib", "scripts/check-includes"):
            source, target = ROOT / name, self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        for name in ("CMakeLists.txt", "CMakePresets.json", "src/main.cpp"):
            (self.root / name).touch()
        (self.fake / "bin").mkdir(parents=True)
        for name, text in (("cmake", FAKE_CMAKE), ("dpkg-query", FAKE_DPKG_QUERY)):
            path = self.fake / "bin" / name
            path.write_text(text)
            path.chmod(0o755)
        self.snapshot = self.store / "models--hearth--SmolLM2-135M-Instruct-Q4_1-GGUF"
        self.script("models", f'mkdir -p "{self.snapshot}/refs" "{self.snapshot}/snapshots/c0ffee"\n'
                    f'echo weights >"{self.snapshot}/snapshots/c0ffee/model.gguf"\n'
                    f'printf c0ffee >"{self.snapshot}/refs/main"\n')

    def script(self, name: str, body: str):
        path = self.root / "scripts" / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>"$FAKE/calls"\n{body}')
        path.chmod(0o755)

    @property
    def environment(self):
        return {"PATH": f"{self.fake}/bin:{os.environ['PATH']}", "HOME": str(self.fake), "FAKE": str(self.fake),
                "HF_HUB_CACHE": str(self.store)}

    def start(self, *arguments, **options):
        return subprocess.run([str(self.root / "start"), *arguments], env=self.environment, cwd="/", text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60, **options)

    def calls(self):
        path = self.fake / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [" ".join(line.split()[:2]) for line in lines]


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


ANSWER = "run|hearth/SmolLM2-135M-Instruct-Q4_1-GGUF|--|{}|"
EVERYTHING = ["cmake --preset", "cmake --build", "models smollm2"]


def test_first_run_sets_up_and_the_second_only_answers(checkout):
    done = checkout.start("why  is\nit?")
    assert (done.returncode, done.stdout) == (0, ANSWER.format("why  is\nit?")), done.stderr
    assert checkout.calls() == EVERYTHING
    done = checkout.start("-x")
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWER.format("-x"), "")
    assert checkout.calls() == []


def test_without_prompt_and_terminal_it_says_how_to_go_on(checkout):
    done = checkout.start()
    assert done.returncode == 0 and done.stdout == "" and "hearth is ready" in done.stderr


def test_usage(checkout):
    done = checkout.start("two", "words")
    assert done.returncode == 2 and "quotes" in done.stderr
    assert checkout.start("--help").stdout.startswith("usage: ./start")
    assert checkout.calls() == []


@pytest.mark.parametrize("change", [
    lambda root: (root / "src" / "main.cpp").write_text("changed"),
    lambda root: (root / "src" / "main.cpp").unlink(),
    lambda root: (root / "src" / "new.cpp").touch(),
    lambda root: (root / "CMakeLists.txt").write_text("changed"),
    lambda root: (root / "build" / "release" / "hearth").unlink(),
])
def test_a_changed_source_builds_again(checkout, change):
    checkout.start("x")
    checkout.calls()
    change(checkout.root)
    assert checkout.start("x").returncode == 0
    assert checkout.calls() == EVERYTHING[:2]


def test_a_moved_clone_configures_from_nothing(checkout):
    checkout.start("x")
    (checkout.fake / "calls").unlink()
    checkout.root = checkout.root.rename(checkout.root.with_name("moved"))
    assert checkout.start("x").returncode == 0
    assert "--fresh" in (checkout.fake / "calls").read_text().splitlines()[0]
    checkout.calls()
    checkout.start("x")
    assert checkout.calls() == []


def test_a_broken_cache_is_made_anew(checkout):
    (checkout.fake / "bad-cache").touch()
    assert checkout.start("x").returncode == 0
    assert checkout.calls() == ["cmake --preset", *EVERYTHING]


def test_a_failed_build_is_not_taken_for_a_finished_one(checkout):
    (checkout.fake / "build-fails").touch()
    done = checkout.start("x")
    assert done.returncode == 1 and done.stdout == "" and "build of release failed" in done.stderr
    (checkout.fake / "build-fails").unlink()
    checkout.calls()
    assert checkout.start("x").returncode == 0
    assert checkout.calls() == EVERYTHING


def test_a_failed_fetch_ends_with_its_code(checkout):
    checkout.script("models", "exit 7")
    done = checkout.start("x")
    assert done.returncode == 7 and done.stdout == ""


def test_a_ref_without_its_file_is_fetched_again(checkout):
    checkout.start("x")
    checkout.calls()
    for path in checkout.snapshot.rglob("*.gguf"):
        path.unlink()
    assert checkout.start("x").returncode == 0
    assert checkout.calls() == EVERYTHING[2:]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_while_building_then_completes(checkout, how):
    (checkout.fake / "hangs").touch()
    process = subprocess.Popen([str(checkout.root / "start"), "x"], env=checkout.environment, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (checkout.fake / "hanging").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, how)
    assert process.wait(timeout=30) != 0
    (checkout.fake / "hangs").unlink()
    checkout.calls()
    done = checkout.start("x")
    assert (done.returncode, done.stdout) == (0, ANSWER.format("x")), done.stderr
    assert checkout.calls() == EVERYTHING


def test_missing_packages_without_root_print_the_line_to_run():
    with tempfile.TemporaryDirectory() as folder:
        checkout = Checkout(pathlib.Path(folder))
        (checkout.fake / "missing-libfmt-dev").touch()
        (checkout.fake / "missing-ccache").touch()
        options = {}
        if os.geteuid() == 0:
            for path in [pathlib.Path(folder), *pathlib.Path(folder).rglob("*")]:
                path.chmod(path.stat().st_mode | stat.S_IROTH | (stat.S_IXOTH if path.is_dir() or path.stat().st_mode & 0o100 else 0))
            options = {"user": 65534, "group": 65534, "extra_groups": []}
        done = checkout.start("x", **options)
        assert done.returncode == 1, done.stderr
        assert "sudo apt-get update && sudo apt-get install -y --no-install-recommends ccache libfmt-dev\n" in done.stderr
        assert checkout.calls() == []


def test_missing_packages_as_root_are_installed_first(checkout):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    (checkout.fake / "missing-ccache").touch()
    for name in ("apt-get", "dpkg"):
        path = checkout.fake / "bin" / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>"$FAKE/apt"\n')
        path.chmod(0o755)
    assert checkout.start("x").returncode == 0
    apt = (checkout.fake / "apt").read_text().splitlines()
    assert apt[0] == "dpkg --configure -a" and apt[1].endswith(" update")
    assert apt[2].endswith("install -y --no-install-recommends ccache") and len(apt) == 3
