"""Files written by kernels are the files that pyarrow would write: same schema, same values, same statistics."""

from __future__ import annotations

import hashlib
import io
import uuid

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.arrow_schema import file_schema, is_written
from parquet_variant.files.parquet.format.footer import footer_bytes
from parquet_variant.files.parquet.format.thrift import STRUCT, read_value
from parquet_variant.files.parquet.pages import file_writer
from parquet_variant.files.parquet.pages.encodings import Encoding, is_encodable
from parquet_variant.files.parquet.pages.file_writer import PageFileWriter
from random_tables import TEXTS, array_of, tables

CODECS = ["zstd", "snappy", "gzip", "brotli", "lz4", "none"]


def written(table, sizes=None, **options):
    """The file of a table, in row groups of some sizes, each of which comes in batches of up to seven rows."""
    sink = io.BytesIO()
    writer = PageFileWriter(sink, table.schema, **options)
    start = 0
    for size in sizes or [len(table)]:
        group = table.slice(start, size)
        for at in range(0, len(group), 7):
            writer.write_batch(group.slice(at, 7))
        writer.end_row_group()
        start += size
    assert writer.close({"key": "value"}) == (footer_bytes(sink), len(sink.getvalue()))
    return sink


def reference(table, sizes):
    sink = io.BytesIO()
    options = {"version": "2.6", "store_decimal_as_integer": True, "store_schema": False, "write_page_index": True}
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
            if size:
                writer.write_table(table.slice(int(start), size), row_group_size=size)
    return sink


def footer(sink):
    return read_value(footer_bytes(sink), 0, STRUCT)[0]


def element(found):
    """A schema element without what the older writers say besides."""
    return {key: value for key, value in found.items() if key not in (9,)}


ENCODINGS = st.sampled_from([name.name for name in Encoding if not name.name.startswith("RLE")])


@given(table=tables(), data=st.data())
def test_files_are_those_of_pyarrow(table, data):
    sizes = [*data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)), len(table)]
    sizes = [min(size, max(0, len(table) - sum(sizes[:n]))) for n, size in enumerate(sizes)]
    leaves = file_schema(table.schema, ()).leaves
    encodings = {}
    for leaf in leaves:
        name = data.draw(ENCODINGS)
        if is_encodable(Encoding[name], leaf.type):
            encodings[".".join(leaf.path)] = name
    own = written(
        table,
        sizes,
        compression=data.draw(st.sampled_from(CODECS)),
        use_dictionary=[".".join(leaf.path) for leaf in leaves if data.draw(st.booleans())],
        column_encoding=encodings,
        dictionary_bytes=data.draw(st.sampled_from([16, 1 << 20])),
        page_bytes=data.draw(st.sampled_from([1, 100, 1 << 20])),
    )
    theirs = reference(table, sizes)
    found, wanted = pq.read_table(own), pq.read_table(theirs)
    found.validate(full=True)
    assert found.schema.equals(wanted.schema)
    assert pq.read_schema(own).equals(pq.read_schema(theirs))
    assert str(found.to_pylist()) == str(wanted.to_pylist())  # as text: a NaN equals nothing
    mine, other = footer(own), footer(theirs)
    assert list(map(element, mine[2])) == list(map(element, other[2]))
    assert mine[3] == other[3] == len(table)
    for group, their_group in zip(mine[4], other[4], strict=True):
        assert group[3] == their_group[3]
        for column, their_column in zip(group[1], their_group[1], strict=True):
            check_column(column[3], their_column[3])
    check_pages(own, mine)


def check_column(mine, theirs):
    assert (mine[1], mine[3], mine[5]) == (theirs[1], theirs[3], theirs[5])
    statistics, wanted = mine[12], theirs.get(12, {})
    assert statistics[3] == wanted.get(3, 0)
    assert [statistics.get(part) for part in (5, 6, 7, 8)] == [wanted.get(part) for part in (5, 6, 7, 8)]
    for part in (1, 2, 3):
        if part in mine.get(16, {}):
            assert mine[16][part] == theirs[16][part]


def check_pages(sink, footer):
    """The indexes say what is in the pages."""
    data = sink.getvalue()
    for group in footer[4]:
        for column in group[1]:
            metadata = column[3]
            locations = read_value(data, column[4], STRUCT)[0]
            pages = [read_value(data, location[1], STRUCT) for location in locations[1]]
            ends = [end + header[3] for header, end in pages]
            assert [location[1] + location[2] for location in locations[1]] == ends
            details = [header.get(5) or header[8] for header, _ in pages]
            assert sum(detail[1] for detail in details) == metadata[5]
            assert sum(location[2] for location in locations[1]) <= metadata[7]
            assert locations[1][0].get(3) == 0
            if 6 in column:
                index, end = read_value(data, column[6], STRUCT)
                assert end - column[6] == column[7]
                assert len(index[1]) == len(pages) == len(index[2]) == len(index[3]) == len(index[5])
                assert sum(index[5]) == metadata[12][3]
                if metadata[1] == 6 and {5, 6} <= metadata[12].keys():
                    lows, highs = (
                        [each for each, null in zip(index[n], index[1], strict=True) if not null] for n in (2, 3)
                    )
                    assert min(lows) <= metadata[12][6]
                    assert max(highs) >= metadata[12][5]


@given(table=tables())
def test_duckdb_reads_them(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("d") / "a.parquet"
    path.write_bytes(written(table, page_bytes=50).getvalue())
    other = path.with_name("b.parquet")
    other.write_bytes(reference(table, [len(table)]).getvalue())
    found, wanted = (
        duckdb.sql(f"SELECT * FROM read_parquet('{name}')").to_arrow_table().to_pylist() for name in (path, other)
    )
    assert str(found) == str(wanted)


@given(
    values=st.lists(st.none() | st.lists(st.none() | TEXTS, max_size=3), max_size=20),
    start=st.integers(0, 5),
    kind=st.sampled_from([pa.string(), pa.binary(), pa.large_string()]),
)
def test_dictionaries_of_arrow_become_those_of_the_file(values, start, kind):
    flat = pa.array([value for texts in values for value in texts or [None]], kind).dictionary_encode()
    lists = pa.array(values, pa.list_(kind))
    nested = pa.ListArray.from_arrays(lists.offsets, lists.values.dictionary_encode(), mask=lists.is_null())
    for array in (flat, nested):
        table = pa.table({"x": array}).slice(start)
        sink = written(table, use_dictionary=len(values) % 2 == 0)
        assert pq.read_table(sink)["x"].to_pylist() == table["x"].to_pylist()
        for group in footer(sink)[4]:  # those of the rows, not of all that the dictionary has
            held = [value for row in table["x"].to_pylist() for value in (row if isinstance(row, list) else [row])]
            plain = [value.encode() if isinstance(value, str) else value for value in held or [] if value is not None]
            statistics = group[1][0][3][12]
            assert (statistics.get(6), statistics.get(5)) == (min(plain, default=None), max(plain, default=None))


def test_what_lies_under_nulls_is_not_written():
    """Arrow may hold values under a null struct, and elements under a null list."""
    inner = pa.array([1, 2, None, 4], pa.int64())
    struct = pa.StructArray.from_arrays(
        [inner, pa.array(["a", "b", "c", "d"])], ["n", "s"], mask=pa.array([False, True, False, True])
    )
    offsets, validity = pa.py_buffer(np.array([0, 2, 3, 3, 4], np.int32)), pa.py_buffer(bytes([0b1001]))
    lists = pa.Array.from_buffers(pa.list_(struct.type), 4, [validity, offsets], children=[struct])
    held = pa.StructArray.from_arrays([lists], ["l"], mask=pa.array([True, False, False, False]))
    table = pa.table({"lists": lists, "held": held, "struct": struct})
    for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY"):
        options = {"use_dictionary": encoding == "PLAIN", "column_encoding": {"struct.s": encoding}}
        found = pq.read_table(written(table, **options))
        assert found.to_pylist() == table.to_pylist()


def test_nulls_in_a_required_column_are_refused():
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False)])
    with pytest.raises(VariantFileError, match="a is required") as caught:
        written(pa.table([pa.array([1, None], pa.int32())], schema=schema))
    assert caught.value.reason == "null-in-required"


def test_rows_that_are_much_larger_than_others_are_encoded_by_themselves(monkeypatch):
    monkeypatch.setattr(file_writer, "SLICE_BYTES", 1_000)
    monkeypatch.setattr(file_writer, "MOST_SLICE_BYTES", 2_000)
    texts = ["x"] * 50 + ["y" * 1_500] * 3 + ["z" * 9_000] + [""] * 50
    sink = io.BytesIO()
    writer = PageFileWriter(sink, pa.schema({"x": pa.string()}), use_dictionary=False, page_bytes=1)
    writer.write_batch(pa.table({"x": texts}))
    writer.close({})
    assert pq.read_table(sink)["x"].to_pylist() == texts
    locations = read_value(sink.getvalue(), footer(sink)[4][0][1][0][4], STRUCT)[0]
    assert len(locations[1]) >= 5
    check_pages(sink, footer(sink))


def test_field_ids_are_written():
    field = pa.field("a", pa.list_(pa.field("element", pa.int32(), metadata={"PARQUET:field_id": "7"})))
    schema = pa.schema([field.with_metadata({"PARQUET:field_id": "5"})])
    found = pq.read_schema(written(pa.table([pa.array([[1]], field.type)], schema=schema)))
    assert found.field("a").metadata[b"PARQUET:field_id"] == b"5"
    assert found.field("a").type.value_field.metadata[b"PARQUET:field_id"] == b"7"


def test_a_column_without_values_takes_a_few_bytes():
    rows = 100_000
    nulls = pa.array([{"a": None, "b": None}] * rows, pa.struct({"a": pa.string(), "b": pa.list_(pa.int64())}))
    sink = written(pa.table({"x": nulls}), [rows])
    for column in footer(sink)[4][0][1]:
        assert column[3][7] < 60


def test_a_dictionary_that_grows_too_large_is_given_up():
    texts = [f"text {n % 50}" for n in range(500)] + [f"long text number {n}" for n in range(500)]
    sink = written(pa.table({"x": texts}), dictionary_bytes=2_000, page_bytes=500)
    assert pq.read_table(sink)["x"].to_pylist() == texts
    assert set(pq.read_metadata(sink).row_group(0).column(0).encodings) == {"PLAIN", "RLE", "RLE_DICTIONARY"}


def test_texts_that_repeat_far_apart_get_a_dictionary():
    """The first rows show no repetition; whoever looked at only those asked for none."""
    ids = [hashlib.sha1(str(n % 2000).encode()).hexdigest() for n in range(10_000)]
    table = pa.table({"repeats": ids, "unique": [f"{text}{n}" for n, text in enumerate(ids)]})
    sink, sizes = io.BytesIO(), {}
    for asked in ([], False):
        sink = io.BytesIO()
        writer = PageFileWriter(sink, table.schema, use_dictionary=asked)
        for _ in range(2):
            writer.write_batch(table)
            writer.end_row_group()
        writer.close({})
        assert pq.read_table(sink)["repeats"].to_pylist() == ids * 2
        for group in footer(sink)[4]:
            repeats, unique = (column[3] for column in group[1])
            assert (8 in repeats[2], 8 in unique[2]) == (asked is not False, False)
            sizes[asked is False] = repeats[7]
    assert sizes[False] < sizes[True]


@pytest.mark.parametrize("kind", [pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.uuid()])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_bloom_filters_have_every_value_and_few_others(kind, use_dictionary):
    from parquet_variant.files.parquet.reading.column_values import may_contain, xxh64

    def value(n):
        return uuid.UUID(int=n).bytes if kind == pa.uuid() else str(n) if kind == pa.string() else n

    values = list(map(value, range(1000)))
    sink = written(pa.table({"x": array_of(values * 2, kind)}), bloom_filters=["x"], use_dictionary=use_dictionary)
    column = footer(sink)[4][0][1][0][3]
    data = sink.getvalue()
    header, start = read_value(data, column[14], STRUCT)
    bitset = data[start : start + header[1]]
    assert column[14] + column[15] == start + header[1]
    form = {"int32": "<i4", "int64": "<i8", "double": "<f8"}.get(str(kind))

    def plain_of(value):
        if form:
            return np.array([value], form).tobytes()
        return value if isinstance(value, bytes) else value.encode()

    assert all(may_contain(bitset, xxh64(plain_of(value))) for value in values)
    others = list(map(value, range(5000, 9000)))
    assert sum(may_contain(bitset, xxh64(plain_of(value))) for value in others) < 100


def test_what_is_left_to_pyarrow():
    assert not any(map(is_written, [pa.null(), pa.duration("s"), pa.list_(pa.int32(), 2), pa.float16(), pa.struct([])]))
    with pytest.raises(TypeError, match="column x is null"):
        written(pa.table({"x": pa.nulls(3)}))
