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
