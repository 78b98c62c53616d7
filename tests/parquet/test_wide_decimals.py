"""Decimals in more than 16 bytes are valid Parquet, but pyarrow does not read them: the error says so."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.footer import MAGIC, footer_bytes, parse_schema, schema_elements
from parquet_variant.files.parquet.format.thrift import BINARY, I32, STRUCT, encode_struct


def as_decimals(data: bytes, precision: int, scale: int) -> bytes:
    """A file whose fixed-length binary leaves of more than 16 bytes are decimals by their annotation."""
    footer = footer_bytes(io.BytesIO(data))
    pieces, done = [], 0
    for node, (start, end, element) in zip(parse_schema(footer).walk(), schema_elements(footer), strict=True):
        if node.physical == "FIXED_LEN_BYTE_ARRAY":
            logical = encode_struct((5, STRUCT, encode_struct((1, I32, scale), (2, I32, precision))))
            fields = [(1, I32, 7), (2, I32, node.length), (3, I32, element[3]), (4, BINARY, element[4])]
            fields += [(6, I32, 5), (7, I32, scale), (8, I32, precision), (10, STRUCT, logical)]
            pieces += [footer[done:start], encode_struct(*fields)]
            done = end
    changed = b"".join([*pieces, footer[done:]])
    return data[: -8 - len(footer)] + changed + len(changed).to_bytes(4, "little") + MAGIC


def write_wide(path, table: pa.Table, precision: int = 38, scale: int = 2) -> None:
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False, row_group_size=3)
    path.write_bytes(as_decimals(sink.getvalue(), precision, scale))


def wide(values: list[int | None], width: int) -> pa.Array:
    stored = [None if value is None else value.to_bytes(width, "big", signed=True) for value in values]
    return pa.array(stored, pa.binary(width))


@pytest.mark.parametrize("width", [17, 32])
def test_wide_decimals_are_refused_and_other_columns_are_read(tmp_path, width):
    write_wide(tmp_path / "d.parquet", pa.table({"d": wide([1, None, -(10**30)], width), "n": range(3)}))
    table = pv.open(tmp_path / "d.parquet")
    assert table.to_arrow(["n"]).to_pydict() == {"n": [0, 1, 2]}
    with pytest.raises(VariantFileError, match=f"Length of byte array passed to Decimal128::FromBigEndian was {width}"):
        table.to_arrow()
