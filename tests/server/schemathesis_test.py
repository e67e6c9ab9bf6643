"""R-11 at full size: schemathesis asks what /openapi.json allows and what it does not: no answer of 5xx, no worker lost.

HEARTH_SCHEMA_CASES sets how many cases at least; 5,000 by default.
"""
import collections
import importlib.util
import json
import os
import re
import subprocess

import pytest
from running import ROOT, Server

CASES = int(os.environ.get("HEARTH_SCHEMA_CASES") or 5000)
pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]


def installed():
    """The program, from where tests/clients keeps what it installs."""
    spec = importlib.util.spec_from_file_location("clients_install", ROOT / "tests" / "clients" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.python_of("schemathesis")


def restarts(server):
    found = re.search(r"^hearth_worker_restarts_total (\d+)", server.get("/metrics").body.decode(), re.M)
    return int(found[1])


def statuses(server):
    """Requests that the server has counted, by status."""
    seen = collections.Counter()
    for code, n in re.findall(r'^hearth_requests_total\{[^}]*code="(\d+)"[^}]*\} (\d+)', server.get("/metrics").body.decode(), re.M):
        seen[int(code)] += int(n)
    return seen


def test_no_case_of_the_description_breaks_the_server(tmp_path, model_file):
    # /ready says 503 while a model loads: that is its answer. Each generation is short.
    with Server(tmp_path, model_file("smollm2"), "--context", "128", "--batch", "8", "--max-tokens", "4") as server:
        documents = server.get("/openapi.json").json()["paths"]
        operations = sum(len(methods) for methods in documents.values())
        program = installed().parent / "schemathesis"
        report, cases, answers, run = tmp_path / "report.ndjson", 0, collections.Counter(), 0
        while cases < CASES:
            command = [program, "run", server.url + "/openapi.json", "--checks", "not_a_server_error", "--exclude-path", "/ready",
                       "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", str(max(1, CASES // operations)),
                       "--continue-on-failure", "--seed", str(run), "--generation-database", "none", "--workers", "2", "--no-color",
                       "--suppress-health-check", "all", "--request-timeout", "300", "--report", "ndjson",
                       "--report-ndjson-path", report, "-H", "Authorization: Bearer " + server.token()]
            done = subprocess.run([str(c) for c in command], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
            before = cases
            for line in report.read_text().splitlines():
                for status in re.findall(r'"status_code":\s*(\d+)', line):
                    cases += 1
                    answers[int(status)] += 1
            assert cases > before, done.stdout[-3000:]
            run += 1
        print(f"{cases} cases in {run} runs: {dict(answers)}")
        assert answers[200] > 0 and answers[400] > 0 and not any(status >= 500 for status in answers), answers
        assert restarts(server) == 0
        assert server.chat("Hi", max_tokens=2).status == 200
