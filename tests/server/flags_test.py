"""Flags of `hearth serve` that change answers or the process itself (spec server 3.5)."""
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from running import BINARY, Server

SMALL = ("--context", "256", "--batch", "2")
DRAWN = {"temperature": 0.9, "seed": 7, "max_tokens": 24}
# What spec 3.5 lists and later work brings: devices, drafts, images, the web app's sign-in.
LATER = {"gpu-layers", "cpu-experts", "draft-model", "num-draft-tokens", "draft-threshold", "draft-auto-off", "draft-optional", "spec-verify",
         "device", "tensor-parallel", "rendezvous", "megakernel", "allow-media-urls"}
SPEC = """host port api-key api-key-file admin-key-file cors-origin allow-host allow-media-urls allow-models served-model-name any-model ttl context
batch memory-budget prompt-cache disk-cache disk-cache-max demote-idle kv gpu-layers cpu-experts threads adapter thinking temperature top-p top-k min-p
max-tokens hlg-sampling hlg-width hlg-shoulder hlg-toe hlg-pivot-offset draft-model num-draft-tokens draft-threshold draft-auto-off draft-optional
spec-verify device tensor-parallel rendezvous megakernel numerics prefill-chunk admission sse-ping metrics-listen offline tool-dialect no-open
detach""".split()


def test_every_flag_is_there_or_known_to_be_missing():
    text = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    there = set(re.findall(r"--([a-z][a-z-]+)", text))
    assert set(SPEC) - there == LATER


def content(answer):
    return answer.json()["choices"][0]["message"]["content"]


def test_the_curve_of_the_server_is_that_of_requests_that_name_none(tmp_path, model_file, server):
    told = server.chat(hlg={"enabled": True, "width": 1.5}, **DRAWN)
    plain = server.chat(**DRAWN)
    assert content(told) != content(plain), "this seed shows no difference"
    with Server(tmp_path, model_file("smollm2"), "--context", "2048", "--batch", "16", "--hlg-sampling", "--hlg-width", "1.5") as running:
        assert content(running.chat(**DRAWN)) == content(told)
        assert content(running.chat(hlg={"enabled": False}, **DRAWN)) == content(plain)
        other = running.chat(hlg={"shoulder": 2}, **DRAWN)
    assert content(other) == content(server.chat(hlg={"width": 1.5, "shoulder": 2}, **DRAWN)), "width is the server's"


@pytest.fixture(scope="module")
def shows(checkpoint, tmp_path_factory):
    """A tiny model whose template says what it is told."""
    folder = tmp_path_factory.mktemp("shows") / "model"
    shutil.copytree(checkpoint("llama-tied-q4").path, folder)
    template = "{% for m in messages %}{% if m.content == 'bad' %}{{ raise_exception('no bad words') }}{% endif %}{{ m.content }}{% endfor %}|{{ enable_thinking is defined and enable_thinking }}|{{ 'tools' if tools else 'none' }}"
    (folder / "chat_template.jinja").write_text(template)
    return folder


def rendered(server, **fields):
    answer = server.post("/apply-template", {"messages": [{"role": "user", "content": "hi"}], **fields})
    assert answer.status == 200, answer.body
    return answer.json()["prompt"]


TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}]


def test_thinking_is_on_or_off_where_a_request_does_not_say(tmp_path, shows):
    with Server(tmp_path, shows, "--thinking", "on") as server:
        assert rendered(server) == "hi|True|none"
        assert rendered(server, chat_template_kwargs={"enable_thinking": False}) == "hi|False|none"
    with Server(tmp_path, shows) as server:
        assert rendered(server) == "hi|False|none"
        assert rendered(server, chat_template_kwargs={"enable_thinking": True}) == "hi|True|none"


def test_models_that_are_not_loaded_are_spelled_by_the_same_flags(tmp_path, shows, model_file):
    with Server(tmp_path, model_file("smollm2"), "--allow-models", shows, "--thinking", "on", "--tool-dialect", "generic", *SMALL) as server:
        (other,) = [m["id"] for m in server.get("/v1/models").json()["data"] if not m["serving"]]
        text = rendered(server, model=other, tools=TOOLS)
        assert text.endswith("|True|none") and "look_up" in text
        assert len(server.workers()) == 2, "one for text alone"
        message = server.post("/apply-template", {"model": other, "messages": [{"role": "user", "content": "bad"}]}).json()["error"]["message"]
        assert "no bad words" in message and "/" not in message, message


def test_what_a_template_says_names_no_folder(tmp_path, shows):
    with Server(tmp_path, shows) as server:
        answer = server.post("/apply-template", {"messages": [{"role": "user", "content": "bad"}]})
    message = answer.json()["error"]["message"]
    assert answer.status == 400 and "no bad words" in message and "/" not in message, message


def test_the_dialect_of_calls_can_be_named(tmp_path, shows):
    """Known by the template: it gets the tools. Generic: they are described in the system text."""
    with Server(tmp_path, shows, "--tool-dialect", "hermes") as server:
        assert rendered(server, tools=TOOLS) == "hi|False|tools"
    with Server(tmp_path, shows, "--tool-dialect", "generic") as server:
        text = rendered(server, tools=TOOLS)
        assert text.endswith("|False|none") and "look_up" in text


def test_a_dialect_that_is_none_is_refused_with_the_names(tmp_path, model_file):
    done = subprocess.run([BINARY, "serve", model_file("smollm2"), "--port", "0", "--tool-dialect", "klingon"], capture_output=True, text=True,
                          env=home_env(tmp_path), timeout=60)
    assert done.returncode == 2 and "klingon" in done.stderr and "hermes" in done.stderr, done.stderr


TEXTS = ("host", "api-key", "allow-host", "cors-origin", "allow-models", "served-model-name", "metrics-listen", "tool-dialect", "limit")
FILES = ("api-key-file", "admin-key-file", "adapter", "adapters-dir", "disk-cache", "log-file")


@pytest.mark.parametrize("flag", [*TEXTS, *FILES])
@pytest.mark.parametrize("by", ["flag", "environment", "file"])
def test_an_empty_value_is_refused_in_one_sentence(tmp_path, model_file, flag, by):
    env, words = home_env(tmp_path), [f"--{flag}="] if by == "flag" else []
    where = {"flag": f"--{flag} is ", "environment": f"HEARTH_{flag.upper().replace('-', '_')} is ", "file": f": {flag} is "}[by]
    if by == "environment":
        env = {**env, "HEARTH_" + flag.upper().replace("-", "_"): ""}
    if by == "file":
        (tmp_path / "hearth.toml").write_text(f'[serve]\n{flag} = ""\n')
    port = [] if flag == "host" else ["--port", "0"]
    done = subprocess.run([BINARY, "serve", model_file("smollm2"), *port, *words], capture_output=True, text=True, env=env, cwd=tmp_path, timeout=60)
    said, *hint = done.stderr.splitlines()
    assert done.returncode == 2 and where in said and hint == ["  try: hearth serve --help"], done.stderr


def test_every_flag_of_text_is_asked_for_an_empty_one():
    text = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    kinds = dict(re.findall(r"^  (?:-\w, )?--([a-z][a-z-]+) (\S+)", text, re.M))
    words = {"HOST", "KEY", "FILE", "NAME", "ORIGIN", "MODEL", "DIR", "[HOST:]PORT", "NAME=VALUE"}
    assert {flag for flag, kind in kinds.items() if kind in words} == {*TEXTS, *FILES}


def test_an_empty_model_is_none(tmp_path):
    for words in ([""], ["--model", ""]):
        done = subprocess.run([BINARY, "serve", "--port", "0", *words], capture_output=True, text=True, env=home_env(tmp_path), timeout=60)
        assert done.returncode == 2 and done.stderr.startswith("hearth: MODEL is empty, expected a name or a path\n"), done.stderr


# --- /metrics on a listener of its own ---

def ask(port, path, method="GET", headers=None, host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=30)
    connection.request(method, path, headers=headers or {})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def metrics_port(server):
    """Said in the line behind the one that start() waits for."""
    deadline = time.monotonic() + 20
    while not (found := re.search(r"figures at http://127\.0\.0\.1:(\d+)/metrics", "".join(server.log))):
        assert time.monotonic() < deadline, server.log
        time.sleep(0.01)
    return int(found[1])


def test_metrics_have_a_listener_of_their_own(tmp_path, model_file):
    with Server(tmp_path, model_file("smollm2"), *SMALL, "--metrics-listen", "0") as server:
        port = metrics_port(server)
        status, body = ask(port, "/metrics")
        assert status == 200 and b"hearth_requests_total" in body
        assert server.get("/metrics").status == 200, "as before"
        for path in ("/", "/health", "/stats", "/v1/models", "/metrics/x"):
            assert ask(port, path)[0] == 404, path
        assert ask(port, "/v1/chat/completions", "POST")[0] == 404
        assert ask(port, "/metrics", headers={"Host": "evil.example"})[0] == 421
        assert ask(port, "/metrics", headers={"Origin": "http://evil.example"})[0] == 403
    with pytest.raises(OSError):
        ask(port, "/metrics")


def test_metrics_want_the_key_that_the_server_wants(tmp_path, model_file):
    keys = tmp_path / "keys"
    keys.write_text("key-for-metrics-012345\n")
    keys.chmod(0o600)
    with Server(tmp_path, model_file("smollm2"), *SMALL, "--metrics-listen", "0.0.0.0:0", "--api-key-file", keys) as server:
        port = metrics_port(server)
        assert ask(port, "/metrics")[0] == 401
        assert ask(port, "/metrics", headers={"Authorization": "Bearer key-for-metrics-012345"})[0] == 200
        keys.write_text("another-key-for-metrics\n")
        server.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 10
        while ask(port, "/metrics", headers={"x-api-key": "another-key-for-metrics"})[0] != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize("value, words", [
    ("here", "expected PORT or HOST:PORT"), ("127.0.0.1:", "expected PORT or HOST:PORT"), ("65536", "PORT from 0 to 65535"),
    (":9464", "expected PORT or HOST:PORT"), ("0.0.0.0:9464", "lets other machines in, and there is no key"),
])
def test_an_address_for_metrics_that_is_none_is_refused(tmp_path, model_file, value, words):
    done = subprocess.run([BINARY, "serve", model_file("smollm2"), "--port", "0", "--metrics-listen", value], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}, timeout=60)
    assert done.returncode == 2 and words in done.stderr, done.stderr


# --- in the background, and the log ---

def home_env(tmp_path):
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "XDG_STATE_HOME": str(tmp_path / "state"),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(pathlib.Path.home() / ".cache")), "HEARTH_THREADS": "1"}


def detach(tmp_path, *args):
    return subprocess.run([BINARY, "serve", "--detach", *map(str, args)], env=home_env(tmp_path), capture_output=True, text=True, timeout=120,
                          cwd=tmp_path)


def test_a_detached_server_outlives_its_command(tmp_path, model_file):
    (tmp_path / "run").mkdir()
    done = detach(tmp_path, model_file("smollm2"), "--port", "0", *SMALL)
    assert done.returncode == 0, done.stderr
    try:
        address = re.fullmatch(r"http://127\.0\.0\.1:(\d+)\n", done.stdout)
        assert ask(int(address[1]), "/ready")[0] == 200, "it waits until the model answers"
        pid = int(re.search(r"as process (\d+)", done.stderr)[1])
        assert os.getsid(pid) == pid, "a session of its own"
        assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
        log = tmp_path / "state" / "hearth" / "logs" / "serve.log"
        assert str(log) in done.stderr and log.stat().st_mode & 0o777 == 0o600
        deadline = time.monotonic() + 30
        while "is ready at" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        again = detach(tmp_path, model_file("smollm2"), "--port", "0", *SMALL)
        assert again.returncode == 1 and f"process {pid}" in again.stderr, again.stderr
    finally:
        stopped = subprocess.run([BINARY, "stop"], env=home_env(tmp_path), capture_output=True, text=True, timeout=60)
    assert stopped.returncode == 0, stopped.stderr
    deadline = time.monotonic() + 30
    while pathlib.Path(f"/proc/{pid}").exists() and "Z" != pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_detached_server_that_does_not_start_says_why(tmp_path):
    (tmp_path / "run").mkdir()
    done = detach(tmp_path, tmp_path / "none.gguf", "--port", "0")
    assert done.returncode == 3 and "none.gguf" in done.stderr and done.stdout == "", done


def test_the_log_goes_to_a_file_and_is_bounded(tmp_path, model_file):
    """R-29 too: it is nobody else's to read."""
    log = tmp_path / "logs" / "hearth.log"
    server = Server(tmp_path, model_file("smollm2"), *SMALL, "--port", "0", "--log-file", log)
    server.process = subprocess.Popen([BINARY, "serve", *server.args], env=server.env, cwd=tmp_path)
    try:
        deadline = time.monotonic() + 60
        while not log.exists() or "is ready at" not in log.read_text():
            assert time.monotonic() < deadline and server.process.poll() is None
            time.sleep(0.05)
        assert log.stat().st_mode & 0o777 == 0o600
        with open(log, "ab") as file:
            file.truncate((64 << 20) + 1)
        older = tmp_path / "logs" / "hearth.log.1"
        while not older.exists() or log.stat().st_size > 1 << 20:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert older.stat().st_size == (64 << 20) + 1 and older.stat().st_mode & 0o777 == 0o600
        assert b"is ready at" in older.read_bytes()[:100_000]
    finally:
        server.stop()
    assert "finishing what is open" in log.read_text(), "it goes on in the file that began anew"


# --- the page, opened from a terminal ---

def from_a_terminal(tmp_path, model, *args, display=":7"):
    """What a fake browser is told when serve is started on a terminal; None: nothing."""
    import pty

    (tmp_path / "bin").mkdir(exist_ok=True)
    browser, told = tmp_path / "bin" / "xdg-open", tmp_path / "told"
    browser.write_text(f"#!/bin/sh\nprintf '%s' \"$*\" > {told}.new && mv {told}.new {told}\n")
    browser.chmod(0o755)
    env = {**home_env(tmp_path), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "TERM": "xterm", **({"DISPLAY": display} if display else {})}
    main, other = pty.openpty()
    process = subprocess.Popen([BINARY, "serve", str(model), "--port", "0", *SMALL, *args], env=env, cwd=tmp_path, stdin=other, stdout=other,
                               stderr=other, start_new_session=True)
    os.close(other)
    said = b""
    try:
        while b"Anthropic clients" not in said:
            said += os.read(main, 65536)
        for _ in range(40):
            if told.exists():
                break
            time.sleep(0.05)
    finally:
        process.terminate()
        process.wait(30)
        os.close(main)
    return (told.read_text() if told.exists() else None), said.decode(errors="replace")


def test_the_page_opens_when_somebody_sits_there(tmp_path, model_file):
    told, said = from_a_terminal(tmp_path, model_file("smollm2"))
    assert told and re.fullmatch(r"http://127\.0\.0\.1:\d+/", told) and told[:-1] in said


@pytest.mark.parametrize("args, display", [(("--no-open",), ":7"), ((), None)])
def test_the_page_does_not_open_when_nobody_wants_it(tmp_path, model_file, args, display):
    assert from_a_terminal(tmp_path, model_file("smollm2"), *args, display=display)[0] is None


# --- the disk tier's clock ---

def test_idle_prefixes_leave_memory_for_the_disk(tmp_path, model_file):
    text = "The harbour lay quiet under the morning fog, and nobody spoke of the ship. " * 24
    with Server(tmp_path, model_file("smollm2"), "--context", "1024", "--batch", "2", "--disk-cache", tmp_path / "kv", "--demote-idle", "1s") as server:
        first = server.chat(text, max_tokens=8).json()
        deadline = time.monotonic() + 30
        while True:
            stats = server.get("/stats").json()
            if stats["prompt_cache"]["entries"] == 0:
                break
            assert time.monotonic() < deadline, stats
            time.sleep(0.1)
        assert stats["disk_cache"]["entries"] == 1 and stats["disk_cache"]["bytes"] > 0 and stats["disk_cache"]["max_bytes"] == 10_000_000_000
        assert stats["batch"]["pages_free"] == stats["batch"]["pages_total"], "nobody holds them any more"
        again = server.chat(text, max_tokens=8).json()
        assert again["choices"] == first["choices"]
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 300
        assert server.get("/stats").json()["disk_cache"]["restores"] == 1


def test_idle_prefixes_without_a_disk_are_refused(tmp_path, model_file):
    done = subprocess.run([BINARY, "serve", model_file("smollm2"), "--port", "0", "--demote-idle", "10s"], capture_output=True, text=True,
                          env=home_env(tmp_path), timeout=60)
    assert done.returncode == 2 and "--disk-cache" in done.stderr, done.stderr


# --- descriptors: a connection takes one ---

def descriptors(server):
    limits = pathlib.Path(f"/proc/{server.process.pid}/limits").read_text()
    return [int(n) for n in re.search(r"^Max open files\s+(\d+)\s+(\d+)", limits, re.M).groups()]


def test_the_limit_of_descriptors_is_raised_to_what_connections_need(tmp_path, model_file):
    shell = ["sh", "-c", 'ulimit -Sn 256; exec "$@"', "sh"]
    with Server(tmp_path, model_file("smollm2"), *SMALL, wrap=shell) as server:
        soft, hard = descriptors(server)
        assert 1024 + 64 < soft <= hard and "file descriptors" not in "".join(server.log)
        held = [socket.create_connection((server.host, server.port)) for _ in range(400)]
        for connection in held[::40]:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert b"200 OK" in connection.recv(4096)
        for connection in held:
            connection.close()


def test_a_hard_limit_of_descriptors_is_told_and_lived_with(tmp_path, model_file):
    shell = ["sh", "-c", 'ulimit -n 300; exec "$@"', "sh"]
    with Server(tmp_path, model_file("smollm2"), *SMALL, wrap=shell) as server:
        assert descriptors(server) == [300, 300]
        assert any("1024 connections need 1280 file descriptors, this process may have 300" in line for line in server.log), server.log
        held = [socket.create_connection((server.host, server.port)) for _ in range(400)]
        assert server.get("/health").status == 200, "idle ones make room"
        for connection in held:
            connection.close()
        assert server.chat("Hi", max_tokens=1).status == 200
    with Server(tmp_path, model_file("smollm2"), *SMALL, "--limit", "connections=40", wrap=shell) as server:
        assert "file descriptors" not in "".join(server.log)
