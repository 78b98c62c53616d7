"""Many small files: read together, with the rows, the errors and the places of one by one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.ingestion.request import TextOptions
from parquet_variant.ingestion.sources.input_files import InputFile, find_input_files
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.task import profile_splits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of all kinds; row n has the number n."""
    folder = tmp_path / "small"
    folder.mkdir()
    for number in range(120):
        rows = [json.dumps({"n": number * 3 + place, f"k{number % 5}": "x" * number}) for place in range(3)]
        lines = "\n".join(rows).encode()
        data = {
            0: lines,  # without a newline at its end
            1: b"\xef\xbb\xbf" + lines + b"\n\n",
            2: gzip.compress(lines + b"\n"),
            3: ("[" + ",\n ".join(rows) + "]").encode(),
            4: "".join(json.dumps(json.loads(row), indent=1) for row in rows).encode(),
        }[number % 5]
        (folder / f"{number:04d}.json").write_bytes(data)
    (folder / "0050.empty").write_bytes(b"")
    (folder / "0051.large").write_bytes(b"\n" * 100_000 + b'{"n": 1000}')
    return folder


def _numbers(dest: Path) -> list[int]:
    return [row["n"] for row in pv.open(dest).read().to_pylist()]


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_come_in_order_and_are_counted(folder: Path, tmp_path: Path, threads: int) -> None:
    result = pv.ingest(folder, tmp_path / "out", threads=threads, schema="n int")
    expected = [*range(156), 1000, *range(156, 360)]  # by the names of the files
    assert result.rows == 361
    assert _numbers(tmp_path / "out") == expected
    assert [row.to_python()["n"] for row in pv.read_json(folder)] == expected


@pytest.mark.parametrize("sample", [None, 0.2])
def test_the_profile_is_that_of_the_files_one_by_one(folder: Path, sample: float | None) -> None:
    files = find_input_files(folder)
    together = [Split(file) for file in files]
    alone = [Split(InputFile(file.name)) for file in files]
    options = TextOptions(sample=sample)
    assert profile_splits(options, 1, 0, 0, together) == profile_splits(options, 1, 0, 0, alone)


def test_bad_lines_keep_their_file_and_number(folder: Path, tmp_path: Path) -> None:
    for name in ("0010.json", "0085.json"):
        text = (folder / name).read_text().splitlines()
        (folder / name).write_text("\n".join([text[0], "{bad", *text[1:]]))
    (folder / "0090.csv").write_text('[{"n": 1}, ')
    result = pv.ingest(folder, tmp_path / "out", on_error="quarantine", schema="n int", threads=1)
    (file,) = Path(result.bad_records_path or "").iterdir()
    places = [(Path(bad["file"]).name, bad["line"]) for bad in map(json.loads, file.read_text().splitlines())]
    assert places == [("0010.json", 2), ("0085.json", 2), ("0090.csv", 2)]
    assert (result.rows, result.bad_records) == (362, 3)
    with pytest.raises(pv.JsonError, match=r"^line 2: .*0010.json") as raised:
        pv.ingest(folder, tmp_path / "no", schema="n int")
    assert raised.value.file == str(folder / "0010.json")
    assert not (tmp_path / "no").exists()
    nulls = pv.ingest(folder, tmp_path / "null", on_error="null", schema="n int", input_format="ndjson")
    assert nulls.rows > 362


def test_csv_and_a_root_inside_of_documents(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number:02d}.csv").write_text(f"n,s\n{number},a\n{number},b\n")
        (tmp_path / f"{number:02d}.json").write_text(json.dumps({"at": 1, "items": [{"n": number}, {"n": number}]}))
    twice = [number for number in range(40) for _ in range(2)]
    csv = pv.ingest(tmp_path / "*.csv", tmp_path / "csv", input_format="csv", schema="n int")
    assert (csv.rows, [int(n) for n in _numbers(tmp_path / "csv")]) == (80, twice)
    root = pv.ingest(tmp_path / "*.json", tmp_path / "root", root="$.items[*]", schema="n int")
    assert (root.rows, _numbers(tmp_path / "root")) == (80, twice)
