"""Optimizing a directory on Spark does what it does in process: rows stay, small files go, what pays is reshredded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError, VariantFileError
from parquet_variant.spark.operations.write import SparkEngine
from parquet_variant.tables.changes.optimizing import optimize
from parquet_variant.tables.delta.dml.changeable import DeltaTable

OLD = "id bigint, kind string, gone double"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(6):
        more = {"extra": 7} if number >= 2 else {}
        rows = [json.dumps({"id": n, "kind": f"k{n % 3}"} | more) for n in range(200)]
        columns = {"n": pa.array(range(200)), "v": pv.parse_json(rows)}
        pv.write(tmp_path / "in" / f"day={number % 2}" / f"f{number}.parquet", columns, schema=OLD)
    return tmp_path / "in"


def _rows(folder: Path) -> list[str | None]:
    return sorted(pv.to_json(pv.open(folder).read()).to_pylist())


def _files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("options", [{}, {"reshred": True}, {"schema": "id bigint"}, {"min_saving": 0.9}], ids=str)
def test_the_result_is_that_of_the_local_engine(spark, folder, options):
    before, here = _rows(folder), folder.with_name("here")
    shutil.copytree(folder, here)
    expected = []
    found = pv.open(folder, engine=spark).optimize(progress=lambda *step: expected.append(step), **options)
    local = pv.open(here).optimize(**options)
    assert (found.files_removed, found.files_added, found.schema) == (6, 2, local.schema)
    assert (local.files_removed, local.files_added) == (6, 2)
    assert str(found.drift) == str(local.drift)
    assert _rows(folder) == before == _rows(here)
    schemas = {pv.ShreddingSchema.from_parquet(str(file)) for file in folder.rglob("*.parquet")}
    assert schemas == {found.schema}
    assert pv.open(folder).to_arrow().column("n").to_pylist() == pv.open(here).to_arrow().column("n").to_pylist()
    assert expected
    assert pv.open(folder, engine=spark).optimize(**options).files_removed == 0


def test_a_dry_run_only_judges(spark, folder):
    before = _files(folder)
    found = pv.open(folder, engine=spark).optimize(dry_run=True)
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
        pv.open(folder, engine=spark).optimize()
    assert _files(folder) == before


class TestDeltaTables:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        for number in range(6):
            more = {"extra": 7} if number >= 2 else {}
            rows = [json.dumps({"id": n, "kind": f"k{n % 3}"} | more) for n in range(200)]
            columns = {"p": pa.array(["a", "b"] * 100), "n": pa.array(range(200)), "v": pv.parse_json(rows)}
            place = tmp_path / "table"
            pv.write(place, columns, format="delta", mode="append", partition_by=["p"], schema=OLD)
        return place

    @pytest.mark.parametrize("options", [{}, {"reshred": True}, {"schema": "id bigint"}], ids=str)
    def test_one_commit_gives_the_local_result(self, spark, table, options):
        here = table.with_name("here")
        shutil.copytree(table, here)
        before = _table_rows(table)
        version = pv.open(table).snapshot.version
        found = pv.open(table, engine=spark).optimize(**options)
        local = pv.open(here).optimize(**options)
        assert (found.version, found.files_removed, found.files_added) == (version + 1, 12, 2)
        assert (local.version, local.files_removed, local.files_added) == (version + 1, 12, 2)
        assert str(found.drift) == str(local.drift)
        assert _table_rows(table) == before == _table_rows(here)
        assert _table_rows(table, version=version) == before
        assert _table_schemas(table) == _table_schemas(here)
        text = (table / "_delta_log" / f"{version + 1:020}.json").read_text()
        assert '"dataChange":true' not in text

    def test_another_commit_meanwhile_loses_no_row(self, spark, table):
        current = DeltaTable(pv.open(table).snapshot)
        pv.open(table).append({"p": ["c"], "n": [1], "v": pv.parse_json(["1"])})
        assert optimize(current, engine=SparkEngine(spark, None)).files_added == 2
        assert len(_table_rows(table)) == 1201
        # The files of the snapshot are gone: the work is planned again, and no row is lost.
        optimize(current, engine=SparkEngine(spark, None))
        assert len(_table_rows(table)) == 1201

    def test_a_missing_data_file_fails_without_a_commit(self, spark, table):
        before = pv.open(table).snapshot.version
        next(table.rglob("*.parquet")).unlink()
        with pytest.raises(TableError, match="is missing"):
            pv.open(table, engine=spark).optimize()
        assert pv.open(table).snapshot.version == before


def _table_rows(table: Path, **options: int) -> list[tuple[object, ...]]:
    found = pv.open(table, **options).to_arrow()
    variants = pv.to_json(pv.VariantArray.from_arrow(found.column("v"))).to_pylist()
    return sorted(zip(found["p"].to_pylist(), found["n"].to_pylist(), variants, strict=True))


def _table_schemas(table: Path) -> set[pv.ShreddingSchema]:
    paths = pv.open(table).snapshot.files["path"].to_pylist()
    return {pv.ShreddingSchema.from_parquet(str(table / path)) for path in paths}
