"""The pipeline on Spark: the same rows as in process, errors with file and line, all or nothing."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import JsonError, VariantError, VariantFileError
from parquet_variant.ingestion.sources.chunks import open_chunks
from parquet_variant.ingestion.sources.input_files import InputFile


def _exact(text: str) -> object:
    """A JSON value with its numbers exact: 1, 1.0 and 1e0 are equal, 0.1 is not its nearest double."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _rows(dest: Path, column: str = "v") -> list[object]:
    return [_exact(text) for text in pv.to_json(pv.open(dest).read(column)).to_pylist()]


def _files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_the_sample_comes_back_and_is_the_same_as_in_process(spark, tmp_path, usgs_sample):
    reported = []
    result = pv.ingest(usgs_sample, tmp_path / "spark", engine=spark, progress=lambda *step: reported.append(step))
    local = pv.ingest(usgs_sample, tmp_path / "local")
    assert (result.rows, result.bytes_read, result.schema) == (local.rows, local.bytes_read, local.schema)
    assert _rows(tmp_path / "spark") == [_exact(line) for line in usgs_sample.read_text().splitlines()]
    assert _files(tmp_path / "spark") == {*result.files, "_SUCCESS"}
    assert {step for step, *_ in reported} == {"infer the schema", "write"}


def test_the_schema_does_not_depend_on_the_number_of_tasks(spark, tmp_path, usgs_sample):
    one = pv.ingest(usgs_sample, tmp_path / "one", engine=spark)
    many = pv.ingest(usgs_sample, tmp_path / "many", engine=spark, split_bytes=200_000)
    assert len(many.files) == 7
    assert one.schema == many.schema
    assert _rows(tmp_path / "one") == _rows(tmp_path / "many")


def test_all_kinds_of_sources_go_into_one_table(spark, tmp_path):
    rows = [{"n": n, "s": "x" * (n % 7)} for n in range(40)]
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.ndjson").write_bytes(b"".join(lines[:10]))
    (source / "b.json.gz").write_bytes(gzip.compress(b"".join(lines[10:20])))
    with pa.CompressedOutputStream(str(source / "c.zst"), "zstd") as stream:
        stream.write(b"".join(lines[20:30]))
    (source / "d.json").write_text(json.dumps(rows[30:], indent=1))
    result = pv.ingest(str(source / "*"), tmp_path / "out", engine=spark, compression="snappy", column="doc")
    assert result.rows == 40
    assert _rows(tmp_path / "out", "doc") == [_exact(line.decode()) for line in lines]


BAD = b'{"a": 1}\n\n{"a": \n{"a": "\xff"}\n{"a": 2} x\n{"a": 3}\n'


@pytest.mark.parametrize("split_bytes", [None, 12])
def test_the_first_bad_line_is_named_whatever_the_splits(spark, tmp_path, split_bytes):
    (tmp_path / "bad.json").write_bytes(BAD)
    with pytest.raises(JsonError, match=r"line \d: ") as raised:
        pv.ingest(tmp_path / "bad.json", tmp_path / "out", engine=spark, schema="a bigint", split_bytes=split_bytes)
    assert raised.value.file == str(tmp_path / "bad.json")
    line = int(raised.value.message.split(":")[0].removeprefix("line "))
    assert line in (3, 4, 5)
    assert raised.value.reason
    assert _files(tmp_path) == {"bad.json"}


@pytest.mark.parametrize("split_bytes", [None, 12])
def test_bad_lines_are_quarantined_with_exact_line_numbers(spark, tmp_path, split_bytes):
    (tmp_path / "bad.json").write_bytes(BAD)
    result = pv.ingest(
        tmp_path / "bad.json", tmp_path / "out", engine=spark, on_error="quarantine", split_bytes=split_bytes
    )
    assert (result.rows, result.bad_records) == (2, 3)
    assert _rows(tmp_path / "out") == [{"a": 1}, {"a": 3}]
    records = [
        json.loads(line)
        for file in sorted(Path(result.bad_records_path).iterdir())
        for line in file.read_text().splitlines()
    ]
    assert [(record["line"], record["text"]) for record in records] == [
        (3, '{"a": '),
        (4, '{"a": "\ufffd"}'),
        (5, '{"a": 2} x'),
    ]
    assert all(record["reason"] and record["message"] for record in records)
    # Spark and our own scan read the table, not the bad records.
    assert spark.read.parquet(str(tmp_path / "out")).count() == 2


def test_bad_rows_of_a_frame_are_reported_by_its_partitions(spark, tmp_path):
    frame = spark.range(0, 8, 1, 2).selectExpr("id", "if(id IN (1, 6), '{bad', concat('[', id, ']')) AS j")
    with pytest.raises(JsonError, match="row 2: unexpected 'bad'") as raised:
        pv.ingest(frame, tmp_path / "out", engine=spark, json_column="j")
    assert raised.value.file == "partition 0 of the DataFrame"
    result = pv.ingest(frame, tmp_path / "out", engine=spark, json_column="j", on_error="quarantine")
    records = [
        json.loads(line) for file in Path(result.bad_records_path).iterdir() for line in file.read_text().splitlines()
    ]
    reported = sorted((record["file"], record["line"], record["columns"]["id"]) for record in records)
    assert reported == [("partition 0 of the DataFrame", 2, 1), ("partition 1 of the DataFrame", 3, 6)]
    with pytest.raises(VariantError, match="column id is bigint, not strings"):
        pv.ingest(frame, tmp_path / "other", engine=spark, json_column="id")
    with pytest.raises(VariantError, match="no JSON value in the rows"):
        pv.ingest(frame.where("id > 8"), tmp_path / "other", engine=spark, json_column="j")
    assert _files(tmp_path) == {f"out/{name}" for name in _files(tmp_path / "out")}


def test_what_cannot_be_read_or_written_is_refused_before_any_job(spark, tmp_path):
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "a.json").write_text("1\n")
    with pytest.raises(VariantFileError, match="does not exist"):
        pv.ingest(tmp_path / "nothing.json", tmp_path / "out", engine=spark)
    with pytest.raises(VariantFileError, match="no JSON value"):
        pv.ingest(tmp_path / "empty.json", tmp_path / "out", engine=spark)
    with pytest.raises(VariantError, match="sample is 0"):
        pv.ingest(tmp_path / "a.json", tmp_path / "out", engine=spark, sample=0)
    assert _files(tmp_path) == {"empty.json", "a.json"}
    pv.ingest(tmp_path / "a.json", tmp_path / "out", engine=spark)
    before = _files(tmp_path)
    with pytest.raises(VariantFileError, match="already exists"):
        pv.ingest(tmp_path / "a.json", tmp_path / "out", engine=spark)
    assert pv.ingest(tmp_path / "a.json", tmp_path / "out", engine=spark, mode="ignore").rows == 0
    assert _files(tmp_path) == before
    assert pv.ingest(tmp_path / "a.json", tmp_path / "out", engine=spark, mode="append").rows == 1
    assert _rows(tmp_path / "out") == [1, 1]


def test_a_sample_reads_less_and_loses_nothing(spark, tmp_path, usgs_sample):
    result = pv.ingest(usgs_sample, tmp_path / "out", engine=spark, sample=0.1)
    assert result.rows == 1707
    assert "mag" in result.schema.to_ddl()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["usgs_earthquakes.ndjson", "windows_events.ndjson.zst", "cve_v5.ndjson.zst", "gharchive.ndjson.zst"]
)
def test_the_shared_data_goes_in_and_comes_out_equal(spark, tmp_path, variant_test_data, name):
    source = variant_test_data / "data" / name
    result = pv.ingest(source, tmp_path / "out", engine=spark)
    back = pv.to_json(pv.open(tmp_path / "out").read("v"))
    count = 0
    for chunk in open_chunks(InputFile(str(source))):
        texts = chunk.texts()
        expected = [texts.text(row).decode() for row in range(len(texts.starts))]
        for text, found in zip(expected, back.slice(count, len(expected)), strict=True):
            assert _exact(found.as_py()) == _exact(text), f"row {count}"
            count += 1
    assert count == len(back) == result.rows
    # Spark's own reader sees the same values.
    native = spark.read.parquet(str(tmp_path / "out")).selectExpr("to_json(v) AS text").limit(200).collect()
    assert [_exact(row.text) for row in native] == [_exact(text.as_py()) for text in back[:200]]


def test_keys_become_columns(spark, tmp_path):
    rows = [{"id": row, "kind": "a", "n": row / 2} for row in range(20)] + [{"id": "x"}]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    frame = spark.createDataFrame(
        [(n, json.dumps(row), json.dumps([n])) for n, row in enumerate(rows)], "k int, j string, b string"
    )
    files = pv.ingest(tmp_path / "a.ndjson", tmp_path / "files", engine=spark, columns=["id"], rest="v", format="delta")
    tables = pv.ingest(frame, tmp_path / "rows", engine=spark, json_column=["j", "b"], columns=["id"])
    assert (files.rows, tables.rows) == (21, 21)
    assert [hint.partition(":")[0] for hint in (*files.hints, *tables.hints)] == [
        "1 string at $.id does not have the type bigint of the column"
    ] * 2
    for path, names in (("files", ["id", "v"]), ("rows", ["k", "id", "j", "b"])):
        table = pv.open(tmp_path / path).to_arrow()
        assert table.column_names == names
        assert sorted(filter(None, table["id"].to_pylist())) == list(range(1, 20))
    (file, *_) = (tmp_path / "rows").glob("*.parquet")
    assert pv.ShreddingSchema.from_parquet(file, "b").to_ddl() == "array<bigint>"
