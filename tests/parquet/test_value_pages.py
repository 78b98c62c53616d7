"""Unshredded values found in the pages of a file: the same as those that pyarrow copies out, or left to pyarrow."""

from __future__ import annotations

import ctypes
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.format.columns import choose_column
from parquet_variant.files.parquet.format.files import locate, open_file
from parquet_variant.files.parquet.reading.column_values import value_spans
from parquet_variant.files.parquet.scanning import scan_plan

COLUMNS = {"a": "$.a:bigint", "b": "$.b.c:string", "d": "$.b.d[0]:double", "e": "$.b.d[*]:string", "none": "$.x:int"}
CODECS = ["none", "snappy", "gzip", "brotli", "zstd"]


def variants(rows, distinct=10**9):
    rng = random.Random(rows)
    texts = []
    for number in range(rows):
        n = number % distinct
        fields = [f'"a": {n}', f'"b": {{"c": "{"é" * (n % 50)}", "d": [{n / 4}, "{n}"]}}', f'"f{n % 5}": null']
        rng.shuffle(fields)
        texts.append("{" + ", ".join(fields) + "}" if n % 9 else rng.choice(["[]", "null", "3", "{}"]))
    return pv.parse_json(texts, dictionary="batch")


def write(path, array, *, nullable=True, **options):
    names = ["metadata", "value"]
    fields = [pa.field(name, pa.binary(), nullable) for name in names]
    storage = array.storage
    children = [storage.field(name).cast(pa.binary()) for name in names]
    mask = storage.is_null() if storage.null_count else None
    struct = pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    schema = pa.schema([pa.field("v", struct.type, nullable), pa.field("n", pa.int64())])
    pq.write_table(pa.table([struct, pa.array(range(len(struct)))], schema=schema), path, **options)
    return path


def spans(path, group=0):
    with open_file(locate(path)[0]) as file:
        return value_spans(file, group, choose_column(file.schema, None, "file"))


def by_pyarrow(path, monkeypatch, columns=COLUMNS, where=None):
    with monkeypatch.context() as patched:
        patched.setattr(scan_plan, "value_spans", lambda *_: None)
        return pv.open(path).scan(columns, where).to_arrow()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("nullable", [True, False])
def test_pages_hold_what_pyarrow_reads(tmp_path, monkeypatch, codec, version, nullable):
    array = variants(3000)
    options = {"compression": codec, "data_page_version": version, "nullable": nullable}
    path = write(tmp_path / "a.parquet", array, data_page_size=8000, dictionary_pagesize_limit=20000, **options)
    found = spans(path)(array.storage.field("metadata"))
    raw = [
        ctypes.string_at(at, stop - at) for at, stop in zip(found.starts.tolist(), found.stops.tolist(), strict=True)
    ]
    assert raw == array.storage.field("value").to_pylist()
    assert pv.open(path).scan(COLUMNS).to_arrow().equals(by_pyarrow(path, monkeypatch))


@pytest.mark.parametrize("distinct", [1, 2, 3, 17, 300, 2500])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_dictionary_pages_of_every_width(tmp_path, monkeypatch, distinct, version):
    path = write(tmp_path / "a.parquet", variants(6000, distinct), data_page_version=version, data_page_size=2000)
    assert "RLE_DICTIONARY" in pq.read_metadata(path).row_group(0).column(1).encodings
    assert spans(path) is not None
    assert pv.open(path).scan(COLUMNS).to_arrow().equals(by_pyarrow(path, monkeypatch))


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_in_deltas(tmp_path, monkeypatch, encoding, version):
    options = {"use_dictionary": False, "column_encoding": {"v.value": encoding}, "data_page_version": version}
    path = write(tmp_path / "a.parquet", variants(6000), data_page_size=2000, **options)
    assert spans(path) is not None
    assert pv.open(path).scan(COLUMNS).to_arrow().equals(by_pyarrow(path, monkeypatch))


def test_row_groups_filters_and_ordinary_columns(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", variants(5000), row_group_size=700)
    columns = {**COLUMNS, "n": "n"}
    everything = pv.open(path).scan(columns).to_arrow()
    assert everything.num_rows == 5000
    assert everything.combine_chunks().equals(by_pyarrow(path, monkeypatch, columns).combine_chunks())
    some = pv.open(path).scan(columns, "a > 2500 and n < 4000").to_arrow()
    assert some.num_rows > 0
    assert some.combine_chunks().equals(
        by_pyarrow(path, monkeypatch, columns, "a > 2500 and n < 4000").combine_chunks()
    )
    with_variant = {**columns, "v": "$.b"}
    found, expected = pv.open(path).scan(with_variant).to_arrow(), by_pyarrow(path, monkeypatch, with_variant)
    assert found.combine_chunks().equals(expected.combine_chunks())


def test_errors_name_the_row_of_the_file(tmp_path):
    path = write(tmp_path / "a.parquet", variants(2000), row_group_size=500)
    with pytest.raises(pv.CastError) as caught:
        pv.open(path).scan({"b": "$.b:int"}, errors="raise").to_arrow()
    assert caught.value.row == 1
    array = pv.parse_json([*['{"a": 1}'] * 1200, '{"a": "x"}'])
    path = write(tmp_path / "b.parquet", array, row_group_size=500)
    with pytest.raises(pv.CastError) as caught:
        pv.open(path).scan({"a": "$.a:int"}, errors="raise").to_arrow()
    assert caught.value.row == 1200


@pytest.mark.parametrize(
    ("array", "options"),
    [
        (pv.VariantArray.from_pylist([{"a": 1}, None, {"a": 2}]), {}),
        (pv.VariantArray.from_pylist([{"a": 1}, {"a": 2}]), {"write_statistics": False}),
        (pv.VariantArray.from_pylist([{"a": 1}, {"a": 2}]), {"compression": "lz4"}),
    ],
)
def test_pages_that_are_not_plain_are_left_to_pyarrow(tmp_path, array, options):
    path = write(tmp_path / "a.parquet", array, **options)
    assert spans(path) is None
    assert pv.open(path).scan({"a": "$.a:int"}).to_arrow()["a"].to_pylist() == [
        row and row["a"] for row in array.to_pylist()
    ]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_damaged_pages_are_an_error_or_other_values(tmp_path, codec, dictionary):
    path = write(tmp_path / "a.parquet", variants(400, 60), compression=codec, use_dictionary=dictionary)
    chunk = pq.read_metadata(path).row_group(0).column(1)
    start = chunk.dictionary_page_offset if dictionary else chunk.data_page_offset
    whole, rng, failed = path.read_bytes(), random.Random(1), 0
    for _ in range(150):
        at = start + rng.randrange(min(chunk.total_compressed_size, rng.choice([40, 10**6])))
        damaged = tmp_path / "b.parquet"
        damaged.write_bytes(whole[:at] + bytes([rng.randrange(256)]) + whole[at + 1 :])
        try:
            assert pv.open(damaged).scan(COLUMNS).to_arrow().num_rows == 400
        except pv.VariantError:
            failed += 1
    assert failed
