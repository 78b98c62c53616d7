"""A table is not created where readers would not find its rows: in the directory of a table of another format."""

from __future__ import annotations

from pathlib import Path

import pytest

import parquet_variant as pv

ROWS = {"v": pv.from_python([{"a": 1}])}


def _table(folder: Path, format: str) -> Path:
    source = folder / "rows.ndjson"
    source.write_text('{"a": 1}\n{"a": "x"}\n')
    pv.ingest(source, folder / "t", format=format)
    return folder / "t"


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
@pytest.mark.parametrize(("former", "format"), [("delta", "iceberg"), ("iceberg", "delta")])
def test_a_table_is_not_written_into_a_table_of_the_other_format(
    tmp_path: Path, former: str, format: str, mode: str
) -> None:
    path = _table(tmp_path, former)
    files = sorted(path.rglob("*"))
    with pytest.raises(pv.VariantError, match=f"{former.capitalize()} table: use format='{former}'") as caught:
        pv.write(path, ROWS, format=format, mode=mode)
    assert caught.value.reason == "table-exists"
    with pytest.raises(pv.VariantError, match=r"contains files and is not an? .* table") as caught:
        pv.ingest(tmp_path / "rows.ndjson", path, format=format, mode=mode)
    assert caught.value.reason == "exists"
    assert sorted(path.rglob("*")) == files
    pv.write(path, ROWS, mode="append")
    assert pv.open(path).format == former and len(pv.open(path).read()) == 3


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_rows_of_a_directory_of_files_are_not_hidden_by_a_table(tmp_path: Path, format: str, mode: str) -> None:
    path = _table(tmp_path, "parquet")
    with pytest.raises(pv.VariantError, match=r"contains files and is not an? .* table: choose another path"):
        pv.ingest(tmp_path / "rows.ndjson", path, format=format, mode=mode)
    assert pv.open(path).format == "parquet" and len(pv.open(path).read()) == 2


def test_a_killed_creation_of_an_iceberg_table_does_not_hinder_the_next(tmp_path: Path) -> None:
    path = _table(tmp_path, "iceberg")
    for file in [*path.glob("metadata/*.json"), *path.glob("metadata/version-hint.text")]:
        file.unlink()
    assert list(path.rglob("*.parquet"))
    pv.ingest(tmp_path / "rows.ndjson", path, format="iceberg")
    assert len(pv.open(path).read()) == 2
