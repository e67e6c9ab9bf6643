"""Natural text for teacher forcing: the Brown corpus as plain text (HEARTH_TEST_CORPUS, made by scripts/corpus)."""

import os
from pathlib import Path

from .gguf_ids import Words

ROOT = Path(__file__).resolve().parents[2]
WINDOW = 256


def text() -> str:
    path = Path(os.environ.get("HEARTH_TEST_CORPUS") or ROOT / ".cache" / "brown.txt")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no corpus there; scripts/corpus makes it, HEARTH_TEST_CORPUS names it")
    return path.read_text(encoding="utf-8")


def windows(model_file, count: int) -> list[list[int]]:
    """`count` rows of WINDOW ids for a GGUF file, from places spread evenly over the corpus (all its genres).

    A row starts at a paragraph and, where the file asks for one, with the BOS id.
    """
    words, whole = Words(model_file), text()
    rows = []
    for i in range(count):
        begin = len(whole) * i // count
        begin = whole.index("\n", begin) + 1
        ids = words.encode(whole[begin : begin + 8 * WINDOW])[:WINDOW]
        if len(ids) != WINDOW:
            raise ValueError(f"window {i}: the corpus gives only {len(ids)} ids there")
        rows.append(ids)
    return rows
