"""Optimizing a directory on Spark does what it does in process: rows stay, small files go, what pays is reshredded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError

OLD = "id bigint, kind string, gone double"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(6):
        more = {"extra": 7} if number >= 2 else {}
        rows = [json.dumps({"id": n, "kind": f"k{n % 3}"} | more) for n in range(200)]
        columns = {"n": pa.array(range(200)), "v": pv.parse_json(rows)}
        pv.parquet.write(tmp_path / "in" / f"day={number % 2}" / f"f{number}.parquet", columns, schema=OLD)
    return tmp_path / "in"


def _rows(folder: Path) -> list[str | None]:
    return sorted(pv.to_json(pv.parquet.read(folder)).to_pylist())


def _files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("options", [{}, {"reshred": True}, {"schema": "id bigint"}, {"min_saving": 0.9}], ids=str)
def test_the_result_is_that_of_the_local_engine(spark, folder, options):
    before, here = _rows(folder), folder.with_name("here")
    shutil.copytree(folder, here)
    told = []
    found = pv.spark.optimize(spark, folder, progress=lambda *step: told.append(step), **options)
    local = pv.parquet.optimize(here, **options)
    assert (found.files_removed, found.files_added, found.schema) == (6, 2, local.schema)
    assert (local.files_removed, local.files_added) == (6, 2)
    assert str(found.drift) == str(local.drift)
    assert _rows(folder) == before == _rows(here)
    schemas = {pv.ShreddingSchema.from_parquet(str(file)) for file in folder.rglob("*.parquet")}
    assert schemas == {found.schema}
    assert pv.parquet.read_table(folder).column("n").to_pylist() == pv.parquet.read_table(here).column("n").to_pylist()
    assert told
    assert pv.spark.optimize(spark, folder, **options).files_removed == 0


def test_a_dry_run_only_judges(spark, folder):
    before = _files(folder)
    found = pv.spark.optimize(spark, folder, dry_run=True)
    assert found.drift.pays
    assert {(drift.change, str(drift.path)) for drift in found.drift.drifts} == {
        ("hot", "$['extra']"),
        ("dead", "$['gone']"),
    }
    assert _files(folder) == before


def test_a_broken_file_leaves_the_directory_as_it_was(spark, folder):
    good = next(folder.rglob("*.parquet"))
    (good.with_name("broken.parquet")).write_bytes(good.read_bytes()[:-40] + b"PAR1" * 10)
    before = _files(folder)
    with pytest.raises(VariantFileError, match=r"broken\.parquet"):
        pv.spark.optimize(spark, folder)
    assert _files(folder) == before
