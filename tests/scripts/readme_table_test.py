"""scripts/readme-table: the newest record taken on an idle machine is shown; a broken record is named."""
import json
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "readme-table"
RECORD = {"schema": 1, "time": "2026-11-29T20:00:00Z", "kind": "decode", "command": "hearth bench x", "commit": "abcdef0123",
          "machine": {"cpu": "Toy 9000", "cores": 2}, "idle": {"ok": True}, "model": {"repo": "hearth/toy"},
          "shape": {"B": 1, "T": 1}, "median": 300.0, "p10": 297.0, "p90": 303.0, "unit": "tok/s", "gbps": 30.5,
          "share_of_roof": 0.93, "baseline": {"name": "llama.cpp", "version": "1", "median": 100.0}, "ratio": 3.2}
FRAME = "# x\n\n<!-- figures: written by scripts/readme-table -->\n{}<!-- end of figures -->\nend\n"


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "bench" / "records").mkdir(parents=True)
    (tmp_path / "README.md").write_text(FRAME.format(""))
    return tmp_path


def run(tree, *arguments, records=()):
    text = "".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records)
    (tree / "bench" / "records" / "cpu.ndjson").write_text(text)
    return subprocess.run([sys.executable, SCRIPT, "--root", tree, *arguments], capture_output=True, text=True)


def test_shows_the_newest_idle_record(tree):
    done = run(tree, records=[{**RECORD, "time": "2026-11-30T00:00:00Z", "median": 310.0}, RECORD,
                              {**RECORD, "time": "2026-12-01T00:00:00Z", "median": 999.0, "idle": {"ok": False}}])
    assert done.returncode == 0, done.stderr
    text = (tree / "README.md").read_text()
    row = "| hearth/toy | decode | B=1 T=1 | - | 310 tok/s | 1.9% | 100 (llama.cpp 1) | **3.20x** | 30.5 | 93% | 2026-11-30 abcdef01 |"
    assert row in text and "Toy 9000, 2 cores:" in text and text.endswith("<!-- end of figures -->\nend\n")
    assert text.count("hearth/toy") == 1


def test_machines_of_one_name_have_tables_of_their_own(tree):
    toy = {"cpu": "Toy 9000", "family": "6/1/1", "flags": ["avx2", "avx512f"], "cores": 2}
    amx = {**RECORD, "machine": {**toy, "flags": [*toy["flags"], "amx_int8"]}, "median": 500.0}
    assert run(tree, records=[{**RECORD, "machine": toy}, amx]).returncode == 0
    text = (tree / "README.md").read_text()
    assert "Toy 9000 (family 6/1/1, AVX-512), 2 cores:" in text and "Toy 9000 (family 6/1/1, AMX), 2 cores:" in text
    assert text.count("| hearth/toy |") == 2


def test_check_tells_old_from_new(tree):
    assert run(tree, "--check", records=[RECORD]).returncode == 1
    assert run(tree, records=[RECORD]).returncode == 0
    assert run(tree, "--check", records=[RECORD]).returncode == 0


@pytest.mark.parametrize("bad", ["{", "[]", json.dumps({**RECORD, "schema": 2}),
                                 json.dumps({key: RECORD[key] for key in RECORD if key != "median"})])
def test_a_broken_record_is_named_and_the_readme_stays(tree, bad):
    before = (tree / "README.md").read_text()
    done = run(tree, records=[RECORD, bad])
    assert done.returncode == 1 and "cpu.ndjson:2" in done.stderr and "Traceback" not in done.stderr
    assert (tree / "README.md").read_text() == before


def test_a_readme_without_the_section_is_refused(tree):
    (tree / "README.md").write_text("nothing")
    done = run(tree, records=[RECORD])
    assert done.returncode == 1 and "are missing" in done.stderr
