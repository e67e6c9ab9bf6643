"""The vector files that tests/vectors/read.h reads: named arrays, written and read back."""
import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent


def write(name, arrays):
    """arrays: name -> bytes."""
    with open(FOLDER / name, "wb") as f:
        f.write(b"HVEC1\n")
        for key, data in arrays.items():
            f.write(struct.pack("<I", len(key)) + key.encode() + struct.pack("<Q", len(data)) + data)


def read(name):
    """name -> bytes."""
    whole = (FOLDER / name).read_bytes()
    if whole[:6] != b"HVEC1\n":
        raise ValueError(f"{name} is no vector file")
    arrays, at = {}, 6
    while at < len(whole):
        (size,) = struct.unpack_from("<I", whole, at)
        key = whole[at + 4 : at + 4 + size].decode()
        (length,) = struct.unpack_from("<Q", whole, at + 4 + size)
        at += 12 + size
        arrays[key] = whole[at : at + length]
        at += length
    return arrays
