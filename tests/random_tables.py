"""Arrow tables of any types and nesting, for tests of files and of their readers."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
from hypothesis import strategies as st

from parquet_variant.files.parquet.pages.file_writer import PageFileWriter

CODECS = ["zstd", "snappy", "gzip", "brotli", "lz4", "none"]


def digits(precision, scale):
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda n: decimal.Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)))


def integers(bits, signed=True):
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


EPOCH = datetime.datetime(1970, 1, 1)
MOMENTS = st.integers(-(10**15), 10**15).map(lambda n: EPOCH + datetime.timedelta(microseconds=n))
TEXTS = st.text(max_size=5) | st.sampled_from(["", "same", "a" * 70 + "é", "é" * 40, "\U0010ffff" * 20])
BYTES = st.binary(max_size=6) | st.sampled_from([b"", b"\xff" * 70, b"x" * 5000])
PRIMITIVES: dict[pa.DataType, st.SearchStrategy] = {
    pa.bool_(): st.booleans(),
    pa.int8(): integers(8),
    pa.int16(): integers(16),
    pa.int32(): integers(32) | st.integers(0, 3),
    pa.int64(): integers(64) | st.integers(0, 3),
    pa.uint8(): integers(8, False),
    pa.uint16(): integers(16, False),
    pa.uint32(): integers(32, False),
    pa.uint64(): integers(64, False),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0]),
    pa.date32(): st.dates(),
    pa.time32("ms"): st.integers(0, 86_399_999),
    pa.time64("us"): st.times(),
    pa.time64("ns"): st.integers(0, 86_399_999_999_999),
    pa.timestamp("ms"): st.integers(-(10**12), 10**12),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", "UTC"): MOMENTS,
    pa.timestamp("ns"): integers(64),
    pa.timestamp("ns", "UTC"): integers(64),
    pa.decimal128(9, 2): digits(9, 2),
    pa.decimal128(18, 18): digits(18, 18),
    pa.decimal128(19, 0): digits(19, 0),
    pa.decimal128(38, 9): digits(38, 9),
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.string_view(): TEXTS,
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary_view(): BYTES,
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.uuid(): st.uuids().map(lambda u: u.bytes),
}


@st.composite
def fields(draw, kinds=tuple(PRIMITIVES), depth=3):
    """An Arrow field, of leaves of some types, and a strategy of its values."""
    shape = draw(st.sampled_from(["leaf"] * 3 + ["struct", "list", "large_list", "map"])) if depth else "leaf"
    nullable = draw(st.booleans())
    if shape == "leaf":
        # pyarrow cannot write views inside of others.
        known = [each for each in kinds if depth == 3 or each not in (pa.string_view(), pa.binary_view())]
        kind = draw(st.sampled_from(known))
        values = PRIMITIVES[kind]
    elif shape == "struct":
        below = draw(st.lists(fields(kinds, depth - 1), min_size=1, max_size=3))
        kind = pa.struct([field.with_name(f"f{n}") for n, (field, _) in enumerate(below)])
        values = st.fixed_dictionaries({f"f{n}": value for n, (_, value) in enumerate(below)})
    elif shape == "map":
        item, value = draw(fields(kinds, depth - 1))
        kind = pa.map_(pa.string(), item.with_name("value"))
        values = st.lists(st.tuples(TEXTS, value), max_size=3, unique_by=lambda pair: pair[0])
    else:
        element, value = draw(fields(kinds, depth - 1))
        kind = (pa.list_ if shape == "list" else pa.large_list)(element.with_name("element"))
        values = st.lists(value, max_size=3)
    return pa.field("x", kind, nullable), st.none() | values if nullable else values


@st.composite
def tables(draw, kinds=tuple(PRIMITIVES)):
    """A table of a few columns, in chunks that are slices of others."""
    columns = draw(st.lists(fields(kinds), min_size=1, max_size=4))
    rows = draw(st.integers(0, 30))
    schema = pa.schema([field.with_name(f"c{n}") for n, (field, _) in enumerate(columns)])
    arrays = [
        array_of(draw(st.lists(values, min_size=rows + 1, max_size=rows + 1)), field.type) for field, values in columns
    ]
    return pa.table(arrays, schema=schema).slice(1)


def array_of(values, kind):
    """As `pa.array`, which makes no dictionary of lists' elements, nor uuids."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError):
        return pa.array(values, plain(kind)).cast(kind)


def plain(kind):
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(item.name, plain(item.type), item.nullable) for item in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, pa.field("value", plain(kind.item_type), kind.item_field.nullable))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(pa.field("element", plain(kind.value_type), kind.value_field.nullable))
    return kind


def write_in_batches(sink, table, step, group, key_values=None, **options):
    """Write a file whose batches have `step` rows each, and its row groups `group`."""
    writer = PageFileWriter(sink, table.schema, **options)
    for start in range(0, len(table), group):
        rows = table.slice(start, group)
        for at in range(0, len(rows), step):
            writer.write_batch(rows.slice(at, step))
        writer.end_row_group()
    writer.close(key_values or {})
