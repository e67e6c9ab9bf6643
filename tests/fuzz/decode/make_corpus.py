"""Writes the seeds of the kv_file target: stored prefixes as src/decode/kv_file.h describes them, for the groups of
tests/decode/kv_file_bytes.h. Run: python tests/fuzz/decode/make_corpus.py"""
import json
import pathlib
import struct

ROOT = pathlib.Path(__file__).parents[1] / "corpus" / "kv_file"
KEY, MASK = 0x9FB21C651E98DF25, 2**64 - 1


def fold(a, b):
    product = a * b
    return a ^ b ^ (product & MASK) ^ (product >> 64)


def checksum(data):
    """base/checksum.cpp."""
    h = [KEY * (2 * i + 3) & MASK for i in range(8)]
    for at in range(0, len(data), 128):
        words = struct.unpack("<16Q", data[at:at + 128].ljust(128, b"\0"))
        h = [fold(h[i] ^ words[2 * i], KEY ^ words[2 * i + 1]) for i in range(8)]
    total = len(data)
    for each in h:
        total = fold(total ^ KEY, each)
    return f"{fold(total, KEY):016x}"


def padded(data):
    return data + bytes(-len(data) % 4096)


def stored(positions, window=50, Dh=64):
    layer = lambda kind, Hkv, w: {"kind": kind, "bits": 4, "G": 64, "Hkv": Hkv, "Dh": Dh, "window": w}
    pages = []
    for layers, Hkv, w in ((2, 1, 0), (1, 2, window)):
        first = 0 if w == 0 else max(0, positions - w + 1) // 64
        pages += [bytes([7 + i]) * (layers * 2 * Hkv * 64 * (Dh // 2 + 4)) for i in range(first, -(-positions // 64))]
    ids = struct.pack(f"<{positions}I", *range(positions))
    text = json.dumps({"fingerprint": "f", "space": "s", "P": 64,
                       "layers": [layer("full", 1, 0)] * 2 + [layer("window", 2, window)], "positions": positions,
                       "created": 0, "ids_checksum": checksum(ids), "page_checksums": [checksum(p) for p in pages]},
                      separators=(",", ":")).encode()
    head = b"HKV1" + struct.pack("<II", 1, len(text)) + text + ids
    return padded(head) + b"".join(map(padded, pages))


ROOT.mkdir(parents=True, exist_ok=True)
(ROOT / "one").write_bytes(stored(1))
(ROOT / "window").write_bytes(stored(130))
(ROOT / "cut").write_bytes(stored(70)[:5000])
(ROOT / "empty").write_bytes(b"HKV1" + struct.pack("<II", 1, 2) + b"{}")
