"""An ingest reports what it saw: rows inside one document, files that are not JSON, and how to leave them out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.ingestion.sources.input_files import find_input_files

ROWS = [{"id": number, "name": "x"} for number in range(50)]


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"items": ROWS}, "$.items[*]"),
        ({"count": 50, "data": {"rows": ROWS, "tags": [{"a": 1}]}}, "$.data.rows[*]"),
        ({"two words": ROWS}, "$['two words'][*]"),
    ],
)
def test_a_document_with_one_array_of_objects_is_a_hint_to_use_root(
    tmp_path: Path, document: object, path: str
) -> None:
    source = tmp_path / "a.json"
    for indent in (None, 2):
        source.write_text(json.dumps(document, indent=indent))
        (hint,) = pv.ingest(source, tmp_path / "out", mode="overwrite").hints
        assert f"50 objects in the array {path.removesuffix('[*]')}" in hint
        assert f"root='{path}'" in hint
        result = pv.ingest(source, tmp_path / "out", root=path, mode="overwrite")
        assert (result.rows, result.hints) == (50, ())


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(json.dumps, ROWS)),
        json.dumps({"items": list(range(50))}),
        json.dumps({"items": ROWS[:1]}),
        "\n".join(json.dumps({"items": ROWS}) for _ in range(3)),
        json.dumps(ROWS),
    ],
)
def test_other_inputs_have_no_hint(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    assert pv.ingest(tmp_path / "a.json", tmp_path / "out").hints == ()


def test_the_actions_of_a_bulk_request_are_no_documents(tmp_path: Path) -> None:
    pairs = [[{"index": {"_index": "logs", "_id": str(n)}}, {"message": f"m{n}", "level": "INFO"}] for n in range(50)]
    (tmp_path / "bulk.ndjson").write_text("".join(f"{json.dumps(row)}\n" for pair in pairs for row in pair))
    (hint,) = pv.ingest(tmp_path / "bulk.ndjson", tmp_path / "out").hints
    assert "Elasticsearch's bulk format" in hint and "sed -n 'n;p'" in hint
    (tmp_path / "other.ndjson").write_text("".join(f'{{"index": {{"_id": {n}}}, "n": 1}}\n{{}}\n' for n in range(3)))
    assert pv.ingest(tmp_path / "other.ndjson", tmp_path / "other").rows == 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    for name, text in (
        ("a.json", "1\n"),
        ("raw/b.json", "2\n"),
        ("README.md", "# Data\n"),
        ("raw/c.csv", "x,y\n1,2\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_file_that_is_not_json_is_named_with_the_pattern_that_leaves_it_out(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(pv.JsonError, match=r"exclude='\*\.md'") as caught:
        pv.ingest(folder, tmp_path / "out")
    assert caught.value.file == str(folder / "README.md")
    (folder / "README.md").write_bytes(b"Obj\x01")
    with pytest.raises(pv.VariantFileError, match="exclude="):
        pv.ingest(folder, tmp_path / "out")


@pytest.mark.parametrize(
    ("exclude", "rows"),
    [
        (["*.md", "*.csv"], [1, 2]),
        (["*.md", "raw"], [1]),
        (["*.md", "raw/"], [1]),
        (["README*", "raw/*.csv"], [1, 2]),
        (["*.md", "**/c.csv"], [1, 2]),
        (["[!ab].*", "R*"], [1, 2]),
    ],
)
def test_files_are_left_out_by_pattern(folder: Path, tmp_path: Path, exclude: list[str], rows: list[int]) -> None:
    assert pv.read_json(folder, exclude=exclude).to_pylist() == rows
    assert pv.read_json(f"{folder}/**/*", exclude=exclude).to_pylist() == rows
    assert pv.ingest(folder, tmp_path / "out", exclude=exclude).rows == len(rows)
    assert pv.profile(folder, exclude=exclude).rows == len(rows)


def test_patterns_are_checked(folder: Path) -> None:
    with pytest.raises(pv.VariantFileError) as caught:
        find_input_files(folder, ["*"])
    assert caught.value.reason == "no-files"
    for exclude in (5, [""], [None], ""):
        with pytest.raises((pv.VariantError, TypeError)):
            pv.ingest(folder, "out", exclude=exclude)


def test_a_row_of_a_parquet_file_is_not_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"items": ROWS}))
    pv.ingest(tmp_path / "a.json", tmp_path / "a.parquet", one_file=True)
    for name, hints in (("a.json", 1), ("a.parquet", 0)):
        assert main(["infer", str(tmp_path / name)]) == 0
        assert capsys.readouterr().err.count("--root") == hints


def test_the_names_in_paths_are_a_hint_to_keep_the_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for month in ("2026-01", "2026-02"):
        (tmp_path / f"data/month={month}/a=b").mkdir(parents=True)
        (tmp_path / f"data/month={month}/a=b/x.ndjson").write_text('{"n": 1}\n')
    (hint,) = pv.ingest(tmp_path / "data", tmp_path / "out").hints
    assert hint == "a, month in the sources' paths was not read: file_column= keeps the path of each row"
    assert pv.ingest(tmp_path / "data", tmp_path / "kept", file_column="file").hints == ()
    (row,) = pv.sql("SELECT count(*) AS n FROM t WHERE file LIKE '%month=2026-01/%'", tmp_path / "kept").to_pylist()
    assert row == {"n": 1}
    assert main(["ingest", str(tmp_path / "data"), str(tmp_path / "cli")]) == 0
    assert "--file-column keeps the path of each row" in capsys.readouterr().err
