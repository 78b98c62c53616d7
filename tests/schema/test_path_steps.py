"""A path leads the same way through a schema's Arrow type and through the footer of a file that holds it."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.format.footer import parse_schema
from parquet_variant.layouts.layout import Step, walk_path
from parquet_variant.layouts.storages import ArrowGroup

DDL = "a bigint, o struct<f: string, l: array<struct<x: double>>>, l array<bigint>"
PATHS = {
    "$": (Step.FOUND, False),
    "$.a": (Step.FOUND, False),
    "$.a.b": (Step.NOT_SHREDDED, False),
    "$.a[0]": (Step.NOT_SHREDDED, False),
    "$.o.f": (Step.FOUND, False),
    "$.o.g": (Step.NOT_SHREDDED, False),
    "$.o.l[*].x": (Step.FOUND, True),
    "$.o.l[2].y": (Step.NOT_SHREDDED, True),
    "$.o.l.x": (Step.NOT_SHREDDED, False),
    "$.l[0]": (Step.FOUND, True),
    "$.none[1].x": (Step.NOT_SHREDDED, False),
}


@pytest.fixture(scope="module")
def storage() -> pa.StructArray:
    rows = pv.parse_json(['{"a": 1, "o": {"f": "x", "l": [{"x": 1.5}]}, "l": [1]}'])
    return pv.shred_variant(rows, pv.ShreddingSchema.from_ddl(DDL)).storage


@pytest.mark.parametrize("path", PATHS)
def test_both_views_say_the_same(storage: pa.StructArray, path: str) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"v": storage}), file)
    footer = parse_schema(_footer(file.getvalue()), "a file").child("v")
    assert footer is not None
    ends = [walk_path(view, pv.VariantPath.parse(path)) for view in (ArrowGroup(storage.type), footer)]
    assert [(end.step, end.is_repeated) for end in ends] == [PATHS[path]] * 2
    names = [name for name in ends[1].group.path if name not in ("list", "element", "item")]
    assert [name for name in ends[0].group.path if name not in ("element", "item")] == names[1:]


def test_what_has_no_bytes_is_missing() -> None:
    typed = pa.struct({"a": pa.struct({"typed_value": pa.int64()}), "b": pa.struct({"value": pa.null()})})
    group = ArrowGroup(pa.struct({"metadata": pa.binary(), "typed_value": typed}))
    for path in ("$.c", "$.a.b", "$.b.c", "$[0]"):
        assert walk_path(group, pv.VariantPath.parse(path)).step is Step.MISSING


def _footer(data: bytes) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8]
