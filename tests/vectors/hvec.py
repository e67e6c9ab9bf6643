"""Writes the vector files that tests/vectors/read.h reads."""
import pathlib
import struct


def write(name, arrays):
    """arrays: name -> bytes."""
    with open(pathlib.Path(__file__).parent / name, "wb") as f:
        f.write(b"HVEC1\n")
        for key, data in arrays.items():
            f.write(struct.pack("<I", len(key)) + key.encode() + struct.pack("<Q", len(data)) + data)
