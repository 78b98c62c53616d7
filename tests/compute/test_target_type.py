"""Names of target types."""

from __future__ import annotations

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.layouts.type_grammar import as_target


@pytest.mark.parametrize(
    ("name", "arrow"),
    [
        ("BIGINT", pa.int64()),
        ("long", pa.int64()),
        ("real", pa.float32()),
        ("decimal", pa.decimal128(10, 0)),
        ("numeric(5)", pa.decimal128(5, 0)),
        ("DEC(38, 38)", pa.decimal128(38, 38)),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("time(6)", pa.time64("us")),
        ("uuid", pa.uuid()),
        ("uint16", pa.uint16()),
        ("large_string", pa.large_string()),
        ("array<array<tinyint>>", pa.list_(pa.list_(pa.int8()))),
        ("map<string, array<double>>", pa.map_(pa.string(), pa.list_(pa.float64()))),
        (" struct< b : int , a string NOT NULL COMMENT 'x>y' > ", pa.struct({"b": pa.int32(), "a": pa.string()})),
        ("struct<`a b``c`: int>", pa.struct({"a b`c": pa.int32()})),
        ("struct<>", pa.struct([])),
    ],
)
def test_names_are_read(name: str, arrow: pa.DataType) -> None:
    assert as_target(name) == arrow
    assert as_target(arrow) is arrow


@pytest.mark.parametrize(
    ("name", "offset"),
    [("", 0), ("strin", 0), ("array<int", 9), ("array<int>>", 10), ("decimal(39)", 0), ("decimal(x)", 8),
     ("struct<a>", 8), ("map<string>", 10), ("int;", 3), ("array<é>", 6), ("array<" * 200, 600)],
)  # fmt: skip
def test_an_invalid_type_is_refused_with_its_offset(name: str, offset: int) -> None:
    with pytest.raises(pv.VariantError) as caught:
        as_target(name)
    assert caught.value.reason == "bad-type"
    assert caught.value.offset == offset


def test_other_objects_are_refused() -> None:
    with pytest.raises(pv.VariantError):
        pv.variant_get(pv.parse_json(["1"]), "$", int)  # type: ignore[arg-type]
