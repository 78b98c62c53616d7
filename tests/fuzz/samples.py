"""Random documents, schemas and damage for suites that run without Hypothesis: in child processes, and for minutes."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa

import parquet_variant as pv

__all__ = ["damaged_array", "damaged_bytes", "damaged_text", "documents", "random_array", "random_ddl"]

_NAMES = ["a", "b", "c", "d e", "", "é", "a.b"]
_TYPES = ["bigint", "int", "double", "float", "string", "boolean", "decimal(9, 2)", "decimal(38, 4)", "date", "time",
          "timestamp", "timestamp_ntz", "binary", "uuid", "variant"]  # fmt: skip


def _scalar(source: random.Random) -> Any:
    kind = source.randrange(8)
    if kind == 0:
        return source.choice([0, 1, -1, 127, 128, 2**31, -(2**63), 2**63, 10**30])
    if kind == 1:
        return source.choice([0.5, -1.25, 1e300, 3.0, 0.1])
    if kind == 2:
        return source.choice(["", "x", "é" * 5, "y" * 100, "2024-01-01", "\0"])
    if kind == 3:
        return source.choice([True, False, None])
    return source.randrange(-50, 50)


def _value(source: random.Random, depth: int) -> Any:
    kind = source.randrange(4) if depth else 0
    if kind < 2:
        return _scalar(source)
    if kind == 2:
        return [_value(source, depth - 1) for _ in range(source.randrange(4))]
    return {source.choice(_NAMES): _value(source, depth - 1) for _ in range(source.randrange(5))}


def documents(source: random.Random, rows: int) -> list[str | None]:
    """JSON texts of some rows; some are NULL."""
    return [None if source.random() < 0.1 else json.dumps(_value(source, 3)) for _ in range(rows)]


def random_ddl(source: random.Random, depth: int = 2) -> str:
    """What to shred, in DDL."""
    kind = source.randrange(4) if depth else 0
    if kind < 2:
        return source.choice(_TYPES)
    if kind == 2:
        return f"array<{random_ddl(source, depth - 1)}>"
    names = source.sample(_NAMES[:3], source.randrange(1, 4))
    return f"struct<{', '.join(f'{name} {random_ddl(source, depth - 1)}' for name in names)}>"


def random_array(source: random.Random, rows: int | None = None) -> pv.VariantArray:
    """Values in a random layout, under a random schema; maybe a slice."""
    array = pv.parse_json(documents(source, source.randrange(1, 12) if rows is None else rows))
    layout = source.choice([None, "final", "final", "draft-paths", "draft-object"])
    if layout is not None:
        array = pv.shred_variant(array, random_ddl(source), layout=layout)
    if rows is None and source.random() < 0.3:
        start = source.randrange(len(array))
        array = array[start : source.randrange(start, len(array) + 1)]
    return array


def damaged_bytes(source: random.Random, data: bytes, most: int = 3) -> bytes:
    """The bytes with a few of them changed, taken out or put in."""
    raw = bytearray(data)
    for _ in range(source.randrange(1, most + 1)):
        at = source.randrange(len(raw) + 1)
        what = source.randrange(5)
        if what == 0:
            del raw[at : at + source.randrange(1, 9)]
        elif what == 1:
            raw[at:at] = source.randbytes(source.randrange(1, 9))
        elif at < len(raw):
            raw[at] = source.choice([0, 0xFF, 0x7F, 0x80, raw[at] ^ (1 << source.randrange(8)), source.randrange(256)])
    return bytes(raw)


def damaged_text(source: random.Random, text: str, words: list[str]) -> str:
    """The text with pieces of it doubled, dropped or replaced by other words."""
    for _ in range(source.randrange(1, 4)):
        at, size = source.randrange(len(text) + 1), source.randrange(6)
        middle = source.choice(
            [*words, "", text[at : at + size] * 2, chr(source.choice([0, 9, 34, 39, 0xE9, 0x1F600]))]
        )
        text = text[:at] + middle + text[at + size :]
    return text


def damaged_array(source: random.Random, array: pa.Array, *, hit: float = 0.3) -> pa.Array:
    """The array with some offsets, indices, validity bits or bytes changed somewhere below it.

    Raises
    ------
    pyarrow.ArrowInvalid
        If pyarrow itself sees the damage.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, damaged_array(source, array.storage, hit=hit))
    if pa.types.is_dictionary(kind):
        indices = damaged_array(source, array.indices, hit=hit)
        dictionary = damaged_array(source, array.dictionary, hit=hit)
        return pa.DictionaryArray.from_arrays(indices, dictionary, safe=False)
    if pa.types.is_struct(kind):
        array = array if array.offset == 0 else pa.concat_arrays([array])
        children = [damaged_array(source, array.field(index), hit=hit) for index in range(kind.num_fields)]
        fields = [field.with_type(child.type) for field, child in zip(kind, children, strict=True)]
        buffers = _changed(source, array.buffers()[:1], hit, np.uint8)
        return pa.Array.from_buffers(pa.struct(fields), len(array), buffers, children=children)
    if pa.types.is_list(kind):
        buffers = _changed(source, array.buffers()[:2], hit, np.int32)
        values = damaged_array(source, array.values, hit=hit)
        wanted = pa.list_(kind.value_field.with_type(values.type))
        return pa.Array.from_buffers(wanted, len(array), buffers, offset=array.offset, children=[values])
    width: Any = np.int32 if pa.types.is_binary(kind) or pa.types.is_string(kind) or kind == pa.int32() else np.uint8
    return pa.Array.from_buffers(kind, len(array), _changed(source, array.buffers(), hit, width), offset=array.offset)


def _changed(source: random.Random, buffers: list[Any], hit: float, width: Any) -> list[Any]:
    out = []
    for number, buffer in enumerate(buffers):
        if buffer is None or not buffer.size or source.random() > hit:
            out.append(buffer)
            continue
        entries = np.frombuffer(buffer, np.uint8).copy()
        view = (
            entries if number != 1 else entries[: len(entries) // np.dtype(width).itemsize * np.dtype(width).itemsize]
        )
        view = view.view(width) if number == 1 else view
        for _ in range(source.randrange(1, 3)):
            if len(view):
                at = source.randrange(len(view))
                least, most = np.iinfo(view.dtype).min, np.iinfo(view.dtype).max
                small = int(view[at]) + source.choice([-2, -1, 1, 2, 7, 1000])
                view[at] = min(max(source.choice([0, small, least, most, source.randrange(256)]), least), most)
        out.append(pa.py_buffer(entries))
    return out
