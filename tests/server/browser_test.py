"""The page in a real browser, and R-08's page of another origin, which gets nothing."""
import http.server
import json
import os
import threading
import time

import pytest
from chromium import Chromium
from running import Server

pytestmark = pytest.mark.skipif(os.environ.get("HEARTH_TEST_TIER") != "full", reason="full tier")
KEY = "key-of-the-browser-test-0815"

# Each attempt resolves to true if the other server's answer reached this page.
ATTACK = """<!doctype html><title>elsewhere</title><script>
const at = (path) => "BASE" + path;
const loads = (tag, attribute, path) => new Promise((done) => {
  const e = document.createElement(tag);
  if (tag === "link") e.rel = "stylesheet";
  e.onload = () => done(true); e.onerror = () => done(false);
  e[attribute] = at(path); document.head.append(e); setTimeout(() => done(false), 5000);
});
const reads = (path, options) => fetch(at(path), options).then((r) => r.type !== "opaque", () => false);
const opens = (make) => new Promise((done) => {
  const e = make(); e.onopen = () => done(true); e.onerror = () => done(false); setTimeout(() => done(false), 5000);
});
const body = JSON.stringify({messages: [{role: "user", content: "hi"}], max_tokens: 1});
window.attempts = async () => {
  const tried = {};
  for (const path of PATHS) {
    tried["get " + path] = await reads(path);
    tried["get with credentials " + path] = await reads(path, {credentials: "include"});
    tried["no-cors " + path] = await reads(path, {mode: "no-cors"});
    tried["json " + path] = await reads(path, {method: "POST", body, headers: {"Content-Type": "application/json"}});
    tried["text " + path] = await reads(path, {method: "POST", body, mode: "no-cors", headers: {"Content-Type": "text/plain"}});
    tried["delete " + path] = await reads(path, {method: "DELETE"});
    tried["key " + path] = await reads(path, {headers: {Authorization: "Bearer x"}});
    tried["img " + path] = await loads("img", "src", path);
    tried["script " + path] = await loads("script", "src", path);
    tried["style " + path] = await loads("link", "href", path);
    tried["socket " + path] = await opens(() => new WebSocket(at(path).replace("http", "ws")));
    tried["events " + path] = await opens(() => new EventSource(at(path)));
    const form = document.createElement("form"), frame = document.createElement("iframe"), target = document.createElement("iframe");
    frame.name = "show " + path; frame.src = at(path); target.name = "form " + path;
    form.method = "POST"; form.action = at(path); form.target = target.name; form.enctype = "text/plain";
    document.body.append(frame, target, form);
    await new Promise((done) => { frame.onload = done; setTimeout(done, 3000); });
    try { tried["frame " + path] = !!frame.contentDocument.body; } catch { tried["frame " + path] = false; }
    form.submit();
    await new Promise((done) => setTimeout(done, 50));
  }
  return tried;
};
</script><body>"""


@pytest.fixture
def browser(tmp_path):
    with Chromium(tmp_path / "profile") as found:
        yield found


@pytest.fixture
def elsewhere(server):
    """A page of another origin on this machine; its port."""
    paths = [r["path"].replace("{id}", "x") for r in server.get("/v1").json()["data"]]
    html = ATTACK.replace("BASE", server.url).replace("PATHS", json.dumps(sorted(set(paths)))).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield other.server_address[1]
        other.shutdown()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_another_origin_gets_nothing(server, browser, elsewhere, host):
    before = server.get("/stats").json()["batch"]["submitted_rows"]
    browser.open(f"http://{host}:{elsewhere}/")
    browser.run("window.attempts().then((tried) => { window.tried = tried; }), 0")
    tried = browser.until("window.tried", seconds=600)
    assert len(tried) > 200, len(tried)
    assert [name for name, success in tried.items() if success] == []

    # What is in its frames: a blocked page is the browser's own error page, a refused one an error document.
    frames = [child["frame"] for child in browser.call("Page.getFrameTree")["frameTree"]["childFrames"]]
    pages = [f for f in frames if f["name"] in ("show /", "show /page.js", "show /page.css")]
    assert len(pages) == 3 and all("unreachableUrl" in f or f["url"].startswith("chrome-error:") for f in pages), pages
    assert server.get("/stats").json()["batch"]["submitted_rows"] == before, "a request of that page was run"


def test_a_chat_by_keyboard(server, browser):
    model = server.get("/v1/models").json()["data"][0]["id"]
    browser.open(server.url)
    status = browser.until("document.getElementById('status').textContent.includes('ready') && document.getElementById('status').textContent")
    assert model in status and "context 2048" in status, status
    browser.run("document.getElementById('question').focus()")
    browser.type("<img src=x onerror=alert(1)> Say hello.")
    browser.press("Enter")
    browser.until("document.getElementById('log').getAttribute('aria-busy') === 'false'", seconds=120)
    turns = browser.run("[...document.querySelectorAll('#log article')].map((a) => a.textContent)")
    assert len(turns) == 2 and turns[0] == "You<img src=x onerror=alert(1)> Say hello." and len(turns[1]) > len("Model"), turns
    assert browser.run("document.querySelector('#log img')") is None
    assert browser.run("document.activeElement.id") == "question"
    assert browser.run("document.getElementById('problem').textContent") == ""
    assert browser.complaints() == []


def test_escape_stops_an_answer(server, browser):
    browser.open(server.url)
    browser.until("document.getElementById('model').options.length > 0")
    browser.run("document.getElementById('question').focus()")
    browser.type("Write a very long story about the sea, with many chapters.")
    browser.press("Enter")
    browser.until("document.querySelectorAll('#log article').length === 2 && document.querySelectorAll('#log p')[1]?.textContent.length > 10")
    browser.press("Escape")
    browser.until("document.getElementById('log').innerText.includes('(stopped)') && document.getElementById('stop').disabled")
    deadline = time.monotonic() + 5
    while server.get("/stats").json()["batch"]["active_rows"] > 0:
        assert time.monotonic() < deadline, "the row goes on"
        time.sleep(0.05)


def test_the_page_asks_for_a_key_and_forgets_it(tmp_path, model_file, browser):
    keys = tmp_path / "keys"
    keys.write_text(KEY + "\n")
    keys.chmod(0o600)
    with Server(tmp_path, model_file("smollm2"), "--context", "256", "--batch", "1", "--api-key-file", keys) as server:
        browser.open(server.url)
        browser.until("!document.getElementById('key-form').hidden && document.activeElement.id === 'key'")
        browser.type("wrong")
        browser.press("Enter")
        browser.until("document.getElementById('problem').textContent.includes('does not know this key')")
        browser.type(KEY)
        browser.press("Enter")
        browser.until("document.getElementById('status').textContent.includes('ready')")
        assert browser.run("document.getElementById('key-form').hidden && !document.documentElement.outerHTML.includes('%s')" % KEY)
        assert browser.run("localStorage.length + sessionStorage.length + document.cookie.length") == 0
        browser.call("Page.reload")
        browser.until("!document.getElementById('key-form')?.hidden && document.activeElement.id === 'key'")


def test_a_screen_reader_finds_a_name_for_everything(server, browser):
    browser.open(server.url)
    browser.until("document.getElementById('model').options.length > 0")
    found = {}
    for node in browser.call("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if role in ("textbox", "combobox", "button", "log", "heading", "status"):
            found.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    assert found["combobox"] == ["Model"] and found["log"] == ["Conversation"], found
    assert found["button"] == ["Send", "Stop", "New conversation"] and found["textbox"][0].startswith("Message"), found
