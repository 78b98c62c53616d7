"""Footers whose column chunks do not fit their schema are refused before pyarrow looks at them: it would abort."""

from __future__ import annotations

import base64
import struct
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig

import parquet_variant as pv
from parquet_variant.files.parquet.format.footer import check_chunks, footer_bytes, parse_schema
from parquet_variant.files.parquet.format.thrift import LIST, find_field, list_items, struct_fields, zigzag


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
    for read in ((lambda path: pv.open(path).to_arrow()), (lambda path: pv.open(path).inspect())):
        with pytest.raises(pv.VariantFileError) as caught:
            read(path)
        assert caught.value.reason == "bad-footer"


NAME_OF_X = b"\x18\x01x"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b"\x25\x02", b"\x24\x02"),  # the repetition as i16: pyarrow passes over it, and takes the column for required
        (b"\x25\x02", b"\x25\x01"),  # -1
        (b"\x15\x04\x25", b"\x15\x03\x25"),  # the physical type -2
    ],
)
def test_a_schema_that_pyarrow_would_read_in_another_way_is_refused(tmp_path: Path, right: bytes, wrong: bytes) -> None:
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3]}), path)
    data = path.read_bytes()
    start = data.rindex(b"\x18\x06schema")
    head, schema = data[:start], data[start:]
    assert right in schema[: schema.index(NAME_OF_X)]
    path.write_bytes(head + schema.replace(right, wrong, 1))
    for read in ((lambda path: pv.open(path).to_arrow()), (lambda path: pv.open(path).inspect())):
        with pytest.raises(pv.VariantFileError) as caught:
            read(path)
        assert caught.value.reason == "bad-footer"


def test_a_second_schema_is_refused(tmp_path: Path) -> None:
    """Thrift takes the last one of a field's values."""
    footer = footer_of(tmp_path / "a.parquet", pa.table({"x": [1, 2, 3]}))
    fields = list(struct_fields(footer, 0))
    start, following = next(pair for pair in pairwise(fields) if pair[0].id == 2)
    again = bytes([LIST]) + zigzag(2) + footer[start.start : following.header]
    at = fields[-1].header  # The offset of the stop byte.
    twice = footer[:at] + again + footer[at:]
    schema = parse_schema(footer)
    check_chunks(footer, schema)
    with pytest.raises(pv.VariantFileError):
        check_chunks(twice, schema)


@pytest.mark.parametrize(
    ("value", "kind", "bound"),
    [
        (7, pa.int64(), (7).to_bytes(8, "little")),
        (7, pa.int32(), (7).to_bytes(4, "little")),
        (1.5, pa.float64(), struct.pack("<d", 1.5)),
        (Decimal("0.07"), pa.decimal128(20, 2), (7).to_bytes(9, "big")),
        (b"abcd", pa.binary(4), b"abcd"),
    ],
)
def test_bounds_that_are_shorter_than_a_value_are_refused(
    tmp_path: Path, value: object, kind: pa.DataType, bound: bytes
) -> None:
    """pyarrow decodes them where nothing catches its errors."""
    footer = footer_of(tmp_path / "a.parquet", pa.table({"x": pa.array([value] * 3, kind)}))
    schema = parse_schema(footer)
    before, found, after = footer.rpartition(bytes([len(bound)]) + bound)
    assert found
    for shorter in (bound[1:], b""):
        with pytest.raises(pv.VariantFileError) as caught:
            check_chunks(before + bytes([len(shorter)]) + shorter + after, schema)
        assert caught.value.reason == "bad-footer"


@pytest.mark.parametrize("rows", [-3, 2, 2**45])
@pytest.mark.parametrize("place", ["file", "row group"])
def test_other_rows_than_those_of_the_row_groups_are_refused(tmp_path: Path, place: str, rows: int) -> None:
    """pyarrow takes memory for as many as a row group says, and SQL counts as many as the file says."""
    footer = footer_of(tmp_path / "a.parquet", pa.table({"x": pa.array([1, 2, 3])}))
    schema = parse_schema(footer)
    start = 0 if place == "file" else list_items(footer, find_field(footer, 0, 4) or 0)[2]
    at = find_field(footer, start, 3)
    assert at is not None and footer[at : at + 1] == zigzag(3)
    with pytest.raises(pv.VariantFileError) as caught:
        check_chunks(footer[:at] + zigzag(rows) + footer[at + 1 :], schema)
    assert caught.value.reason == "bad-footer"


def test_a_file_that_counts_no_rows_has_those_of_its_row_groups(tmp_path: Path) -> None:
    """As parquet-rs wrote them once."""
    path = tmp_path / "a.parquet"
    footer = footer_of(path, pa.table({"x": [1, 2, 3]}))
    at = find_field(footer, 0, 3) or 0
    path.write_bytes(path.read_bytes().replace(footer, footer[:at] + zigzag(0) + footer[at + 1 :]))
    assert pv.open(path).to_arrow().num_rows == 3
    assert pv.sql("SELECT count(*) AS n FROM t", t=str(path)).to_pylist() == [{"n": 3}]


class InMemoryKeys(KmsClient):
    """Keys that are as secret as a test needs."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def encrypted_file(path: Path, plaintext_footer: bool) -> Path:
    keys = EncryptionConfiguration(footer_key="f", column_keys={"k": ["s"]}, plaintext_footer=plaintext_footer)
    properties = CryptoFactory(lambda _: InMemoryKeys()).file_encryption_properties(KmsConnectionConfig(), keys)
    rows = {"x": [1, 2], "s": ["a", "b"], "v": pv.parse_json(["1", "2"]).storage}
    pq.write_table(pa.table(rows), path, encryption_properties=properties)
    return path


def test_a_file_with_encrypted_columns_is_refused(tmp_path: Path) -> None:
    """pyarrow ends the process when it is asked about one, although the footer is plain."""
    path = encrypted_file(tmp_path / "v.parquet", True)
    for read in (
        (lambda path: pv.open(path).to_arrow()),
        lambda file: pv.open(file).scan({"s": "s"}).to_arrow(),
        lambda path: pv.open(path).explore(),
    ):
        with pytest.raises(pv.VariantFileError) as caught:
            read(path)
        assert caught.value.reason == "encrypted"


def test_an_annotation_does_not_break_the_signature_of_a_footer(tmp_path: Path) -> None:
    path = encrypted_file(tmp_path / "v.parquet", True)
    before = path.read_bytes()
    with pytest.raises(pv.VariantFileError) as caught:
        pv.open(path).annotate()
    assert caught.value.reason == "encrypted"
    assert path.read_bytes() == before


def test_a_file_with_an_encrypted_footer_is_not_taken_for_json(tmp_path: Path) -> None:
    path = encrypted_file(tmp_path / "v", False)
    for read in ((lambda path: pv.open(path).explore()), pv.infer, pv.profile, (lambda path: pv.open(path).inspect())):
        with pytest.raises(pv.VariantFileError, match="encrypted"):
            read(path)


def test_nulls_of_a_width_that_memory_cannot_hold_are_refused(tmp_path: Path) -> None:
    """Eleven nulls of 2 GiB each took 23 GB."""
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"v": pa.nulls(11, pa.binary(12345))}), path, store_schema=False)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8]
    assert footer.count(zigzag(12345)) == 1
    assert pv.open(path).to_arrow()["v"].null_count == 11
    wide = footer.replace(zigzag(12345), zigzag(2**31 - 1))
    path.write_bytes(data[:start] + wide + len(wide).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(pv.VariantFileError) as caught:
        pv.open(path).to_arrow()
    assert caught.value.reason == "too-large"
