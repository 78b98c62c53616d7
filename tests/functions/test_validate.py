"""`pv.validate` reports what the reference finds, and the kernel's yes is never wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.encoding.validate import find_faults
from parquet_variant.layouts.reference import rows as reference
from parquet_variant.ops.validate import sound_rows
from variant_strategies import mutated_variants, variants

CORPUS = Path(__file__).parent.parent / "data" / "malformed"


def _reported(array: Any, **options: Any) -> list[tuple[Any, ...]]:
    report = pv.validate(array, **options).to_pylist()
    return [(fault["row"], fault["part"], fault["offset"], fault["reason"], fault["message"]) for fault in report]


def _expected(values: list[pv.Variant | None], **options: Any) -> list[tuple[Any, ...]]:
    return [
        (row, fault.part, fault.offset, fault.reason, fault.message)
        for row, value in enumerate(values)
        if value is not None
        for fault in find_faults(value.metadata, value.value, **options)
    ]


@given(st.lists(st.none() | variants() | mutated_variants(), max_size=4), st.integers(0, 4) | st.just(1000))
def test_the_report_is_that_of_the_reference(values: list[Any], max_depth: int) -> None:
    array = pv.VariantArray.from_variants(values)
    assert _reported(array, max_depth=max_depth) == _expected(values, max_depth=max_depth)


@given(variants() | mutated_variants(), st.integers(0, 4) | st.just(1000))
def test_the_kernel_says_yes_where_the_reference_finds_nothing(value: pv.Variant, max_depth: int) -> None:
    [sound] = sound_rows(pv.VariantArray.from_variants([value]).storage, max_depth)
    faults = find_faults(value.metadata, value.value, max_depth)
    if not sound and not faults:  # left to the reference on purpose: a name twice, not flagged as sorted
        names = decode_metadata(value.metadata)
        assert len(set(names)) < len(names)
    else:
        assert sound == (not faults)


def test_every_attack_is_named_in_one_column() -> None:
    expected = json.loads((CORPUS / "expected.json").read_text())
    values = [
        pv.Variant(*((CORPUS / f"{name}.{part}").read_bytes() for part in ("metadata", "value"))) for name in expected
    ]
    report = pv.validate(pv.VariantArray.from_variants([*values, pv.Variant.from_python({"a": 1})]))
    first: dict[int, str] = {}
    for fault in report.to_pylist():
        first.setdefault(fault["row"], fault["reason"])
    assert first == dict(enumerate(expected.values()))


def test_sql_null_and_a_slice_and_one_value() -> None:
    cut = pv.Variant(b"\x11\x00\x00", b"\x0c")
    array = pv.VariantArray.from_variants([cut, None, pv.Variant.from_python([1]), cut])
    assert [fault[0] for fault in _reported(array[1:])] == [2]
    assert _reported(cut) == _expected([cut])
    assert pv.validate(pv.VariantArray.from_variants([])).num_rows == 0


def test_columns_of_a_shredded_array_are_looked_into() -> None:
    element = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
    typed = pa.struct([("a", pa.struct([("value", pa.binary()), ("typed_value", pa.list_(element))]))])
    metadata = b"\x11\x01\x00\x01a"
    fields = [{"typed_value": [{"typed_value": 1}]}, {"typed_value": [{"value": b"\x0c"}]}]
    fields.append({"value": b"\x00", "typed_value": []})
    rows: list[Any] = [{"metadata": metadata, "typed_value": {"a": field}} for field in fields]
    rows += [{"metadata": b"\x12", "value": b"\x00"}, None]
    storage = pa.array(rows, pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", typed)]))
    report = pv.validate(storage).to_pylist()
    assert [(fault["row"], fault["path"], fault["part"], fault["offset"], fault["reason"]) for fault in report] == [
        (1, "$['a'][*]", "value", 0, "truncated"),
        (2, "$['a']", None, None, "both-set"),
        (3, "$", "metadata", 0, "bad-version"),
    ]


@pytest.mark.parametrize("layout", ["unshredded", "final", "draft-paths", "draft-object"])
def test_every_layout(layout: Any) -> None:
    values = [*pv.parse_json(['{"a":1,"b":[1,"x"],"c":{"d":null}}', "5"]), None]
    schema = pv.ShreddingSchema.from_ddl("struct<a bigint, b array<string>>")
    storage = reference.shredded_storage(values, schema, layout)
    assert pv.validate(storage).num_rows == 0
    if layout == "draft-paths":  # the same row, and one whose residual is cut off
        rows = storage.take(pa.array([0, 0])).to_pylist()
        rows[1]["value"] = rows[1]["value"][:-1]
        assert {fault["row"] for fault in pv.validate(pa.array(rows, storage.type)).to_pylist()} == {1}


def test_strings_of_any_length_are_checked_up_to_the_last_byte() -> None:
    lines = []
    for size in (*range(10), 15, 16, 17, 24, 25, 31, 32, 33, 41, 63, 65):
        text = bytes(97 + n % 26 for n in range(size))
        lines.append(text)
        for n in range(size):
            lines += [text[:n] + b"\xff" + text[n + 1 :], text[:n] + "é".encode() + text[n:]]
    values = [pv.Variant(b"\x01\x00\x00", b"\x40" + len(line).to_bytes(4, "little") + line) for line in lines]
    faults = pv.validate(pv.VariantArray.from_variants(values))
    assert set(faults["reason"].to_pylist()) == {"bad-utf8"}
    assert faults["row"].to_pylist() == [row for row, line in enumerate(lines) if b"\xff" in line]
