"""Texts of shredded leaf columns read from their pages: the same as pyarrow's, or left to pyarrow."""

from __future__ import annotations

import datetime as dt
import itertools
import random
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.format.columns import choose_column
from parquet_variant.files.parquet.format.files import locate, open_file
from parquet_variant.files.parquet.format.thrift import zigzag
from parquet_variant.files.parquet.reading.column_values import column_values, without_dictionary
from parquet_variant.files.parquet.scanning import scan_plan

ROWS = 9000
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
COLUMNS = {"s": "$.s:string", "k": "$.k.x:string", "n": "$.n:bigint"}
FILTERS = [
    None,
    "k = 'k1'",
    "k in ('k1', 'k3') and n > 4000",
    "k is null or k = 'k2'",
    "not (k in ('k1', 'k2'))",
    "s like '%7'",
    "k <> 'k0' and k like 'k%'",
    "k = 'none'",
    "n >= 8995",
]


def storage(rows=ROWS, distinct=5, wide=4000, seed=1):
    rng = random.Random(seed)
    texts = []
    for number in range(rows):
        s = None if rng.random() < 0.1 else f"{'é' * rng.randrange(3)}text {rng.randrange(wide)}"
        k = "" if rng.random() < 0.2 else f'"x": "k{number % distinct if number < rows // 2 else 1}"'
        s = "" if s is None else f', "s": "{s}"'
        texts.append(None if rng.random() < 0.05 else f'{{"k": {{{k}}}, "n": {number}{s}}}')
    return pv.shred_variant(pv.parse_json(texts), "s STRING, k STRUCT<x: STRING>, n BIGINT").storage


def write(path, column, **options):
    names = [field.name for field in column.type]
    children = [plain(column.field(name)) for name in names]
    struct = pa.StructArray.from_arrays(children, names=names, mask=column.is_null())
    pq.write_table(pa.table({"v": struct}), path, **options)
    return path


def plain(array):
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def leaf(file, name):
    column = choose_column(file.schema, None, "file")
    return next(node for node in column.node.leaves() if node.path[-3:] == ("typed_value", name, "typed_value"))


def as_pyarrow_reads(path, where, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(scan_plan, "column_values", lambda *_: None)
        return pv.open(path).scan(COLUMNS, where).to_arrow()


def test_columns_of_one_file_are_read_at_the_same_time(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", storage(), row_group_size=ROWS)
    expected = pv.open(path).scan(COLUMNS, threads=1)
    both = threading.Barrier(2, timeout=60)

    def read(file, row_group, node, kind, mask):
        if node.path[-2] != "n":
            both.wait()
        return column_values(file, row_group, node, kind, mask)

    table = expected.to_arrow()
    monkeypatch.setattr(scan_plan, "column_values", read)
    found = pv.open(path).scan(COLUMNS, threads=2)
    assert found.to_arrow().equals(table)
    assert found.bytes_read == expected.bytes_read > 0


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_hold_what_pyarrow_reads(tmp_path, monkeypatch, codec, version):
    # The dictionary of `s` is given up half-way: its pages are of both kinds.
    path = write(
        tmp_path / "a.parquet", storage(), compression=codec, data_page_version=version, data_page_size=3000,
        dictionary_pagesize_limit=20000,
    )  # fmt: skip
    rng = np.random.default_rng(1)
    with open_file(locate(path)[0]) as file:
        nodes = {"s": leaf(file, "s"), "k": leaf(file, "x")}
        masks = [None, *(rng.random(ROWS) < share for share in (0.5, 0.001)), np.arange(ROWS) > ROWS - 5]
        expected = as_pyarrow_reads(path, None, monkeypatch)
        for name, kind, mask in itertools.product(nodes, (pa.string(), DICTIONARY), masks):
            column = column_values(file, 0, nodes[name], kind, mask)
            column.validate(full=True)
            assert pa.types.is_dictionary(column.type) == (name == "k" and kind == DICTIONARY)
            texts = expected[name] if mask is None else expected[name].filter(pa.array(mask))
            assert column.to_pylist() == texts.to_pylist()
    for where in FILTERS:
        assert pv.open(path).scan(COLUMNS, where).to_arrow().equals(as_pyarrow_reads(path, where, monkeypatch)), where


@pytest.mark.parametrize("distinct", [1, 2, 3, 17, 300, 2500])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_dictionaries_of_every_width(tmp_path, monkeypatch, distinct, version):
    path = write(tmp_path / "a.parquet", storage(9000, distinct), data_page_version=version, data_page_size=2000)
    for where in (None, "k = 'k1'", "n < 10"):
        assert pv.open(path).scan(COLUMNS, where).to_arrow().equals(as_pyarrow_reads(path, where, monkeypatch))


def test_our_own_files_of_several_row_groups(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pv.write(path, pv.VariantArray(storage(40_000)), row_group_bytes=60_000)
    for where in FILTERS:
        found = pv.open(path).scan(COLUMNS, where).to_arrow().combine_chunks()
        assert found.equals(as_pyarrow_reads(path, where, monkeypatch).combine_chunks()), where


NUMBERS = {
    "i": ("$.i:int", "INT"),
    "l": ("$.l:bigint", "BIGINT"),
    "f": ("$.f:float", "FLOAT"),
    "d": ("$.d:double", "DOUBLE"),
    "day": ("$.day:date", "DATE"),
    "at": ("$.at:timestamp", "TIMESTAMP"),
    "local": ("$.local:timestamp_ntz", "TIMESTAMP_NTZ"),
}


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BINARY_PACKED", "RLE_DICTIONARY", "ours"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_numbers(tmp_path, monkeypatch, encoding, version):
    """Integers at the ends of their ranges, whose differences wrap around, and what is stored as integers."""
    rng, ends = random.Random(7), [2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    rows = []
    for number in range(9000):
        at = epoch + dt.timedelta(microseconds=rng.randrange(-(10**16), 10**16))
        row = {
            "i": rng.choice([*ends[:2], number, 0]),
            "l": rng.choice([*ends, number, rng.randrange(-(2**63), 2**63)]),
            "f": float(np.float32(number / 3)),
            "d": rng.choice([number / 3, float("nan"), -0.0, float("inf")]),
            "day": at.date(),
            "at": at,
            "local": at.replace(tzinfo=None),
        }
        rows.append({key: value for key, value in row.items() if rng.random() < (0.9 if number < 6000 else 0.001)})
    names = ", ".join(f"{name} {kind}" for name, (_, kind) in NUMBERS.items())
    shredded = pv.shred_variant(pv.VariantArray.from_pylist(rows), names)
    path = tmp_path / "a.parquet"
    if encoding == "ours":
        pv.write(path, shredded)
    else:
        options = {"use_dictionary": encoding == "RLE_DICTIONARY", "data_page_size": 4000, "data_page_version": version}
        if encoding == "DELTA_BINARY_PACKED":
            integers = [name for name in NUMBERS if name not in "fd"]
            options["column_encoding"] = {f"v.typed_value.{name}.typed_value": encoding for name in integers}
        write(path, shredded.storage, **options)
    columns = {name: where for name, (where, _) in NUMBERS.items()}
    for where in (None, "i = 2147483647 or l < 0", "l = 9223372036854775807", "day is null"):
        found = pv.open(path).scan(columns, where).to_arrow()
        with monkeypatch.context() as patched:
            patched.setattr(scan_plan, "column_values", lambda *_: None)
            assert str(found.to_pylist()) == str(pv.open(path).scan(columns, where).to_arrow().to_pylist())
    with open_file(locate(path)[0]) as file:
        for field in pv.open(path).scan(columns).to_arrow().schema:
            assert column_values(file, 0, leaf(file, field.name), field.type, None) is not None, field


def test_rows_without_any_text(tmp_path, monkeypatch):
    column = pv.shred_variant(pv.parse_json(['{"s": 1}'] * 8999 + ['{"s": "é"}']), "s STRING").storage
    path = write(tmp_path / "a.parquet", column, data_page_size=500)
    assert pv.open(path).scan({"s": "$.s:string"}, "s = 'é'").to_arrow().num_rows == 1
    assert pv.open(path).scan({"s": "$.s:string"}).to_arrow()["s"].to_pylist() == ["1"] * 8999 + ["é"]


@pytest.mark.parametrize("dictionary", [True, False])
def test_text_that_is_not_utf8_is_an_error_with_its_row(tmp_path, dictionary):
    texts = ["good", "fine"] * 5000
    binary = pa.array([text.encode() for text in texts[:-1]] + [b"b\xff"])
    typed = pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())
    group = pa.StructArray.from_arrays([pa.nulls(10_000, pa.binary()), typed], names=["value", "typed_value"])
    metadata = pa.array([pv.Variant.from_python({"s": 1}).metadata] * 10_000, pa.binary())
    top = pa.StructArray.from_arrays([group], names=["s"])
    whole = pa.StructArray.from_arrays(
        [metadata, pa.nulls(10_000, pa.binary()), top], names=["metadata", "value", "typed_value"]
    )
    path = write(tmp_path / "a.parquet", whole, use_dictionary=dictionary)
    with pytest.raises(pv.MalformedVariantError, match="UTF-8") as caught:
        pv.open(path).scan({"s": "$.s:string"}).to_arrow()
    assert (caught.value.row, caught.value.reason) == (9999, "bad-utf8")
    with pytest.raises(pv.MalformedVariantError, match="UTF-8"):
        pv.sql("SELECT v:s::string, count(*) FROM t GROUP BY 1", t=path)


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_texts_in_deltas_and_booleans(tmp_path, monkeypatch, encoding, version):
    rng = random.Random(3)
    rows = []
    for number in range(9000):
        row = {
            "s": rng.choice(["", "é" * rng.randrange(4), f"https://example.org/{number // 7}/{rng.random()}"]),
            "k": f"{number:09}",
            "b": rng.random() < (0.5 if number < 5000 else 0.999),
        }
        rows.append({key: value for key, value in row.items() if rng.random() < (0.9 if number < 6000 else 0.001)})
    column = pv.shred_variant(pv.VariantArray.from_pylist(rows), "s STRING, k STRING, b BOOLEAN").storage
    texts = {f"v.typed_value.{name}.typed_value": encoding for name in "sk"}
    path = write(
        tmp_path / "a.parquet", column, use_dictionary=False, column_encoding=texts, data_page_size=3000,
        data_page_version=version,
    )  # fmt: skip
    columns = {"s": "$.s:string", "k": "$.k:string", "b": "$.b:boolean"}
    mask = rng.choices([True, False], k=9000)
    with open_file(locate(path)[0]) as file:
        for field in pv.open(path).scan(columns).to_arrow().schema:
            whole = column_values(file, 0, leaf(file, field.name), field.type, None)
            whole.validate(full=True)
            assert whole.to_pylist() == [row.get(field.name) for row in rows]
            some = column_values(file, 0, leaf(file, field.name), field.type, np.array(mask))
            assert some.equals(whole.filter(pa.array(mask)))
    for where in (None, "b = true", "b = false and k > '000004000'", "s is null"):
        found = pv.open(path).scan(columns, where).to_arrow()
        with monkeypatch.context() as patched:
            patched.setattr(scan_plan, "column_values", lambda *_: None)
            assert found.equals(pv.open(path).scan(columns, where).to_arrow())


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("encoding", ["RLE_DICTIONARY", "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_damaged_pages_are_an_error_or_other_values(tmp_path, codec, encoding):
    dictionary = encoding == "RLE_DICTIONARY"
    encodings = None if dictionary else {"v.typed_value.s.typed_value": encoding}
    path = write(
        tmp_path / "a.parquet", storage(), compression=codec, use_dictionary=dictionary, column_encoding=encodings
    )
    metadata = pq.read_metadata(path).row_group(0)
    chunk = next(
        metadata.column(index)
        for index in range(metadata.num_columns)
        if metadata.column(index).path_in_schema.endswith("s.typed_value")
    )
    start = chunk.dictionary_page_offset if dictionary else chunk.data_page_offset
    whole, rng, failed = path.read_bytes(), random.Random(1), 0
    for _ in range(60):
        at = start + rng.randrange(min(chunk.total_compressed_size, rng.choice([40, 10**6])))
        damaged = tmp_path / "b.parquet"
        damaged.write_bytes(whole[:at] + bytes([rng.randrange(256)]) + whole[at + 1 :])
        try:
            assert pv.open(damaged).scan(COLUMNS).to_arrow().num_rows == ROWS
        except pv.VariantError:
            failed += 1
    assert failed


def test_a_number_of_a_page_header_beyond_64_bits_is_an_error(tmp_path):
    path = write(tmp_path / "f", storage(100), compression="NONE", use_dictionary=False)
    row_group = pq.ParquetFile(path).metadata.row_group(0)
    chunk = next(row_group.column(i) for i in range(99) if row_group.column(i).path_in_schema.endswith("n.typed_value"))
    size = chunk.total_compressed_size

    def header(of_page):
        kind, plain, rows, encoding, levels = (b"\x15" + zigzag(number) for number in (0, of_page, 100, 2**66, 3))
        return kind + plain + plain + b"\x2c" + rows + encoding + levels + levels + b"\x00\x00"

    begin = header(size - len(header(size)))
    page, start = begin + bytes(size - len(begin)), chunk.data_page_offset
    data = path.read_bytes()
    path.write_bytes(data[:start] + page + data[start + size :])
    with pytest.raises(pv.VariantFileError):
        pv.open(path).scan({"n": "$.n:bigint"}).to_arrow()


def test_queries_over_files_with_and_without_dictionaries(tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    parts = [storage(9000, 5, seed=1), storage(9000, 3000, seed=2), storage(100, 5, seed=3)]
    write(folder / "a.parquet", parts[0])
    write(folder / "b.parquet", parts[1], use_dictionary=False)
    write(folder / "c.parquet", parts[2])
    values = [value for part in parts for value in pv.VariantArray(part).to_pylist()]
    counts: dict[str | None, int] = {}
    for value in values:
        key = None if value is None else value["k"].get("x")
        counts[key] = counts.get(key, 0) + 1
    for first in ("a", "b"):
        paths = [folder / f"{name}.parquet" for name in (first, *(item for item in "abc" if item != first))]
        found = pv.sql("SELECT v:k.x::string AS x, count(*) AS n FROM t GROUP BY x", t=[str(path) for path in paths])
        assert {row["x"]: row["n"] for row in found.to_pylist()} == counts
        texts = pv.sql("SELECT v:k.x::string AS x, v:s::string AS s FROM t WHERE x = 'k2'", t=[str(p) for p in paths])
        expected = [value["k"]["x"] for value in values if value and value["k"].get("x") == "k2"]
        assert texts.to_arrow()["x"].to_pylist() == expected
        assert texts.schema.field("x").type == pa.string()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_texts_without_their_dictionary(share):
    rng = random.Random(2)
    words = ["", "é", "a longer text"]
    texts = [None if rng.random() < share else rng.choice(words) for _ in range(300)]
    whole = pa.array(texts, pa.string()).dictionary_encode()
    for column in (whole, whole.filter(pa.array([n % 3 > 0 for n in range(300)])), whole.slice(7, 50), whole[:0]):
        found = without_dictionary(column)
        found.validate(full=True)
        assert found.equals(column.dictionary_decode())
