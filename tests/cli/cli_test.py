"""The command line end to end: exit codes, sentences, bad input, the store under failures and kills."""
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth").absolute()


def gguf(name, padding=0):
    """A GGUF without tensors: one key, then `padding` bytes."""
    key = b"general.name"
    value = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(name)) + name.encode()
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + value
    return data + b"\0" * (-len(data) % 32 + padding)


@pytest.fixture
def run(tmp_path):
    """run(*args) -> CompletedProcess, in an environment of its own."""
    if not BINARY.is_file():
        pytest.fail(f"{BINARY}: no hearth binary there; HEARTH_BIN names it")
    (tmp_path / "cwd").mkdir()

    def call(*args, env=None, input="", **more):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "HF_HUB_CACHE": str(tmp_path / "hub"),
            "TERM": "xterm-256color",
            **(env or {}),
        }
        return subprocess.run([BINARY, *map(str, args)], env=environment, input=input, text=True, capture_output=True,
                              timeout=60, cwd=tmp_path / "cwd", **more)

    return call


def expect(done, code, *parts):
    assert done.returncode == code, (done.args, done.stdout, done.stderr)
    for part in parts:
        assert part in done.stderr, (done.args, part, done.stderr)
    if code not in (0, 130):
        first = done.stderr.splitlines()[0]
        assert first.startswith("hearth: ") and len(done.stderr.splitlines()) <= 2, done.stderr


def hidden(store):
    """Temporary files of ours below the store."""
    return [p for p in store.rglob("*") if p.name.startswith(".hearth-") or p.name.endswith(".tmp")] if store.exists() else []


def verbs(run):
    lines = run("--help").stdout.split("Verbs:\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]


def test_every_verb_has_help_of_80_columns_and_refuses_unknown_flags(run):
    names = verbs(run)
    assert {"ls", "import", "doctor", "tokenize", "config", "completion", "version"} <= set(names)
    for name in names:
        done = run(name, "--help")
        expect(done, 0)
        assert f"hearth {name}" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 80, name
        assert "\x1b" not in done.stdout
        expect(run(name, "--no-such-flag-here"), 2, "has no flag --no-such-flag-here", f"hearth {name} --help")
        assert run("help", name).stdout == done.stdout


@pytest.mark.parametrize("words, parts", [
    (["verion"], ["no verb 'verion'", "did you mean version?"]),
    (["qqqqqqqq"], ["no verb", "hearth --help"]),
    (["version", "--licen"], ["did you mean --licenses?"]),
    (["version", "extra"], ["'extra' is one more"]),
    (["completion"], ["needs SHELL"]),
    (["completion", "pash"], ["one of bash, zsh, fish", "did you mean bash?"]),
    (["ls", "--max-size", "big"], ["--max-size is 'big'"]),
    (["ls", "--max-size"], ["max-size"]),
    (["ls", "--json=maybe"], ["--json"]),
    (["ls", "--color", "purple"], ["auto, always, never"]),
    (["import"], ["needs PATH"]),
    (["tokenize", "x"], ["TEXT or --chat FILE"]),
    # Refused before a model is looked for.
    (["generate", "x", "hi", "--top-p", "0"], ["top-p is 0, expected more than 0, up to 1"]),
    (["generate", "x", "hi", "--min-p", "1.1"], ["--min-p is '1.1'"]),
    (["generate", "x", "hi", "--kv-quant", "5"], ["--kv is '5'", "off, 8, 4"]),
    (["generate", "x", "hi", "--seed", "-1"], ["--seed is '-1'"]),
    (["kl", "x", "y"], ["kl needs --data FILE"]),
])
def test_usage_errors_exit_2_and_name_the_next_step(run, words, parts):
    expect(run(*words), 2, *parts)


def test_spellings_of_the_cache_format_and_every_drawn_seed_are_taken(run):
    for more in (["--kv-quant", "8"], ["--kv-quant", "off"], ["--kv", "q4"], ["--seed", str(2**63 - 1)]):
        expect(run("generate", "nobody/nothing", "hi", *more), 3, "nobody/nothing")


def test_no_verb_shows_the_verbs_and_fails(run):
    done = run()
    assert done.returncode == 2 and "Verbs:" in done.stderr and done.stdout == ""


def test_flags_before_the_verb_and_the_version(run):
    expect(run("--quiet", "--color", "never", "version"), 0)
    document = json.loads(run("version", "--json", "--licenses").stdout)
    words = run("--version").stdout.split()
    assert document["schema_version"] == 1 and document["version"] == words[1]
    assert re.fullmatch(r"[0-9a-f]{12}\+?|unknown", document["commit"]) and words[2] == f"({document['commit']},"
    assert {row["name"] for row in document["licenses"]} >= {"hearth", "fmt", "CLI11", "OpenSSL"}


def test_version_costs_little(run):
    """Processor time, not the clock's: a loaded machine does not count."""
    assert min(processor_seconds(run, "version") for _ in range(10)) <= 0.05


def processor_seconds(run, *args):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    assert run(*args).returncode == 0
    return used() - before


def test_output_that_cannot_be_written_is_a_failure(run, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([BINARY, "version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "standard output" in done.stderr


def test_completions_load_without_output(run, tmp_path):
    for shell, check in (("bash", ["bash", "-c"]), ("zsh", ["zsh", "-fc"]), ("fish", ["fish", "-c"])):
        script = tmp_path / f"completion.{shell}"
        script.write_text(run("completion", shell).stdout)
        if shutil.which(shell):
            done = subprocess.run([*check, f"source {script}"], capture_output=True, text=True)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), shell
    words = 'COMP_WORDS=(hearth im); COMP_CWORD=1; _hearth; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", f"source {tmp_path}/completion.bash; {words}"], capture_output=True, text=True)
    assert done.stdout.strip() == "import"


def test_settings_order_and_origin(run, tmp_path):
    home = tmp_path / "home" / ".config" / "hearth"
    home.mkdir(parents=True)

    def color():
        done = run("config", "ls", "--show-origin", "--json", env=environment)
        expect(done, 0)
        row = next(r for r in json.loads(done.stdout)["settings"] if r["name"] == "max-size")
        return row["value"], row["where"]

    environment = {}
    (home / "config.toml").write_text('max_size = "1GB"\n')
    assert color() == ("1GB", str(home / "config.toml") + ":1")
    (tmp_path / "cwd" / "hearth.toml").write_text('# ours\n[ls]\nmax-size = "2GB"\n')
    assert color() == ("2GB", "hearth.toml:3")
    environment = {"HEARTH_MAX_SIZE": "3GB"}
    assert color() == ("3GB", "HEARTH_MAX_SIZE")
    expect(run("ls", env={"HEARTH_MAX_SIZE": "x"}), 2, "HEARTH_MAX_SIZE is 'x'")
    (tmp_path / "cwd" / "hearth.toml").write_text("max-size = true\n")
    expect(run("ls"), 2, "hearth.toml:1: max-size: expected a size (a number of bytes, or a string such as \"4GB\"), found a boolean")
    (tmp_path / "cwd" / "hearth.toml").write_text("max-sise = 3\n")
    done = run("ls")
    assert done.returncode == 0 and "hearth.toml:1: unknown setting 'max-sise'; did you mean max-size?" in done.stderr
    (tmp_path / "cwd" / "hearth.toml").write_text("max-size\n")
    expect(run("ls"), 2, "hearth.toml:1")
    expect(run("version"), 0)
    assert run("doctor").returncode == 1


def test_colour_only_when_asked_or_on_a_terminal(run, tmp_path):
    (tmp_path / "m.gguf").write_bytes(gguf("m"))
    run("import", tmp_path / "m.gguf")
    assert "\x1b" not in run("ls").stdout
    assert "\x1b" in run("ls", "--color", "always").stdout
    assert "\x1b" in run("ls", env={"CLICOLOR_FORCE": "1"}).stdout
    assert "\x1b" not in run("ls", env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}).stdout


def test_a_store_that_cannot_be_read_is_not_empty():
    with tempfile.TemporaryDirectory() as folder:  # below a folder that everybody may pass
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        shutil.copy(BINARY, folder / "hearth")
        (folder / "m.gguf").write_bytes(gguf("one"))
        bound = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}

        def call(*args, **more):
            environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "HF_HUB_CACHE": str(folder / "hub")}
            return subprocess.run([folder / "hearth", *args], env=environment, capture_output=True, text=True, cwd=folder, **more)

        for name in ("org/open", "org/shut"):
            expect(call("import", "m.gguf", "--name", name), 0)
        shut = folder / "hub" / "models--org--shut"
        shut.chmod(0)
        done = call("ls", **bound)
        expect(done, 0)
        assert "gguf" in done.stdout.splitlines()[1] and done.stdout.splitlines()[2].endswith(
            f"cannot read {shut}/snapshots: Permission denied"), done.stdout
        rows = json.loads(call("ls", "--json", "--all-revisions", **bound).stdout)["models"]
        assert [(r["repo"], r["format"], r["complete"]) for r in rows] == [("org/open", "gguf", True), ("org/shut", None, False)]
        assert "1 unreadable" in call("doctor", **bound).stdout
        expect(call("show", "org/shut", **bound), 1, f"cannot read {shut}/snapshots: Permission denied")
        (folder / "hub").chmod(0)
        for words in (["ls"], ["show", "shut"]):
            expect(call(*words, **bound), 1, "cannot read", f"{folder / 'hub'}", "Permission denied")
        (folder / "hub").chmod(0o755)
        shut.chmod(0o755)


def test_import_list_and_names(run, tmp_path):
    source = tmp_path / "Tiny-1M.gguf"
    source.write_bytes(gguf("one"))
    done = run("import", source, "--json")
    expect(done, 0)
    first = json.loads(done.stdout)
    assert first["repo"] == "local/Tiny-1M" and first["size_bytes"] == source.stat().st_size
    assert (pathlib.Path(first["path"]) / "Tiny-1M.gguf").read_bytes() == source.read_bytes()
    run("import", source, "--name", "org/Tiny-2M")
    rows = json.loads(run("ls", "--json").stdout)["models"]
    assert [row["repo"] for row in rows] == ["local/Tiny-1M", "org/Tiny-2M"]
    assert run("ls", "--names", "2m").stdout == "org/Tiny-2M\n"
    expect(run("tokenize", "tiny", "x"), 3, "names 2 models", "local/Tiny-1M, org/Tiny-2M")
    expect(run("tokenize", "org/Tiny-3M", "x"), 3, "did you mean org/Tiny-2M")
    expect(run("tokenize", str(tmp_path / "Tiny-1N.gguf"), "x"), 3, "no such file", "Tiny-1M.gguf")
    expect(run("tokenize", "org/Tiny-2M:style", "x"), 2, "adapter")


def test_import_refuses_what_is_no_model(run, tmp_path):
    store = tmp_path / "hub"
    (tmp_path / "cut.gguf").write_bytes(gguf("x")[:40])
    (tmp_path / "text.gguf").write_text("hello")
    (tmp_path / "empty.gguf").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    expect(run("import", tmp_path / "absent.gguf"), 3, "absent.gguf")
    expect(run("import", tmp_path / "cut.gguf"), 1, "cut.gguf")
    expect(run("import", tmp_path / "text.gguf"), 1, "text.gguf")
    expect(run("import", tmp_path / "empty.gguf"), 1, "empty.gguf")
    expect(run("import", tmp_path / "folder"), 2, "holds no model")
    (tmp_path / "good.gguf").write_bytes(gguf("x"))
    expect(run("import", tmp_path / "good.gguf", "--name", "nameless"), 2, "ORG/NAME")
    assert not store.exists()


def test_import_into_a_store_that_cannot_be_written(run, tmp_path):
    source = tmp_path / "m.gguf"
    source.write_bytes(gguf("x"))
    (tmp_path / "file").write_text("")
    done = run("import", source, env={"HF_HUB_CACHE": str(tmp_path / "file" / "hub")})
    expect(done, 1, str(tmp_path / "file"))
    if os.geteuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        expect(run("import", source, env={"HF_HUB_CACHE": str(tmp_path / "closed")}), 1, "HF_HUB_CACHE")


def test_import_beyond_the_file_size_limit(run, tmp_path):
    source = tmp_path / "m.gguf"
    source.write_bytes(gguf("x", padding=8 << 20))
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # noqa: E731
    expect(run("import", source, preexec_fn=limit), 1, "cannot write")
    assert hidden(tmp_path / "hub") == [] and not list((tmp_path / "hub").glob("models--*"))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("a small file system needs root and mount")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_import_without_room(run, tmp_path, small_disk):
    source = tmp_path / "m.gguf"
    source.write_bytes(gguf("x", padding=8 << 20))
    environment = {"HF_HUB_CACHE": str(small_disk / "hub")}
    expect(run("import", source, env=environment), 1, "no room", str(source.stat().st_size), "free")
    small = tmp_path / "s.gguf"
    small.write_bytes(gguf("y"))
    expect(run("import", small, "--name", "o/n", env=environment), 0)
    # The repository exists, so the room is found to be short while writing.
    expect(run("import", source, "--name", "o/n", env=environment), 1, "No space left", "bytes are free")
    assert hidden(small_disk) == []
    assert run("ls", "--names", env=environment).stdout == "o/n\n"


def test_killed_while_importing_leaves_nothing_half_written(run, tmp_path):
    store = tmp_path / "hub"
    source = tmp_path / "big.gguf"
    source.write_bytes(gguf("big", padding=48 << 20))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HF_HUB_CACHE": str(store)}
    choose, killed = random.Random(7), 0
    for attempt in range(20):
        process = subprocess.Popen([BINARY, "import", source, "--name", "o/big", "--quiet"], env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=tmp_path)
        time.sleep(choose.random() * 0.15)
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed += process.returncode == -signal.SIGKILL
        # Whatever a reader finds is whole.
        for link in store.glob("models--o--big/snapshots/[!.]*/*.gguf"):
            assert link.stat().st_size == source.stat().st_size, attempt
        for ref in store.glob("models--o--big/refs/main"):
            assert (ref.parent.parent / "snapshots" / ref.read_text()).is_dir(), attempt
        done = run("ls", "--json")
        assert done.returncode == 0
        assert all(row["complete"] for row in json.loads(done.stdout)["models"]), attempt
    assert killed > 0
    # A file of other content begins anew where a kill left temporaries; they are gone afterwards.
    expect(run("import", source, "--name", "o/big"), 0)
    assert hidden(store) == []
    assert (next(store.glob("models--o--big/snapshots/*/big.gguf"))).read_bytes() == source.read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_import_says_so_and_cleans_up(run, tmp_path, number):
    source = tmp_path / "big.gguf"
    with open(source, "wb") as file:
        file.write(gguf("big"))
        file.truncate(8 << 30)  # sparse: long enough to be interrupted, also on a busy machine
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "hub")}
    process = subprocess.Popen([BINARY, "import", source, "--name", "o/big"], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, cwd=tmp_path,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # nohup's child would ignore it
    while process.poll() is None and not hidden(tmp_path / "hub"):
        time.sleep(0.01)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and "cancelled" in stderr
    assert not list((tmp_path / "hub").glob("models--*"))


def test_two_imports_of_one_name(run, tmp_path):
    source = tmp_path / "big.gguf"
    with open(source, "wb") as file:
        file.write(gguf("big"))
        file.truncate(2 << 30)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "hub")}
    process = subprocess.Popen([BINARY, "import", source, "--name", "o/big", "--quiet"], env=environment, cwd=tmp_path)
    while process.poll() is None and not hidden(tmp_path / "hub"):
        time.sleep(0.01)
    small = tmp_path / "s.gguf"
    small.write_bytes(gguf("y"))
    expect(run("import", small, "--name", "o/big"), 1, f"pid {process.pid}")
    process.kill()
    process.wait()
    expect(run("import", small, "--name", "o/big"), 0)
    assert hidden(tmp_path / "hub") == []


def test_doctor_reports_each_line_with_its_fix(run, tmp_path):
    done = run("doctor", "--json")
    document = json.loads(done.stdout)
    rows = {row["check"]: row for row in document["checks"]}
    assert {"version", "cpu", "kernels", "memory", "cgroup", "huge pages", "gpu", "disk", "store", "models",
            "stale files", "settings"} <= set(rows)
    assert done.returncode == (0 if document["healthy"] else 1)
    assert all("fix" in row for row in rows.values() if row["health"] != "ok")
    assert "CUDA is not part of this build" in rows["gpu"]["text"]
    assert not (tmp_path / "hub").exists()  # a check leaves nothing behind
    (tmp_path / "file").write_text("")
    broken = run("doctor", "--json", env={"HF_HUB_CACHE": str(tmp_path / "file" / "hub"), "HEARTH_ISA": "mmx"})
    assert broken.returncode == 1
    failing = {row["check"] for row in json.loads(broken.stdout)["checks"] if row["health"] == "fail"}
    assert {"store", "kernels"} <= failing


def test_the_python_client_reads_our_store_and_we_read_its(run, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    source = tmp_path / "m.gguf"
    source.write_bytes(gguf("x"))
    first = json.loads(run("import", source, "--name", "o/n", "--json").stdout)
    info = hub.scan_cache_dir(tmp_path / "hub")
    (repo,) = info.repos
    assert repo.repo_id == "o/n" and repo.size_on_disk == source.stat().st_size
    assert hub.try_to_load_from_cache("o/n", "m.gguf", cache_dir=tmp_path / "hub") == str(pathlib.Path(first["path"]) / "m.gguf")
