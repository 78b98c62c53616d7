"""How columns are written: the encoding and the level of zstd that trials choose, and that a choice given stands."""

from __future__ import annotations

import base64
import hashlib
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.writing.encodings import choose_encodings, known_encodings


def table():
    chance = random.Random(7)
    phrases = ["".join(chance.choices("abcdefgh ", k=60)) for _ in range(50)]
    return pa.table(
        {
            "hash": [hashlib.sha1(str(n).encode()).hexdigest() for n in range(1024)],
            "text": [
                " ".join(text[: chance.randint(5, 60)] for text in chance.choices(phrases, k=4)) for _ in range(1024)
            ],
            "state": chance.choices(["opened", "closed", "merged"], k=1024),
            "step": list(range(1024)),
        }
    )


def size(data, **options):
    """Bytes of the columns in a file."""
    sink = pa.BufferOutputStream()
    pq.write_table(data, sink, compression="zstd", **options)
    group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    return sum(group.column(number).total_compressed_size for number in range(4))


def test_each_column_gets_the_smallest_encoding():
    chosen = choose_encodings(table(), "zstd")
    assert chosen["column_encoding"]["step"] == "DELTA_BINARY_PACKED"
    assert "state" in chosen["use_dictionary"]
    assert not {"hash", "text"} & set(chosen["use_dictionary"])
    others = {**chosen, "column_encoding": None}
    for dictionary in (True, False):
        assert size(table(), **chosen) < size(table(), **{**others, "use_dictionary": dictionary})


def test_columns_that_hardly_compress_get_the_lowest_level_of_zstd():
    levels = choose_encodings(table(), "zstd")["compression_level"]
    assert set(levels) == set(table().column_names)
    assert levels["text"] > levels["hash"] == levels["step"]
    assert levels["state"] == levels["text"]
    unknown = choose_encodings(table().slice(0, 0), "zstd")["compression_level"]
    assert set(unknown.values()) == {levels["text"]}


def test_hashes_that_share_their_first_bytes_are_stored_without_them():
    hashes = [base64.b32encode(hashlib.sha256(b"%d" % n).digest()).decode().lower()[:52] for n in range(2000)]
    names = [f"https://example.org/objects/{name}" for name in hashes]
    chosen = choose_encodings(pa.table({"name": names, "hash": hashes}), "zstd")
    assert chosen["column_encoding"]["name"] == "DELTA_BYTE_ARRAY"
    assert chosen["column_encoding"]["hash"] != "DELTA_BYTE_ARRAY"
    assert chosen["compression_level"]["name"] == 1


def test_what_is_known_is_not_tried_again():
    known = known_encodings(table(), "zstd")
    assert set(known) == set(table().column_names)
    assert {level for _, level in known.values()} == {1, 2}  # a sample of more rows
    chosen = choose_encodings(table(), "zstd")
    before = {
        name: (chosen["column_encoding"].get(name, ""), level) for name, level in chosen["compression_level"].items()
    }
    assert choose_encodings(table(), "zstd", chosen_before=before) == chosen
    turned = {"hash": ("", 5), "step": ("PLAIN", 2)}
    chosen = choose_encodings(table(), "zstd", chosen_before=turned)
    assert "hash" in chosen["use_dictionary"]
    assert chosen["column_encoding"]["step"] == "PLAIN"
    assert chosen["compression_level"]["hash"] == 5
    assert known_encodings(pa.table({"nothing": pa.nulls(10, pa.string())}), "zstd") == {}


@pytest.mark.parametrize(("compression", "level"), [("zstd", 7), ("zstd", -1), ("gzip", 4), ("snappy", None)])
def test_a_level_that_is_given_stands(compression, level):
    assert choose_encodings(table(), compression, level)["compression_level"] == level


@pytest.mark.parametrize("compression", ["zstd", "ZSTD", "gzip", "snappy", "lz4", "brotli", "none"])
def test_every_codec_is_tried_and_written(compression, tmp_path):
    array = pv.parse_json([f'{{"n": {n}, "s": "{n % 3}"}}' for n in range(50)])
    pv.write(tmp_path / "a.parquet", array, schema="n bigint, s string", compression=compression)
    assert list(pv.open(tmp_path / "a.parquet").read()) == list(array)
    column = pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(1)
    assert column.compression == {"none": "UNCOMPRESSED"}.get(compression, compression.upper())


def test_values_that_repeat_much_get_a_dictionary_untried():
    chance = random.Random(3)
    names = [hashlib.sha1(str(n).encode()).hexdigest() for n in range(40)]
    data = pa.table({"name": sorted(chance.choices(names, k=4000)), "long": [n // 500 for n in range(4000)]})
    assert "name" in choose_encodings(data, "zstd")["use_dictionary"]
