"""Delete, update and merge of Delta tables as Spark jobs: the same as without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv


def columns(start: int, stop: int) -> dict[str, Any]:
    numbers = list(range(start, stop))
    return {"k": numbers, "v": pv.parse_json([json.dumps({"n": n}) for n in numbers])}


@pytest.mark.parametrize("vectors", [False, True])
def test_rows_change_in_jobs(spark: Any, tmp_path: Path, vectors: bool) -> None:
    table = tmp_path / "t"
    for start in (0, 10, 20):
        properties = {"delta.enableDeletionVectors": vectors}
        pv.write(table, columns(start, start + 10), format="delta", mode="append", properties=properties)
    assert pv.open(table, engine=spark).delete("v:n::int between 8 and 11").rows_deleted == 4
    assert pv.open(table, engine=spark).update({"v:x": "k"}, "k = 25").rows_updated == 1
    merged = pv.open(table, engine=spark).merge(columns(29, 31), "target.k = source.k")
    result = merged.when_matched_delete().when_not_matched_insert_all().execute()
    assert (result.rows_deleted, result.rows_inserted, result.files_opened) == (1, 1, 1)
    rows = pv.open(table).to_arrow()
    assert sorted(rows["k"].to_pylist()) == [n for n in range(31) if n not in (8, 9, 10, 11, 29)]
    assert {"n": 25, "x": 25} in pv.open(table).read().to_pylist()


def test_a_merge_takes_the_variants_of_a_dataframe(spark: Any, tmp_path: Path) -> None:
    pv.write(tmp_path, columns(0, 3), format="delta")
    source = spark.sql('SELECT parse_json(\'{"n": 1, "x": [2]}\') AS v')
    merge = pv.open(tmp_path, engine=spark).merge(source, "target.v:n::int = source.v:n::int")
    assert merge.when_matched_update({"v:y": "source.v:x", "k": "source.v:x[0]::int"}).execute().rows_updated == 1
    assert {"n": 1, "y": [2]} in pv.open(tmp_path).read().to_pylist()
    assert sorted(pv.open(tmp_path).to_arrow()["k"].to_pylist()) == [0, 2, 2]


def test_a_repeated_batch_changes_a_table_once(spark: Any, tmp_path: Path) -> None:
    pv.write(tmp_path, columns(0, 10), format="delta")
    for repeated in (False, True):
        batch = {"batch": ("job", 7)}
        merge = pv.open(tmp_path, engine=spark).merge(columns(20, 22), "target.k = source.k", **batch)
        result = merge.when_matched_delete().when_not_matched_insert_all().execute()
        assert (result.committed, result.rows_inserted) == ((False, 0) if repeated else (True, 2))
        deleted = pv.open(tmp_path, engine=spark).delete("k < 3", batch=("job", 8))
        assert (deleted.committed, deleted.rows_deleted) == ((False, 0) if repeated else (True, 3))
        # A change without rows is recorded, too, because later rows must not be changed by a repetition.
        updated = pv.open(tmp_path, engine=spark).update({"k": "k + 1"}, "k > 100", batch=("job", 9))
        assert (updated.committed, updated.rows_updated) == (not repeated, 0)
    assert sorted(pv.open(tmp_path).to_arrow()["k"].to_pylist()) == [*range(3, 10), 20, 21]
    assert pv.open(tmp_path).snapshot.version == 3


def test_options_of_changes_are_checked_before_a_job_runs(spark: Any, tmp_path: Path) -> None:
    pv.write(tmp_path, columns(0, 3), format="delta")
    with pytest.raises(pv.VariantError, match="nope"):
        pv.open(tmp_path, engine=spark).delete("k = 1", nope=3)
    for condition, problem in (("lower(k", r"invalid filter: Expecting \)"), ("k % 2", "of type int64")):
        with pytest.raises(pv.VariantError, match=problem):
            pv.open(tmp_path, engine=spark).scan({"i": "k"}, where=condition).to_spark()
    with pytest.raises(Exception, match=r"invalid filter: Expecting \)"):
        spark.read.format("variant").option("where", "lower(k").load(str(tmp_path))
    assert pv.open(tmp_path).snapshot.version == 0


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_changes_in_jobs_name_the_values_that_they_did_not_compare(
    spark: Any, tmp_path: Path, table_format: Any
) -> None:
    for _ in range(2):
        pv.write(tmp_path / "t", pv.from_python([{"n": 1}, {"n": "1"}, {"n": "2"}]), format=table_format, mode="append")
    table = pv.open(tmp_path / "t", engine=spark)
    hint = "2 numbers at v:n were not compared with a string: write a cast, such as v:n::string"
    for run in (lambda: table.delete("v:n = '1'", dry_run=True), lambda: table.update({"v:x": "1"}, "v:n = '2'")):
        assert [text.split(", or")[0] for text in run().hints] == [hint]
    assert [text.split(", or")[0] for text in table.erase("v:n = '1'", force=True).hints] == [hint]
    merge = table.merge(pa.table({"k": ["2"]}), "target.v:n = source.k").when_matched_delete()
    assert "2 numbers at target.v:n were not compared" in merge.execute().hints[0]
