"""What hinders `hearth serve` at its start, and what does not."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth").absolute()


def test_a_server_without_home_finds_its_folders(tmp_path, model_file):
    """The worker, in its sandbox, cannot ask the password table."""
    environment = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path / "run"), "HEARTH_THREADS": "1"}
    process = subprocess.Popen([BINARY, "serve", model_file("smollm2"), "--port", "0", "--context", "256", "--pack-cache", "1MB"],
                               env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "is ready at" in line:
                break
        assert any("is ready at" in line for line in lines), lines
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_a_folder_that_cannot_be_made_ends_the_start_at_once(tmp_path, model_file):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "HEARTH_THREADS": "1"}
    done = subprocess.run([BINARY, "serve", model_file("smollm2"), "--port", "0", "--disk-cache", "/proc/nowhere"], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 3 and done.stderr.count("/proc/nowhere") <= 3 and "worker process ended" not in done.stderr, done.stderr
