"""Runs the tool programs of the build named by HEARTH_BUILD (default: build/release of this checkout)."""
import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ.get("HEARTH_BUILD") or pathlib.Path(__file__).parents[2] / "build" / "release")


def run_tool(name, *args, stdin=b"", check=True):
    """stdout of tool_<name>; with check=False the finished process, whatever its exit code."""
    program = BUILD / f"tool_{name}"
    done = subprocess.run([program, *map(str, args)], input=stdin, capture_output=True)
    if not check:
        return done
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
