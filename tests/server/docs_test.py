"""docs/server-api.md against the server's own table and fields; the figures of docs/operations.md against /metrics."""
import re
import subprocess

from running import BINARY, ROOT

PAGE = (ROOT / "docs" / "server-api.md").read_text()
ROWS = re.findall(r"^\| `([A-Z]+) (/\S*)` \| (\w+) \|", PAGE, re.M)


def table(server):
    return {(r["method"], r["path"]) for r in server.get("/v1").json()["data"]}


def test_every_route_is_documented(server):
    documented = {(method, path) for method, path, _ in ROWS}
    assert len(documented) == len(ROWS) > 20, "a route stands there twice"
    assert table(server) - documented == set()


def test_every_route_links_to_its_tests(server):
    checklist = dict(re.findall(r"^\| `(/\S*)` \| (\[.*) \|$", PAGE, re.M))
    assert set(checklist) == {path for _, path in table(server)}
    for path, links in checklist.items():
        for link in re.findall(r"\]\((\S+?)\)", links):
            text = (ROOT / "docs" / link).resolve().read_text()
            asked = path == "/v1/chat/completions" and ".chat(" in text
            assert asked or path.split("{")[0] in text, (path, link)


def test_every_test_of_a_field_exists():
    rows = re.findall(r"^\| .+ \| (\[[a-z ]+\]\(\.\./tests/\S+\) `test_.*) \|$", PAGE, re.M)
    assert len(rows) > 10
    for row in rows:
        for file, names in re.findall(r"\[[a-z ]+\]\((\S+?)\) ((?:`\w+`(?:, )?)+)", row):
            text = (ROOT / "docs" / file).resolve().read_text()
            for name in re.findall(r"`(\w+)`", names):
                assert f"\ndef {name}(" in text, (file, name)


def test_every_documented_route_is_there(server):
    assert {(method, path) for method, path, _ in ROWS} - table(server) == set()


def test_who_may_call_is_what_the_server_does(server):
    there = table(server)
    for method, path, who in ROWS:
        if (method, path) not in there:
            continue
        url = path.replace("{id}", "x")
        site = server.request(method, url, body=b"{}" if method == "POST" else None, headers={"Sec-Fetch-Site": "cross-site"}).status
        bare = server.request(method, url, body=b"{}" if method == "POST" else None).status
        seen = "open" if site != 403 else "control" if bare == 401 else "key"
        assert seen == who, (method, path, seen)


def fields_of(schema):
    found = set(schema.get("properties", {}))
    for part in schema.get("allOf", []):
        found |= fields_of(part)
    return found


def test_every_field_is_documented(server):
    for path, methods in server.get("/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            for field in fields_of(schema):
                assert f"`{field}`" in PAGE, (method, path, field)


def test_every_metric_is_documented(server):
    server.chat(max_tokens=1)
    names = set(re.findall(r"^# TYPE (\S+)", server.get("/metrics").body.decode(), re.M))
    page = (ROOT / "docs" / "operations.md").read_text()
    assert names and all(f"`{name}`" in page for name in names), names


def test_the_table_of_limits_is_the_servers():
    page = (ROOT / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (\S+) \| (\S+) \| (\S+) \| (.*?) \| .* \|$", page, re.M)
    help_text = subprocess.run([BINARY, "serve", "--limit", "help"], capture_output=True, text=True, check=True).stdout
    assert [" ".join(row).split() for row in rows] == [line.split() for line in help_text.splitlines()[1:]]


def promises():
    """id -> its row of docs/reliability.md."""
    page = (ROOT / "docs" / "reliability.md").read_text()
    return {row[0]: row for row in re.findall(r"^\| (R-\d+[a-e]?) \| (.*?) \| (.*?) \| (.*?) \|$", page, re.M)}


def test_the_promises_that_hearth_has_today_are_listed():
    wanted = [f"R-{n:02}" for n in range(1, 21)] + ["R-20b", "R-24d", "R-24e"] + [f"R-{n}" for n in range(29, 35)]
    assert list(promises()) == wanted


def test_every_test_of_a_promise_exists():
    for id, _, tests, tier in promises().values():
        files = {link: (ROOT / "docs" / link).resolve().read_text() for link in re.findall(r"\]\((\S+?)\)", tests)}
        names = re.findall(r"`(test_\w+|\w+\.\w+)`", tests)
        assert names or "not yet" in tier or id in ("R-20", "R-34"), id
        for name in names:
            pattern = rf"^def {name}\(" if name.startswith("test_") else rf"^TEST(_F)?\({name.replace('.', ', ')}\)"
            assert any(re.search(pattern, text, re.M) for text in files.values()), (id, name)
        if "R-08" <= id <= "R-18" or id in ("R-29", "R-30", "R-32", "R-33"):
            for link, text in files.items():
                assert id in text or f"{id[0]}{id[2:]}" in text, (id, link, "does not carry the number")
