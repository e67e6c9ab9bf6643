"""Memory that is predicted, repacked weights on disk, weights that are no numbers: end to end on the starter model."""
import json
import os
import pathlib
import shutil
import subprocess
import time

import gguf
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth").absolute()
PROMPT = ("--raw", "-n", "8", "--ignore-eos", "--ids")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("robust")


@pytest.fixture
def run(store):
    """run(*args) -> CompletedProcess; all tests of this file share one cache folder."""
    if not BINARY.is_file():
        pytest.fail(f"{BINARY}: no hearth binary there; HEARTH_BIN names it")

    def call(*args, env=None, code=0, **more):
        environment = {"PATH": os.environ["PATH"], "HOME": str(store / "home"), "HF_HUB_CACHE": str(store / "hub"),
                       "XDG_CACHE_HOME": str(store / "cache"), **(env or {})}
        done = subprocess.run([BINARY, *map(str, args)], env=environment, text=True, capture_output=True, timeout=300, **more)
        assert done.returncode == code, (done.args, done.stdout[-500:], done.stderr)
        return done

    return call


def answer(run, model, *flags, **more):
    return run("generate", model, "Once upon a time", *PROMPT, *flags, **more)


def packed(folder):
    return sorted((folder / "hearth" / "packed").glob("*.packed"))


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context, kv", [(192, "bf16"), (768, "bf16"), (768, "q8"), (512, "f32")])
def test_the_peak_is_as_predicted(run, model_file, context, kv):
    model = model_file("smollm2")
    flags = ("--context", context, "--kv", kv)
    need = json.loads(run("fit", model, "--ctx", context, "--json", *flags).stdout)["report"]["total_bytes"]
    ids = ",".join(str(100 + i % 1000) for i in range(context - 4))
    answer(run, model)  # repacked by now
    peak = json.loads(run("generate", model, "--prompt-ids", ids, "-n", "4", "--ignore-eos", "--json", *flags).stdout)
    peak = peak["stats"]["peak_rss_bytes"]
    assert peak <= need <= 1.1 * peak + 20e6, (peak, need)


def test_the_first_load_stays_below_the_prediction_too(run, model_file, tmp_path):
    model = model_file("smollm2")
    need = json.loads(run("fit", model, "--ctx", 128, "--json").stdout)["report"]["total_bytes"]
    done = run("generate", model, "x", "-n", "1", "--context", "128", "--json", env={"XDG_CACHE_HOME": str(tmp_path)})
    peak = json.loads(done.stdout)["stats"]["peak_rss_bytes"]
    assert peak <= need, (peak, need)
    assert peak <= 1.15 * model.stat().st_size + 150e6 + 10e6, peak  # the bound, with the cache of 128 positions


def test_two_models_share_the_budget(run, model_file, tmp_path):
    model = model_file("smollm2")
    text = tmp_path / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 20)
    flags = ("--data", text, "--windows", "1", "--window", "32")
    need = json.loads(run("fit", model, "--ctx", "32", "--context", "32", "--json").stdout)["report"]["total_bytes"]
    run("kl", model, model, *flags, "--memory-budget", f"{3 * need}")
    done = run("kl", model, model, *flags, "--memory-budget", f"{int(1.3 * need)}", code=4)
    assert "the memory budget is" in done.stderr


def test_kl_of_a_model_with_itself_says_what_differs(run, model_file, tmp_path):
    model = model_file("smollm2")
    text = tmp_path / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 20)
    flags = ("--data", text, "--windows", "1", "--window", "32")
    alike = run("kl", model, model, *flags)
    assert "same settings" in alike.stderr and "mean 0.000e+00" in alike.stdout
    apart = run("kl", model, model, *flags, "--a-numerics", "parity", "--a-kv", "f32")
    assert "warning" not in apart.stderr
    assert "numerics parity, kv f32 || numerics deterministic, kv config" in apart.stdout


def test_a_text_too_short_is_refused_before_weights_are_read(run, model_file, tmp_path):
    text = tmp_path / "short.txt"
    text.write_text("A few words only.")
    done = run("perplexity", model_file("smollm2"), "--data", text, code=2, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert "perplexity needs at least 512" in done.stderr
    assert packed(tmp_path / "cache") == []  # a load leaves repacked weights there


def test_numbers_that_make_no_sense_are_refused(run, model_file):
    done = run("generate", model_file("smollm2"), "x", "--memory-budget", "0", code=2)
    assert "--memory-budget" in done.stderr and "at least 1" in done.stderr
    done = run("import", model_file("smollm2"), "--name", "", code=2)
    assert "--name is empty" in done.stderr
    done = run("doctor", model_file("smollm2"), code=2)
    assert "--deep" in done.stderr


def test_more_threads_than_cpus_are_warned_about(run, model_file):
    cpus = len(os.sched_getaffinity(0))
    done = answer(run, model_file("smollm2"), "-t", cpus + 1, "-n", "1")
    assert f"warning: {cpus + 1} threads on {cpus} CPU" in done.stderr
    assert "warning" not in answer(run, model_file("smollm2"), "-t", cpus).stderr


# --- repacked weights on disk ----------------------------------------------------------------------------------------


def test_a_damaged_file_of_packed_weights_is_made_anew(run, model_file, store):
    model = model_file("smollm2")
    want = answer(run, model).stdout
    (path,) = packed(store / "cache")
    good = path.read_bytes()
    for damage in ("flip", "cut", "zeros"):
        bad = bytearray(good)
        if damage == "flip":
            bad[len(bad) // 2] ^= 4
        elif damage == "cut":
            del bad[-1000:]
        else:
            bad[-(len(bad) // 3):] = bytes(len(bad) // 3)
        path.write_bytes(bad)
        done = answer(run, model)
        assert done.stdout == want and "packed" in done.stderr and "anew" in done.stderr, (damage, done.stderr)
        again = answer(run, model)
        assert again.stdout == want and "anew" not in again.stderr, again.stderr
        assert path.read_bytes() == good, damage


def test_packed_weights_keep_to_their_room(run, model_file, store, tmp_path):
    model, cache = model_file("smollm2"), tmp_path / "cache"
    env = {"XDG_CACHE_HOME": str(cache)}
    answer(run, model, "--pack-cache", "0", env=env)
    assert packed(cache) == []
    done = answer(run, model, "--pack-cache", "1MB", env=env)
    assert packed(cache) == [] and "--pack-cache allows 1000000" in done.stderr

    (cache / "hearth" / "packed").mkdir(parents=True, exist_ok=True)
    old = cache / "hearth" / "packed" / "old.packed"
    old.write_bytes(bytes(60_000_000))
    os.utime(old, (1, 1))
    answer(run, model, "--pack-cache", "120MB", env=env)
    assert len(packed(cache)) == 1 and not old.exists()


def test_packed_weights_that_cannot_be_kept_are_done_without(run, model_file, tmp_path):
    (tmp_path / "hearth").write_text("a file in the way")
    done = answer(run, model_file("smollm2"), env={"XDG_CACHE_HOME": str(tmp_path)})
    assert "packed weights are not kept" in done.stderr


def test_killed_while_packed_weights_are_written(run, model_file, tmp_path):
    model, env = model_file("smollm2"), {"XDG_CACHE_HOME": str(tmp_path)}
    folder = tmp_path / "hearth" / "packed"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **env}
    for _ in range(3):
        process = subprocess.Popen([BINARY, "generate", model, "x", "-n", "1"], env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not list(folder.glob(".*.tmp")):
            time.sleep(0.001)
        process.kill()
        process.wait()
    want = answer(run, model).stdout
    done = answer(run, model, env=env)
    assert done.stdout == want
    assert not list(folder.glob(".*.tmp")) and len(packed(tmp_path)) == 1


# --- weights that are no numbers -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broken(model_file, store):
    """The starter model with a NaN scale in every row of one matrix, and one in the embedding table."""
    path = store / "broken.gguf"
    shutil.copy(model_file("smollm2"), path)
    tensors = {t.name: t for t in gguf.GGUFReader(model_file("smollm2")).tensors}
    with open(path, "r+b") as file:
        down = tensors["blk.3.ffn_down.weight"]
        row = down.n_bytes // int(down.shape[1])
        for n in range(int(down.shape[1])):
            file.seek(down.data_offset + n * row)
            file.write(b"\x00\x7e")
        file.seek(tensors["token_embd.weight"].data_offset)
        file.write(b"\x00\x7c")
    return path, int(down.shape[1])


def test_nan_scales_are_told_at_every_load_and_end_as_a_corrupt_file(run, broken):
    path, rows = broken
    for _ in range(2):  # packed, then read back
        done = answer(run, path, code=1)
        assert f"{rows + 1} scales or values in 2 of " in done.stderr, done.stderr
        assert "hearth doctor --deep" in done.stderr
        assert "logits are NaN or infinite" in done.stderr and str(path) in done.stderr


def test_doctor_deep_lists_them(run, broken, model_file):
    path, rows = broken
    done = json.loads(run("doctor", "--deep", path, "--json", code=1).stdout)
    (row,) = [r for r in done["checks"] if r["check"] == "weights"]
    assert row["health"] == "fail" and [w["count"] for w in row["weights"]] == [1, rows]
    assert [w["weight"] for w in row["weights"]] == ["model.embed_tokens", "model.layers.3.mlp.down_proj"]
    sound = json.loads(run("doctor", "--deep", model_file("smollm2"), "--json").stdout)
    deep = {r["check"]: r for r in sound["checks"] if r["check"] in ("model", "digests", "weights", "packed")}
    assert all(r["health"] == "ok" for r in deep.values()), deep
    assert "no NaN or infinite" in deep["weights"]["text"]


def test_doctor_deep_finds_a_damaged_blob_and_a_wrong_repack(run, model_file, store):
    model = model_file("smollm2")
    run("import", model, "--name", "local/damaged")
    (blob,) = [p for p in (store / "hub" / "models--local--damaged" / "blobs").iterdir() if len(p.name) == 64]
    text = run("doctor", "--deep", "local/damaged").stdout
    assert "1 file as named" in text
    with open(blob, "r+b") as file:
        file.seek(-100, 2)
        byte = file.read(1)
        file.seek(-100, 2)
        file.write(bytes([byte[0] ^ 1]))
    assert "is damaged: its SHA-256 is" in run("doctor", "--deep", "local/damaged", code=1).stdout
    shutil.rmtree(store / "hub" / "models--local--damaged")


# --- facts -----------------------------------------------------------------------------------------------------------


def test_show_counts_by_use_and_names_support(run, model_file):
    facts = json.loads(run("show", model_file("smollm2"), "--json").stdout)
    assert facts["support"] == "supported"
    assert facts["tied"] and facts["streamed_bytes_per_token"] == facts["bytes"]


def test_bench_says_where_the_load_went(run, model_file):
    done = json.loads(run("bench", model_file("smollm2"), "--prompt", "8", "--tokens", "2", "--runs", "1", "--depth", "1",
                          "--json").stdout)
    load = done["load"]
    parts = sum(load[k] for k in ("open_ms", "admission_ms", "weights_ms", "plans_ms"))
    assert 0 < parts <= load["total_ms"] == done["load_ms"]


def test_bench_says_what_the_machine_would_give(run, model_file):
    flags = ("--tokens", "4", "--runs", "1", "--depth", "1")
    limits = json.loads(run("bench", model_file("smollm2"), "--prompt", "16", *flags, "--json").stdout)["limits"]
    assert limits["read_gbps"] > 0 and limits["peak"] and limits["peak_gops"] > 0
    assert limits["decode_share"] > 0 and 0 < limits["prefill_share"] < 1, limits
    shown = run("bench", model_file("smollm2"), "--prompt", "0", *flags).stdout
    assert "% of" in shown and "a plain read of as many bytes" in shown and "registers" not in shown, shown
    slow = ("--prompt", "1", "--tokens", "0", "--runs", "1", "--executor", "reference", "--json")
    assert json.loads(run("bench", model_file("smollm2"), *slow).stdout)["limits"] is None
    assert "nothing to measure" in run("bench", model_file("smollm2"), "--prompt", "0", "--tokens", "0", code=2).stderr
