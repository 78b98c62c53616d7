"""Ingest in process: no row lost, bad lines counted with their place, and all or nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.errors import JsonError, VariantFileError
from parquet_variant.ingestion.request import TextOptions
from parquet_variant.ingestion.sources.input_files import InputFile, find_input_files
from parquet_variant.ingestion.sources.splits import Split, plan_splits
from parquet_variant.ingestion.task import profile_splits


def rows_of(dest: Path, column: str = "v") -> list[object]:
    return [json.loads(text) for text in pv.to_json(pv.open(dest).read(column)).to_pylist()]


def left_behind(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_the_sample_comes_back_row_by_row(tmp_path: Path, usgs_sample: Path) -> None:
    result = pv.ingest(usgs_sample, tmp_path / "out")
    lines = usgs_sample.read_text().splitlines()
    assert (result.rows, result.bad_records, len(result.files)) == (len(lines), 0, 1)
    assert result.bytes_read == usgs_sample.stat().st_size
    assert result.bytes_written == (tmp_path / "out" / result.files[0]).stat().st_size
    assert result.schema is not None
    assert "mag" in result.schema.to_ddl()
    assert rows_of(tmp_path / "out") == [json.loads(line) for line in lines]


def test_the_shredded_sample_is_smaller_than_the_unshredded_one(tmp_path: Path, usgs_sample: Path) -> None:
    shredded = pv.ingest(usgs_sample, tmp_path / "shredded")
    (unshredded,) = pv.open(tmp_path / "shredded").rewrite(tmp_path / "plain", layout="unshredded")
    assert shredded.bytes_written < 0.95 * unshredded.bytes


def test_many_splits_and_codecs_keep_every_row_in_order(tmp_path: Path) -> None:
    lines = [json.dumps({"n": n, "s": "x" * (n % 50)}) + "\n" for n in range(2_000)]
    (tmp_path / "a.json").write_text("".join(lines[:1500]))
    (tmp_path / "b.gz").write_bytes(gzip.compress("".join(lines[1500:1600]).encode()))
    (tmp_path / "c.json").write_text("[" + ",".join(lines[1600:]) + "]")
    result = pv.ingest(
        [tmp_path / "a.json", tmp_path / "b.gz", tmp_path / "c.json"], tmp_path / "out", split_bytes=10_000, threads=2
    )
    assert result.rows == 2_000
    assert len(result.files) > 4
    assert [row["n"] for row in rows_of(tmp_path / "out")] == list(range(2_000))


BAD = b'{"a": 1}\n{"a": \n\n{"a": "\xff"}\n{"a": 2}\n'


def test_a_bad_line_ends_the_job_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "bad.json"
    source.write_bytes(BAD)
    with pytest.raises(JsonError) as caught:
        pv.ingest(source, tmp_path / "out")
    assert caught.value.file == str(source)
    assert "line 2" in str(caught.value)
    assert left_behind(tmp_path) == ["bad.json"]
    assert not (tmp_path / "out").exists()


def test_bad_lines_are_quarantined_with_their_place(tmp_path: Path) -> None:
    source = tmp_path / "bad.json"
    source.write_bytes(BAD)
    result = pv.ingest(source, tmp_path / "out", on_error="quarantine")
    assert (result.rows, result.bad_records) == (2, 2)
    assert rows_of(tmp_path / "out") == [{"a": 1}, {"a": 2}]
    assert result.bad_records_path == f"{tmp_path}/out/_bad_records"
    (file,) = Path(result.bad_records_path).iterdir()
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(r["file"], r["line"], r["text"]) for r in records] == [
        (str(source), 2, '{"a": '),
        (str(source), 4, '{"a": "\ufffd"}'),
    ]
    assert all(record["reason"] and record["message"] for record in records)


def test_only_bad_lines_still_leave_their_records(tmp_path: Path) -> None:
    source = tmp_path / "bad.json"
    source.write_text("nope\n")
    result = pv.ingest(source, tmp_path / "out", on_error="quarantine")
    assert (result.rows, result.bad_records, result.files) == (0, 1, ())
    assert result.bad_records_path is not None


def test_a_cut_off_array_is_never_taken_for_whole(tmp_path: Path) -> None:
    source = tmp_path / "array.json"
    source.write_text('[{"a": 1}, {"a": 2')
    with pytest.raises(JsonError, match="truncated"):
        pv.ingest(source, tmp_path / "out", input_format="array")
    assert not (tmp_path / "out").exists()


def test_a_destination_with_data_is_refused_or_replaced(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_text('{"a": 1}\n')
    dest = tmp_path / "out"
    pv.ingest(source, dest)
    with pytest.raises(VariantFileError, match="already exists"):
        pv.ingest(source, dest)
    source.write_text('{"a": 2}\n')
    pv.ingest(source, dest, mode="append")
    assert sorted(row["a"] for row in rows_of(dest)) == [1, 2]
    pv.ingest(source, dest, mode="overwrite")
    assert rows_of(dest) == [{"a": 2}]


def test_an_explicit_schema_is_obeyed_and_the_rest_kept(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    rows = [{"a": 1, "b": "x"}, {"a": "one", "c": [1, None]}, {"b": None}, 5]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = pv.ingest(source, tmp_path / "out", schema="a bigint", column="doc")
    assert result.schema == pv.ShreddingSchema.from_ddl("a bigint")
    assert rows_of(tmp_path / "out", "doc") == rows


@pytest.mark.parametrize("text", ["", "\n \n", "[]"])
def test_sources_without_a_value_are_refused(tmp_path: Path, text: str) -> None:
    source = tmp_path / "empty.json"
    source.write_text(text)
    with pytest.raises(VariantFileError, match=r"no JSON value in .*empty\.json"):
        pv.ingest(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_progress_is_reported_for_every_step(tmp_path: Path, usgs_sample: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    pv.ingest(usgs_sample, tmp_path / "out", progress=lambda *step: seen.append(step))
    assert seen == [("infer the schema", 0, 1), ("infer the schema", 1, 1), ("write", 0, 1), ("write", 1, 1)]


def test_a_sample_is_the_same_however_the_file_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("".join(f'{{"n": {n}, "k{n % 50}": "{"x" * (n % 700)}"}}\n' for n in range(9_000)))
    profiles = []
    for splits in (
        [Split(InputFile(str(file)))],
        plan_splits(find_input_files([str(file)]), 500_000),
        plan_splits(find_input_files([str(file)]), 77_777),
    ):
        for chunk_bytes in (10_000, 1 << 20):
            options = TextOptions(sample=0.2, chunk_bytes=chunk_bytes)
            profiles.append(profile_splits(options, 1, 0, 0, splits))
    assert 1_200 < profiles[0].rows < 2_400
    assert all(profile == profiles[0] for profile in profiles)
