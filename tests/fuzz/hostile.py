"""Bytes that an attacker may send: values that were valid before a change, headers that lie, and noise.

Owns the strategies and how an outcome is compared. Leaves the targets to the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import parquet_variant as pv
from variant_strategies import json_texts, mutated_variants, variants

__all__ = ["documents", "hostile", "outcome"]

# The rows around the hostile one: they must come out as if it were not there.
BEFORE, AFTER = pv.parse_json('{"a":[1,"x"],"b":null}'), pv.parse_json("[2.50]")


@st.composite
def lying(draw: Callable[[Any], Any], depth: int = 3) -> bytes:
    """A value whose counts, ids and offsets are small random numbers, so that many are nearly right."""
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind < 2:
        return draw(
            st.sampled_from([b"\x00", b"\x04", b"\x0c\x05", b"\x05a", b"\x40\x01\x00\x00\x00a", b"\x05\xff", b""])
        )
    children = [draw(lying(depth - 1)) for _ in range(draw(st.integers(0, 3)))]
    lengths = np.cumsum([0, *map(len, children)]).tolist()
    count = max(0, len(children) + draw(st.sampled_from([0, 0, 0, 0, 1, -1, 200])))
    wrong = draw(st.sampled_from([0, 0, 0, 1, 2, 250]))
    places = [lengths[min(i, len(lengths) - 1)] for i in range(min(count, 8) + 1)]
    if wrong:
        at = draw(st.integers(0, len(places) - 1))
        places[at] = (places[at] + wrong) % 256
    width = draw(st.integers(1, 2))
    is_object = kind == 3
    header = (width - 1) << 2 | (3 - is_object)
    ids = bytes(draw(st.integers(0, 3)) for _ in range(min(count, 8))) if is_object else b""
    offsets = b"".join(place.to_bytes(width, "little") for place in places)
    return bytes([header, min(count, 255)]) + ids + offsets + b"".join(children)


_METADATA = st.sampled_from(
    [
        bytes.fromhex("110300010203616263"),  # a b c
        bytes.fromhex("010300010203636261"),  # c b a, not sorted
        bytes.fromhex("010300010203616162"),  # a a b
        bytes.fromhex("110300010203626163"),  # says sorted, is not
        bytes.fromhex("110300010203ff6263"),  # no UTF-8
        bytes.fromhex("110300050203616263"),  # offsets backwards
        bytes.fromhex("110000"),
        bytes.fromhex("12"),
        b"",
    ]
)


def hostile() -> Any:
    """Variants that may be malformed in any way, and some that are not."""
    return (
        mutated_variants(max_leaves=8, max_changes=3)
        | st.builds(pv.Variant, _METADATA, lying())
        | st.builds(pv.Variant, _METADATA | st.binary(max_size=12), st.binary(max_size=40))
        | variants(max_leaves=8)
    )


def documents() -> Any:
    """Bytes that may be JSON."""
    noise = st.lists(
        st.sampled_from(['{"a":', "[", "]", "}", '"', "\\u", "\\ud83d", "1e", "-", "0", ",", ":", "null", " "])
    )
    broken = st.builds(
        lambda text, at, byte: (
            (raw := text.encode())[: at % (len(raw) + 1)] + bytes([byte]) + raw[at % (len(raw) + 1) + 1 :]
        ),
        json_texts(max_leaves=6),
        st.integers(0, 200),
        st.integers(0, 255),
    )
    return (
        json_texts(max_leaves=8).map(str.encode)
        | broken
        | noise.map(lambda parts: "".join(parts).encode())
        | st.binary(max_size=30)
    )


def surrounded(value: pv.Variant) -> pv.VariantArray:
    """The hostile value between two good rows and a SQL NULL."""
    return pv.VariantArray.from_variants([BEFORE, value, None, AFTER])


def outcome(work: Callable[[], Any]) -> Any:
    """What comes out, or the class of the error: any error that is not ours fails the test."""
    try:
        return work()
    except pv.VariantError as error:
        assert "\n" not in str(error)
        return type(error), error.reason
