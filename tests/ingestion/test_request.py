"""An ingest is one request: the same from every front door, and refused before anything is read or made."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.writing.conform import WriterOptions
from parquet_variant.files.vortex.writer import write as write_vortex
from parquet_variant.ingestion.request import IngestOptions, IngestRequest, TextOptions

ROWS = '{"a": 1, "b": "x"}\n{"a": 2}\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in.ndjson").write_text(ROWS)
    return tmp_path / "in.ndjson"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"compression": "zip"}, "bad-option"),
        ({"compression": 5}, "bad-option"),
        ({"compression": "snappy", "compression_level": 3}, "bad-option"),
        ({"row_group_bytes": 0}, "bad-option"),
        ({"row_group_bytes": "much"}, "bad-option"),
        ({"sort_by": "$.a["}, "bad-path"),
        ({"sort_by": ["$.a:nothing"]}, None),
        ({"bloom_filters": ["a b"]}, "bad-path"),
        ({"overwrite": True}, "bad-option"),
        ({"file_bytes": 1}, "bad-option"),
        ({"format": "orc"}, "bad-option"),
        ({"format": "delta", "file_bytes": 0}, "bad-option"),
        ({"format": "vortex", "compression": "zstd"}, "bad-option"),
        ({"format": "vortex", "layout": "rows"}, "bad-option"),
        ({"format": "vortex", "exact": True}, "bad-option"),
        ({"mode": "upsert"}, "bad-mode"),
        ({"policy": "best"}, "bad-policy"),
        ({"policy": "hints", "schema": "a int,"}, None),
        ({"column": ""}, "bad-option"),
        ({"sample": 0}, "bad-option"),
        ({"split_bytes": 0}, "bad-option"),
        ({"on_error": "skip"}, "bad-option"),
        ({"input_format": "tsv"}, "bad-option"),
        ({"input_format": "xml"}, "bad-option"),
        ({"input_format": "csv", "parse": {"delimiter": "ab"}}, "bad-option"),
        ({"input_format": "csv", "root": "$.a"}, "bad-option"),
        ({"root": "items"}, "bad-path"),
        ({"json_column": ""}, "bad-option"),
        ({"json_column": "p", "input_format": "array"}, "bad-option"),
        ({"parse": {"float": "double"}}, "bad-option"),
        ({"parse": {"floats": "single"}}, "bad-option"),
        ({"preview": True}, "bad-option"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_looked_at(tmp_path, options, reason):
    with pytest.raises(pv.VariantError) as caught:
        pv.ingest(tmp_path / "is not there", tmp_path / "out", **options)
    assert reason is None or caught.value.reason == reason
    assert caught.value.reason != "missing"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sources", [None, 5, [None], [b"a"], b"a"])
def test_an_invalid_path_is_refused(tmp_path, sources):
    with pytest.raises(pv.VariantError):
        pv.ingest(sources, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["parquet", "delta", "vortex"])
def test_no_destination_is_not_the_directory_that_one_is_in(source, tmp_path, monkeypatch, format):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pv.VariantError, match="the destination is empty"):
        pv.ingest(source, "", format=format, mode="overwrite")
    assert list(tmp_path.iterdir()) == [source]


def test_a_bloom_filter_of_what_is_not_shredded_is_refused_before_a_file_is_begun(source, tmp_path):
    with pytest.raises(pv.VariantFileError) as caught:
        pv.ingest(source, tmp_path / "out", schema="a bigint", bloom_filters="$.b")
    assert caught.value.reason == "not-shredded"
    assert not (tmp_path / "out").exists()


def test_the_keywords_are_those_of_the_request_and_of_the_files():
    own = {item.name for item in fields(IngestRequest)} - {
        "sources",
        "dest",
        "format",
        "text",
        "write",
        "rows",
        "branch",
        "keys",
    }
    text = {item.name for item in fields(TextOptions)} - {
        "json",
        "chunk_bytes",
        "layout",
        "string_types",
        "of_dataframe",
    }
    text -= {"json_paths", "more_columns"}
    text |= {"parse", "input_format", "root", "types", "detect_timestamps", "infer_types"}
    own |= {"rest", "readers", "on_violation"}  # the column, and settings of the policy and of the contract
    files = {item.name for item in fields(WriterOptions)} | {"file_bytes"}
    vortex = set(inspect.signature(write_vortex).parameters) & {"layout", "compact", "exact"}
    assert set(get_type_hints(IngestOptions)) == own | text | files | vortex


def test_every_front_door_makes_the_same_rows(source, tmp_path):
    made = {
        "parquet": pv.ingest(source, tmp_path / "p", schema="a bigint", threads=1),
        "delta": pv.ingest(source, tmp_path / "d", schema="a bigint", threads=1, format="delta"),
        "delta too": pv.ingest(source, tmp_path / "d2", schema="a bigint", format="delta"),
    }
    assert {result.rows for result in made.values()} == {2}
    rows = [{"a": 1, "b": "x"}, {"a": 2}]
    assert pv.open(tmp_path / "p").read().to_pylist() == rows
    assert pv.open(tmp_path / "d").read().to_pylist() == pv.open(tmp_path / "d2").read().to_pylist() == rows


def test_a_table_without_the_column_is_refused_before_a_line_is_read(tmp_path):
    pv.ingest(_file(tmp_path, "good", ROWS), tmp_path / "t", column="v", format="delta")
    with pytest.raises(pv.TableError, match="'w'"):
        pv.ingest(_file(tmp_path, "bad", "{"), tmp_path / "t", mode="append", column="w", format="delta")


def test_a_request_goes_to_other_processes(source, tmp_path):
    request = IngestRequest.of([source] * 3, tmp_path / "out", schema="a bigint", compression="snappy")
    assert pickle.loads(pickle.dumps(request)) == request


def _file(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_schema_that_plain_spark_cannot_read_is_refused_with_readers_spark(tmp_path):
    (tmp_path / "a.ndjson").write_text('{"n": 1}\n')
    for schema, message in (("o struct<id uuid>", r"\$\['o'\]\['id'\].* uuid"), ("t time", "time")):
        with pytest.raises(pv.VariantError, match=f"plain Spark cannot read files with the column .*{message}"):
            pv.ingest(tmp_path / "a.ndjson", tmp_path / "out", schema=schema, readers="spark")
    assert pv.ingest(tmp_path / "a.ndjson", tmp_path / "out", schema="n bigint", readers=["spark"]).rows == 1
