"""The page at /: what is sent, and its script without a browser."""
import json
import os
import re
import shutil
import subprocess

import pytest
from running import ROOT

FOLDER = ROOT / "src" / "server" / "page"
FILES = {"/": ("page.html", "text/html"), "/page.js": ("page.js", "text/javascript"), "/page.css": ("page.css", "text/css")}
TYPESCRIPT = "5.9.3"


def test_the_files_come_as_they_are_and_closed_to_other_pages(server):
    for path, (name, kind) in FILES.items():
        answer = server.get(path)
        assert answer.status == 200 and answer.body == (FOLDER / name).read_bytes()
        assert answer.headers["content-type"] == kind + "; charset=utf-8"
        policy = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))
        assert policy == {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'",
                          "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'"}
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert not any(h.startswith("access-control") for h in answer.headers)
        assert server.request("HEAD", path).body == b""
        assert server.post(path, {}).status == 405


def test_the_page_holds_no_key_and_no_inline_script(server):
    html = server.get("/").body.decode()
    assert re.findall(r"<script[^>]*>(.*?)</script>", html, re.S) == [""]
    assert not re.search(r"\son\w+\s*=|\sstyle\s*=|<style|javascript:|https?://", html)
    script = server.get("/page.js").body.decode()
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage",
                 "sessionStorage", "cookie", "http://", "https://"):
        assert name not in script, name
    token = server.token()
    assert all(token not in server.get(path).body.decode() for path in FILES)


def test_every_control_has_a_label():
    html = (FOLDER / "page.html").read_text()
    for control in re.findall(r'<(?:input|textarea|select) id="(\w+)"', html):
        assert f'<label for="{control}">' in html, control
    assert 'role="log"' in html and 'role="status"' in html and 'role="alert"' in html and '<html lang="en">' in html


def node(script):
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    done = subprocess.run([program, "--input-type=module", "-e", script], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_events_are_found_wherever_the_stream_is_cut():
    stream = ': ping\n\ndata: {"a": "ü\\n"}\n\nevent: x\ndata: one\ndata: two\n\n: ping\n\ndata: [DONE]\n\ndata: half'
    want = ['{"a": "ü\\n"}', "one\ntwo", "[DONE]"]
    found = node(f"""
        const {{ EventParser }} = await import({json.dumps((FOLDER / "page.js").as_uri())});
        const stream = {json.dumps(stream)}, all = [];
        for (let cut = 0; cut <= stream.length; ++cut) {{
          const parser = new EventParser();
          all.push([...parser.push(stream.slice(0, cut)), ...parser.push(stream.slice(cut))]);
        }}
        const parser = new EventParser();
        all.push([...stream].flatMap((c) => parser.push(c)));
        console.log(JSON.stringify(all));""")
    assert len(found) == len(stream) + 2 and all(events == want for events in found)


def test_an_error_in_the_stream_is_told():
    found = node(f"""
        const {{ deltaOf }} = await import({json.dumps((FOLDER / "page.js").as_uri())});
        const told = (data) => {{ try {{ return deltaOf(data); }} catch (error) {{ return "error: " + error.message; }} }};
        console.log(JSON.stringify([
          '[DONE]', '{{"choices": [{{"delta": {{"content": "x"}}}}]}}', '{{"choices": [], "usage": {{}}}}',
          '{{"error": {{"message": "worker lost"}}}}'].map(told)));""")
    assert found == ["done", {"content": "x"}, {}, "error: worker lost"]


def test_the_types_of_the_script_hold():
    """tsc --checkJs --strict, by npm's typescript; the full tier fetches it."""
    folder = ROOT / ".cache" / "typescript"
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        if os.environ.get("HEARTH_TEST_TIER") != "full":
            pytest.skip("typescript is not in .cache; the full tier fetches it")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder,
                        f"typescript@{TYPESCRIPT}"], check=True, timeout=300, capture_output=True)
    done = subprocess.run(["node", compiler, "--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--target", "es2022",
                           "--module", "es2022", "--lib", "es2022,dom,dom.iterable", FOLDER / "page.js"],
                          text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert not re.search(r"\bany\b", (FOLDER / "page.js").read_text()), "strict means no any"


def test_the_page_is_small():
    assert sum(len((FOLDER / name).read_text().splitlines()) for name, _ in FILES.values()) < 300
