"""Marks outside of strings, as a byte by byte reading finds them."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.json.scan import KIND_BITS, find_marks

_CLASSES = np.zeros(256, np.uint8)
_CLASSES[list(b"[{]},\n\r:")] = [1, 1, 2, 2, 3, 4, 4, 5]
_PIECES = st.sampled_from(
    [b'"', b"\\", b'\\"', b"\\\\", b"\n", b"\r", b",", b"[", b"}", b":", b"a" * 40, "é€".encode()]
)


def marks_by_hand(text: bytes, in_string: bool) -> tuple[bytes, list[tuple[int, int]], bool]:
    # A quote after an odd run of backslashes is none, wherever it stands.
    escaped = {found.end() for found in re.finditer(rb"\\+", text) if len(found[0]) % 2}
    changed, found = bytearray(text), []
    for at, byte in enumerate(text):
        if byte == ord('"') and at not in escaped:
            in_string = not in_string
        elif in_string:
            changed[at] = 0x0B if byte in b"\n\r" else byte
        elif _CLASSES[byte]:
            found.append((at, int(_CLASSES[byte])))
    return bytes(changed), found, in_string


@given(st.lists(_PIECES, max_size=40).map(b"".join), st.booleans())
def test_marks_are_those_outside_of_strings(text: bytes, in_string: bool) -> None:
    text = text.rstrip(b"\\")
    data = np.frombuffer(text, np.uint8).copy()
    exported, ends_in_string = find_marks(data, _CLASSES, in_string)
    marks = adopt(*exported)
    found = [(int(mark) >> KIND_BITS, int(mark) & (1 << KIND_BITS) - 1) for mark in marks]
    assert (data.tobytes(), found, ends_in_string) == marks_by_hand(text, in_string)
