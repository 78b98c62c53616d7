"""Decimals in more bytes than their precision needs are valid Parquet; pyarrow refuses them, so they are read here."""

from __future__ import annotations

import io
from decimal import Context, Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.footer import MAGIC, footer_bytes, parse_schema, schema_elements
from parquet_variant.files.parquet.format.thrift import BINARY, I32, STRUCT, encode_struct

VARIANT_ROWS = ['{"d": 1.25, "l": [3.50, "x"]}', '{"d": -0.01}', "null", '{"d": "text"}']


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


def decimals(values: list[int | None], scale: int = 2) -> list[Decimal | None]:
    return [None if value is None else Decimal(value).scaleb(-scale) for value in values]


LIMIT = 10**38 - 1
INTEGERS = st.none() | st.integers(-LIMIT, LIMIT) | st.sampled_from([0, -1, LIMIT, -LIMIT])


@given(
    values=st.lists(INTEGERS, min_size=1, max_size=9),
    width=st.integers(17, 40),
)
def test_values_are_those_that_duckdb_reads(tmp_path_factory, values, width):
    path = tmp_path_factory.mktemp("wide") / "d.parquet"
    column = wide(values, width)
    nested = pa.StructArray.from_arrays([column], ["s"])
    lists = pa.ListArray.from_arrays(pa.array([*range(len(values)), len(values)], pa.int32()), column)
    write_wide(path, pa.table({"d": column, "n": range(len(values)), "o": nested, "l": lists}))
    table = pv.open(path).to_arrow()
    assert table["d"].type == pa.decimal128(38, 2)
    exact = Context(prec=50)
    assert table["d"].to_pylist() == [None if value is None else exact.scaleb(Decimal(value), -2) for value in values]
    assert duckdb.sql(f"SELECT CAST(d AS VARCHAR) FROM '{path}' ORDER BY n").fetchall() == [
        (None if value is None else f"{value:f}",) for value in table["d"].to_pylist()
    ]
    assert [row["s"] for row in table["o"].to_pylist()] == table["d"].to_pylist()
    assert [row[0] for row in table["l"].to_pylist()] == table["d"].to_pylist()


@pytest.mark.parametrize("width", [17, 20, 32])
def test_filters_and_statistics_apply(tmp_path, width):
    values = [1, 250, None, 10**30, -5, -(10**30), 7, 8, 9]
    write_wide(tmp_path / "d.parquet", pa.table({"d": wide(values, width), "n": range(9)}))
    found = pv.open(tmp_path / "d.parquet").scan({"n": "n", "d": "d"}, where="d > 2").to_arrow()
    assert found["n"].to_pylist() == [1, 3]
    assert found["d"].to_pylist() == decimals([250, 10**30])
    assert pv.open(tmp_path / "d.parquet").scan({"n": "n"}, where="d = -0.05").to_arrow()["n"].to_pylist() == [4]


@pytest.mark.parametrize("width", [17, 24])
def test_shredded_decimals_are_read(tmp_path, width):
    array = pv.shred_variant(pv.parse_json(VARIANT_ROWS), "d decimal(38,2), l array<decimal(38,2)>")
    pv.write(tmp_path / "a.parquet", array)
    storage = pq.read_table(tmp_path / "a.parquet")["v"].combine_chunks()
    write_wide(tmp_path / "w.parquet", pa.table({"v": widened(storage, width)}))
    assert pv.open(tmp_path / "w.parquet").read().to_pylist() == array.to_pylist()
    pv.open(tmp_path / "w.parquet").annotate()
    report = pv.open(tmp_path / "w.parquet").validate()
    assert report.ok, str(report)
    found = pv.open(tmp_path / "w.parquet").scan({"d": "$.d:decimal(38,2)"}, where="$.d:decimal(38,2) < 0").to_arrow()
    assert found["d"].to_pylist() == [Decimal("-0.01")]
    pv.open(tmp_path / "w.parquet").rewrite(tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet")["v"].combine_chunks().type == storage.type
    assert pv.open(tmp_path / "r.parquet").read().to_pylist() == array.to_pylist()


def widened(array: pa.Array, width: int) -> pa.Array:
    """The array with decimals as fixed-length binaries."""
    kind = array.type
    if pa.types.is_decimal(kind):
        return wide([None if value is None else int(value * 100) for value in array.to_pylist()], width)
    if pa.types.is_struct(kind):
        children = [widened(array.field(number), width) for number in range(kind.num_fields)]
        fields = [field.with_type(child.type) for field, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pa.types.is_list(kind):
        values = widened(array.values, width)
        field = kind.value_field.with_type(values.type)
        return pa.ListArray.from_arrays(array.offsets, values, type=pa.list_(field), mask=array.is_null())
    return array


def test_values_of_too_many_digits_are_refused(tmp_path):
    write_wide(tmp_path / "d.parquet", pa.table({"d": wide([1, 10**38], 17)}))
    with pytest.raises(VariantFileError, match="38 digits"):
        pv.open(tmp_path / "d.parquet").to_arrow()
    write_wide(tmp_path / "e.parquet", pa.table({"d": wide([1, 1 << 130], 20)}))
    with pytest.raises(VariantFileError, match="38 digits"):
        pv.open(tmp_path / "e.parquet").to_arrow()
