"""The chat's line editor on a real terminal, by tmux, with a scripted model."""
import os
import pathlib
import shutil
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "hearth").absolute()
TOOL = BINARY.parent / "tool_scripted_chat"
pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")


class Terminal:
    def __init__(self, folder, *command):
        self.socket = str(folder / "tmux")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "40", "-y", "12", "-s", "t",
                  f"{' '.join(map(str, command))}; echo code=$?; sleep 60", env={**os.environ, "LC_ALL": "C.UTF-8"})

    def tmux(self, *args, **more):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *args], check=True, capture_output=True, text=True, timeout=20,
                              **more).stdout

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "t", *keys)

    def type(self, text):
        self.tmux("send-keys", "-t", "t", "-l", text)

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "t")

    def wait(self, text):
        for _ in range(200):
            if text in self.screen():
                return
            time.sleep(0.05)
        pytest.fail(f"{text!r} never came:\n{self.screen()}")

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)


@pytest.fixture
def terminal(tmp_path):
    if not TOOL.is_file():
        pytest.fail(f"{TOOL}: not built")
    made = Terminal(tmp_path, TOOL, tmp_path / "history")
    made.wait(">")
    yield made
    made.end()


def test_typing_editing_and_wide_characters(terminal):
    terminal.type("hello wrld")
    for _ in range(3):
        terminal.keys("Left")
    terminal.type("o")
    terminal.keys("Enter")
    terminal.wait("echo: hello world")
    terminal.type("日本語")
    terminal.keys("BSpace", "Enter")
    terminal.wait("echo: 日本\n")


def test_history_by_arrow_and_search(terminal, tmp_path):
    for word in ("first", "second"):
        terminal.type(word)
        terminal.keys("Enter")
        terminal.wait("echo: " + word)
    terminal.keys("Up", "Up")
    terminal.type("!")
    terminal.keys("Enter")
    terminal.wait("echo: first!")
    terminal.keys("C-r")
    terminal.type("seco")
    terminal.wait("(search: seco) second")
    terminal.keys("C-g", "C-d")
    terminal.wait("code=0")
    assert (tmp_path / "history").read_text().splitlines() == ["first", "second", "first!"]
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o600


def test_a_paste_of_several_lines_is_one_message(terminal):
    terminal.tmux("set-buffer", "line one\nline two")
    terminal.tmux("paste-buffer", "-p", "-t", "t")
    terminal.wait("line two")
    assert "echo" not in terminal.screen()
    terminal.keys("Enter")
    terminal.wait("echo: line one")


def test_control_c_stops_the_answer_and_keeps_the_chat(terminal):
    terminal.type("slow")
    terminal.keys("Enter")
    terminal.wait("....")
    terminal.keys("C-c")
    terminal.wait("[stopped; the chat goes on]")
    terminal.type("half a line")
    terminal.keys("C-c")
    terminal.type("next")
    terminal.keys("Enter")
    terminal.wait("echo: next")
    terminal.keys("C-c")
    terminal.wait("[Ctrl-C again, Ctrl-D or /bye ends it]")
    terminal.keys("C-d")
    terminal.wait("code=0")


def test_a_smaller_window_folds_the_entry(terminal):
    terminal.type("a" * 30)
    terminal.tmux("resize-window", "-t", "t", "-x", "20", "-y", "12")
    terminal.wait("a" * 18 + "\n" + "a" * 12)
    terminal.type("b")
    terminal.wait("a" * 12 + "b")
    assert terminal.screen().count(">") == 1


def test_lines_from_a_pipe():
    if not TOOL.is_file():
        pytest.fail(f"{TOOL}: not built")
    done = subprocess.run([TOOL], input='one\n"""two\nlines"""\n/bye\nunread\n', capture_output=True, text=True, timeout=20)
    assert done.returncode == 0
    assert done.stdout == "echo: one\necho: two\nlines\n"
