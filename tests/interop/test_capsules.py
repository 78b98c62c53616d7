"""Variant columns through Arrow's PyCapsule interface: the extension's name and every row survive."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.arrays.chunked_array import ChunkedVariantArray, variant_table
from parquet_variant.errors import SchemaError
from variant_strategies import variants

NAME = "arrow.parquet.variant"
ROWS = ['{"a": 1}', None, "null", '{"b": [1, 2, {"c": "x"}]}', '{"a": "text"}']


def arrays():
    plain = pv.parse_json(ROWS)
    shredded = pv.shred_variant(plain, pv.ShreddingSchema.from_ddl("a bigint, b array<variant>"))
    return {"unshredded": plain, "shredded": shredded, "slice": shredded[1:4], "empty": plain[:0]}


@pytest.fixture(params=sorted(arrays()))
def array(request):
    return arrays()[request.param]


def chunks(array):
    return ChunkedVariantArray([array, array[1:3], array[:0], array])


def assert_same(found: pv.VariantArray, wanted) -> None:
    assert list(found) == list(wanted)
    assert found.null_count == wanted.null_count
    parts = pv.get_variant_element(found, "$.b", "variant")
    assert list(pv.VariantArray(parts)) == [None if value is None else value.get("$.b") for value in wanted]


# ---- pyarrow, and the protocol itself


def test_schema_names_the_extension_with_empty_metadata(array):
    metadata = {b"ARROW:extension:name": NAME.encode(), b"ARROW:extension:metadata": b""}
    assert pa.field(array).metadata == metadata
    assert pa.Field._import_from_c_capsule(array.__arrow_c_array__()[0]).metadata == metadata


def test_stream_names_the_extension():
    na = pytest.importorskip("nanoarrow", reason="nanoarrow is not installed")
    array = arrays()["shredded"]
    schema = na.ArrayStream(chunks(array)).schema
    assert schema.extension.name == NAME
    assert not schema.extension.metadata


def test_pyarrow_takes_array_and_stream(array):
    assert_same(pv.VariantArray(pa.array(array)), array)
    chunked = chunks(array)
    found = pa.chunked_array(chunked)
    assert found.null_count == chunked.null_count
    assert_same(pv.VariantArray.from_arrow(found), chunked)


def test_streams_outlive_what_they_were_made_of():
    readers = [pa.chunked_array(chunks(arrays()["shredded"])) for _ in range(50)]
    assert all(pv.VariantArray.from_arrow(reader).null_count == 3 for reader in readers)


def test_requested_schema_is_followed_where_it_asks_for_encodings():
    array = arrays()["unshredded"]
    wanted = pa.struct({"metadata": pa.large_binary(), "value": pa.binary_view()})
    found = pa.Array._import_from_c_capsule(*array.__arrow_c_array__(wanted.__arrow_c_schema__()))
    assert found.type.field("metadata").type == pa.large_binary()
    assert found.type.field("value").type == pa.binary_view()
    assert_same(pv.VariantArray(found), array)
    other = array.__arrow_c_array__(pa.struct({"x": pa.int64()}).__arrow_c_schema__())
    assert_same(pv.VariantArray(pa.Array._import_from_c_capsule(*other)), array)


@pytest.mark.parametrize(
    "metadata",
    [
        pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary()),
        pa.dictionary(pa.uint32(), pa.large_binary()), pa.run_end_encoded(pa.int32(), pa.binary()),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("value", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("shredded", [False, True])
def test_any_storage_of_a_producer_is_read_by_name(metadata, value, shredded):
    array = arrays()["shredded" if shredded else "unshredded"]
    names = [field.name for field in array.storage.type][::-1]
    columns = []
    for name in names:
        column = array.storage.field(name)
        if name == "value":
            column = column.cast(value)
        elif name == "metadata":
            plain = column.dictionary_decode()
            if pa.types.is_run_end_encoded(metadata):
                column = pa.compute.run_end_encode(plain)
            elif pa.types.is_dictionary(metadata):
                column = plain.cast(metadata.value_type).dictionary_encode().cast(metadata)
            else:
                column = plain.cast(metadata)
        columns.append(column)
    storage = pa.StructArray.from_arrays(columns, names=names, mask=array.storage.is_null())
    assert storage.type.field("metadata").type == metadata

    class Producer:
        def __arrow_c_array__(self, requested_schema=None):
            return storage.__arrow_c_array__()

    found = pv.VariantArray.from_arrow(Producer())
    assert_same(found, array)
    assert pv.get_variant_element(found, "$.a", "bigint").to_pylist() == [1, None, None, None, None]


def test_tables_by_name_and_by_extension(array):
    table = variant_table({"id": pa.array(range(len(array))), "v": array})
    assert table.schema.field("v").metadata[b"ARROW:extension:name"] == NAME.encode()
    assert_same(pv.VariantArray.from_arrow(table), array)
    assert_same(pv.VariantArray.from_arrow(pa.RecordBatchReader.from_stream(table), column="v"), array)
    two = variant_table({"v": array, "w": array})
    with pytest.raises(SchemaError, match="Variant columns instead of one"):
        pv.VariantArray.from_arrow(two)
    with pytest.raises(SchemaError, match="'x'"):
        pv.VariantArray.from_arrow(two, column="x")


def test_nulls_of_a_struct_hide_its_variants():
    array = arrays()["unshredded"]
    parent = pa.StructArray.from_arrays([array.storage], names=["v"], mask=pa.array([True] + [False] * 4))
    found = pv.VariantArray.from_arrow(pa.chunked_array([parent]), column="v")
    assert list(found) == [None, *list(array)[1:]]


def test_no_arrow_data_is_refused():
    with pytest.raises(SchemaError) as refused:
        pv.VariantArray.from_arrow([1, 2])
    assert refused.value.reason == "not-arrow"
    with pytest.raises(SchemaError):
        pv.VariantArray.from_arrow(pa.array([1, 2]))
    with pytest.raises(SchemaError, match="storage type"):
        ChunkedVariantArray([arrays()["unshredded"], arrays()["shredded"]])


@given(st.lists(st.none() | variants(max_leaves=6), max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_streams_keep_every_value(values, first, last):
    array = pv.VariantArray.from_variants(values)
    chunked = ChunkedVariantArray([array, array[first:last]])
    assert_same(pv.VariantArray.from_arrow(pa.chunked_array(chunked)), chunked)
    assert list(pv.VariantArray.from_arrow(chunked)) == [*values, *values[first:last]]


# ---- the named consumers


def test_polars(array):
    pl = pytest.importorskip("polars", minversion="2", reason="polars 2 is not installed")
    for given_column in (array, chunks(array)):
        series = pl.Series("v", given_column)
        assert NAME in str(series.dtype)
        assert series.null_count() == given_column.null_count
        assert_same(pv.VariantArray.from_arrow(series), given_column)
    frame = pl.DataFrame(variant_table({"v": array}))
    assert_same(pv.VariantArray.from_arrow(frame), array)


def test_arro3(array):
    arro3 = pytest.importorskip("arro3.core", reason="arro3-core is not installed")
    one = arro3.Array.from_arrow(array)
    assert one.field.metadata_str["ARROW:extension:name"] == NAME
    assert_same(pv.VariantArray.from_arrow(one), array)
    many = arro3.ChunkedArray.from_arrow(chunks(array))
    assert many.field.metadata_str["ARROW:extension:name"] == NAME
    assert_same(pv.VariantArray.from_arrow(many), chunks(array))


def test_nanoarrow(array):
    na = pytest.importorskip("nanoarrow", reason="nanoarrow is not installed")
    one = na.c_array(array)
    assert na.Schema(one.schema).extension.name == NAME
    assert one.null_count == array.null_count
    assert_same(pv.VariantArray.from_arrow(one), array)
    assert_same(pv.VariantArray.from_arrow(na.c_array_stream(chunks(array))), chunks(array))


def test_duckdb_takes_and_gives():
    duckdb = pytest.importorskip("duckdb", minversion="2", reason="DuckDB 2 is not installed")
    array = arrays()["unshredded"]
    table = variant_table({"v": ChunkedVariantArray([array, array]), "id": pa.array(range(2 * len(array)))})
    connection = duckdb.connect()
    connection.register("t", table)
    assert set(connection.sql("SELECT DISTINCT typeof(v) FROM t").fetchall()) == {("VARIANT",)}
    assert connection.sql("SELECT v.a::VARCHAR FROM t ORDER BY id").fetchall()[:5] == [
        ("1",), (None,), (None,), (None,), ("text",),
    ]  # fmt: skip
    found = pv.VariantArray.from_arrow(connection.sql("SELECT v FROM t ORDER BY id"))
    # DuckDB has one null: its SQL NULL is our SQL NULL, or our Variant null.
    assert found.to_pylist() == 2 * array.to_pylist()


DAFT = """
import daft, pyarrow as pa, parquet_variant as pv
from parquet_variant.arrays.chunked_array import variant_table
array = pv.parse_json(['{"a": 1}', None, "null", '{"b": [1]}'])
shredded = pv.shred_variant(array, pv.ShreddingSchema.from_ddl("a bigint"))
exports = hasattr(daft.DataFrame, "__arrow_c_stream__")
for given in (array, shredded):
    frame = daft.from_arrow(variant_table({"v": given}, plain=True))
    # daft before 0.7 drops the names of extensions that pyarrow does not have registered.
    assert not exports or "arrow.parquet.variant" in str(frame.schema()), frame.schema()
    found = pv.VariantArray.from_arrow(frame if exports else frame.to_arrow(), column="v")
    assert list(found) == list(array) and found.null_count == 1
    series = daft.Series.from_arrow(variant_table({"v": given}, plain=True)["v"].combine_chunks())
    assert list(pv.VariantArray.from_arrow(series.to_arrow())) == list(array)
    if hasattr(series, "__arrow_c_array__"):
        assert list(pv.VariantArray.from_arrow(series)) == list(array)
print(daft.__version__)
"""


def test_daft():
    pytest.importorskip("daft", reason="daft is not installed")
    run_alone(DAFT)


def test_daft_of_another_environment():
    """daft 0.7 wants an older pyarrow than the rest: it is asked in an environment of its own."""
    python = os.environ.get("DAFT_PYTHON")
    if not python:
        pytest.skip("set DAFT_PYTHON to a Python that has daft 0.7, pyarrow and numba")
    sources = str(Path(pv.__file__).parents[1])
    done = subprocess.run(
        [python, "-c", DAFT], capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": sources}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("0.7"), done.stdout


# ---- a process with an extension type of its own


def run_alone(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_registered_extension_type_does_no_harm(tmp_path):
    run_alone(f"""
    import pyarrow as pa, pyarrow.parquet as pq, parquet_variant as pv
    from parquet_variant.arrays.chunked_array import ChunkedVariantArray, variant_table

    class Variant(pa.ExtensionType):
        def __init__(self, storage):
            super().__init__(storage, "arrow.parquet.variant")
        def __arrow_ext_serialize__(self):
            return b""
        @classmethod
        def __arrow_ext_deserialize__(cls, storage, serialized):
            return cls(storage)

    path = r"{tmp_path}/"
    plain = pv.parse_json(['{{"a": 1}}', None, "null"])
    pa.register_extension_type(Variant(plain.storage.type))
    shredded = pv.shred_variant(plain, pv.ShreddingSchema.from_ddl("a bigint"))
    for array in (plain, shredded):
        theirs = pa.array(array)
        assert isinstance(theirs.type, Variant), theirs.type
        assert pv.VariantArray.from_arrow(theirs).equals(array)
        assert pv.VariantArray.from_arrow(pa.chunked_array(ChunkedVariantArray([array, array]))).equals(
            pv.VariantArray.concat([array, array]))
        table = pa.table({{"v": theirs, "n": [1, 2, 3]}})
        assert isinstance(table.schema.field("v").type, Variant)
        assert pv.VariantArray.from_arrow(table).equals(array)
        # Never their type into pyarrow's Parquet writer: that would be a segmentation fault.
        pv.write(path + "t.parquet", table, mode="overwrite")
        found = pv.open(path + "t.parquet").read()
        assert pv.VariantArray.from_arrow(found).equals(array)
        pv.write(path + "u.parquet", variant_table({{"v": array}}), mode="overwrite")
        assert pv.open(path + "u.parquet").read().equals(array)
        pv.write(path + "w.parquet", array, mode="overwrite")
        rows = pv.open(path + "t.parquet").to_arrow()
        assert pv.VariantArray.from_arrow(rows, column="v").equals(array)
        inside = pa.table({{"s": pa.StructArray.from_arrays([theirs], names=["v"]),
            "l": pa.ListArray.from_arrays([0, 1, 2, 3], theirs)}})
        pv.write(path + "n.parquet", inside, mode="overwrite")
        assert list(pv.open(path + "n.parquet").read("s.v")) == list(array)
        assert pv.get_variant_element(theirs, "$.a", "bigint").to_pylist() == [1, None, None]
    wrong = pa.ExtensionArray.from_storage(Variant(pa.int64()), pa.array([1]))
    try:
        pv.write(path + "x.parquet", pa.table({{"v": wrong}}))
    except pv.SchemaError as error:
        assert error.reason == "not-a-variant"
    else:
        raise AssertionError("an int64 column is no Variant")
    """)
