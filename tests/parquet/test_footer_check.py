"""Footers whose column chunks do not fit their schema are refused before pyarrow looks at them: it would abort."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.parquet.format.footer import check_chunks, footer_bytes, parse_schema


def footer_of(path: Path, table: pa.Table) -> bytes:
    pq.write_table(table, path)
    return footer_bytes(pa.OSFile(str(path)), str(path))


NESTED = pa.list_(pa.struct({"a": pa.int64(), "b": pa.string()}))


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.bool_(), pa.float32(), pa.decimal128(20, 2), NESTED])
def test_footers_as_writers_make_them_agree(tmp_path: Path, kind: pa.DataType) -> None:
    footer = footer_of(tmp_path / "a.parquet", pa.table({"x": pa.nulls(5, kind), "y": range(5)}))
    check_chunks(footer, parse_schema(footer))


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (pa.field("x", pa.int64()), pa.field("x", pa.int32())),
        (pa.field("x", pa.string()), pa.field("x", pa.bool_())),
        (pa.field("x", pa.list_(pa.int64())), pa.field("x", pa.struct({"a": pa.struct({"b": pa.int64()})}))),
    ],
)
def test_a_footer_under_another_schema_is_refused(tmp_path: Path, kind: pa.Field, other: pa.Field) -> None:
    """The type of a chunk, or the levels that its size statistics count, are not those of the column."""
    empty = pa.schema([kind]).empty_table()
    footer = footer_of(tmp_path / "a.parquet", pa.table([pa.nulls(3, kind.type)], schema=empty.schema))
    wrong = parse_schema(
        footer_of(tmp_path / "b.parquet", pa.table([pa.nulls(3, other.type)], schema=pa.schema([other])))
    )
    with pytest.raises(pv.VariantFileError) as caught:
        check_chunks(footer, wrong)
    assert caught.value.reason == "bad-footer"
    two = parse_schema(footer_of(tmp_path / "c.parquet", pa.table({"x": pa.nulls(1, kind.type), "y": [1]})))
    with pytest.raises(pv.VariantFileError):
        check_chunks(footer, two)


def test_a_footer_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    footer = footer_of(tmp_path / "a.parquet", pa.table({"x": [1, 2, 3]}))
    schema = parse_schema(footer)
    for size in range(0, len(footer), 3):
        with pytest.raises(pv.VariantFileError):
            check_chunks(footer[:size], schema)


@pytest.mark.parametrize("codec", [-1, 8, 38])
def test_a_codec_that_nobody_knows_is_refused(tmp_path: Path, codec: int) -> None:
    """pyarrow ends the process when it is asked for the name of such a codec."""
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3]}), path, compression="zstd")
    data = path.read_bytes()
    path_in_schema, zstd = b"\x19\x18\x01x", b"\x15\x0c"
    assert data.count(path_in_schema + zstd) == 1
    path.write_bytes(
        data.replace(path_in_schema + zstd, path_in_schema + bytes([0x15, 2 * codec if codec >= 0 else 1]))
    )
    for read in (pv.parquet.read_table, pv.parquet.inspect):
        with pytest.raises(pv.VariantFileError) as caught:
            read(path)
        assert caught.value.reason == "bad-footer"
