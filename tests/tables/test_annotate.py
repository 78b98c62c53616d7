"""`Table.annotate` replaces the footers of all files of a directory or table, and nothing else."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.tables.changes import optimizing
from parquet_variant.tables.iceberg.metadata.manifests import Content, DataFile
from parquet_variant.tables.iceberg.reading.planning import plan_files
from parquet_variant.tables.iceberg.writing.commit import SnapshotChange, commit_snapshot

TEXTS = ['{"a": 1, "s": "x"}', '{"a": "one"}', "null", '{"a": 3}']
ROWS = {"id": [1, 2, 3, 4], "v": pv.parse_json(TEXTS)}
DELTA = {
    "delta.enableDeletionVectors": True, "delta.enableRowTracking": True, "delta.columnMapping.mode": "name",
    "delta.enableChangeDataFeed": True,
}  # fmt: skip


def pages(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha256(data[: -8 - int.from_bytes(data[-8:-4], "little")]).hexdigest()


def is_annotated(path: str) -> bool:
    return "Variant" in str(pq.ParquetFile(path).schema)


def files(table: Path) -> list[str]:
    opened = pv.open(table)
    if opened.format == "delta":
        return [str(table / add.path) for add in opened.snapshot.to_adds(opened.snapshot.files)]
    if opened.format == "iceberg":
        return [file.path.removeprefix("file://") for file in plan_files(opened.snapshot).files]
    return [str(path) for path in table.rglob("*.parquet") if "_temporary" not in path.parts]


def rows(table: Path) -> list[Any]:
    found = pv.open(table).to_arrow()
    texts = pv.to_json(pv.VariantArray.from_arrow(found, column="v")).to_pylist()
    return sorted(zip(found["id"].to_pylist(), texts, strict=True), key=str)


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    table = tmp_path / "t"
    options: dict[str, Any] = {"properties": DELTA} if request.param == "delta" else {}
    pv.write(table, ROWS, format=request.param, partition_by="id", **options)
    pv.open(table).append({"id": [7, 7, 7], "v": pv.parse_json(TEXTS[:3])})
    pv.open(table).rename_column("v", "w")
    pv.open(table).rename_column("w", "v")
    pv.open(table).delete("id = 7 AND v:a::string = 'one'")
    return table


def test_all_files_of_a_table_are_replaced_by_one_commit(table: Path) -> None:
    before, old_pages, version = rows(table), sorted(map(pages, map(Path, files(table)))), pv.open(table).version
    commits = len(pv.open(table).history())
    assert pv.open(table).annotate([]) == ()
    assert not any(map(is_annotated, files(table)))
    assert pv.open(table).annotate() == ("v",)
    assert all(map(is_annotated, files(table)))
    assert len(pv.open(table).history()) == commits + 2
    assert pv.open(table).annotate(["v"]) == ("v",)
    assert len(pv.open(table).history()) == commits + 2
    assert (rows(table), sorted(map(pages, map(Path, files(table))))) == (before, old_pages)
    assert len(pv.open(table, version=version).to_arrow()) == len(before)
    assert pv.open(table).delete("id = 7 AND v:a::int = 1").rows_deleted == 1
    assert len(rows(table)) == len(before) - 1


def test_rows_keep_their_ids_and_deleted_rows(table: Path) -> None:
    opened = pv.open(table)
    if opened.format == "iceberg":
        numbers = ["id", "_row_id", "_last_updated_sequence_number"]
        before = opened.scan(numbers).to_arrow().to_pylist()
        opened.annotate([])
        assert pv.open(table).scan(numbers).to_arrow().to_pylist() == before
        return

    def facts() -> list[Any]:
        names = ("partition_values", "stats", "tags", "base_row_id", "default_row_commit_version", "deletion_vector")
        adds = pv.open(table).snapshot.to_adds(pv.open(table).snapshot.files)
        return sorted(str([getattr(add, name) for name in names]) for add in adds)

    before = facts()
    opened.annotate([])
    assert facts() == before
    # The change data of the commit are no rows; the deletion vector outlives the file that it was written for.
    version = pv.open(table).version
    assert len(pv.open(table).changes(since=version)) == 0
    kept = rows(table)
    pv.open(table).vacuum(retention=timedelta(0), force=True)
    assert rows(table) == kept


def test_metrics_stay(tmp_path: Path) -> None:
    pv.write(tmp_path, ROWS, format="iceberg", schema="a bigint, s string")

    def metrics() -> Any:
        (file,) = plan_files(pv.open(tmp_path).snapshot, metrics=True).files
        return file.file.lower_bounds, file.file.column_sizes, file.file.split_offsets, file.file.null_value_counts

    before = metrics()
    assert before[0] and before[1]
    pv.open(tmp_path).annotate([])
    assert metrics() == before


def test_equality_deletes_still_apply_and_files_of_former_partitions_are_copied(tmp_path: Path) -> None:
    pv.write(tmp_path, ROWS, format="iceberg", partition_by="id")
    pv.open(tmp_path).set_partitioning([])
    path = tmp_path / "data" / "deletes.parquet"
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([pa.array([2])], schema=pa.schema([field])), path)
    size, content = path.stat().st_size, Content.EQUALITY_DELETES
    spec = pv.open(tmp_path).snapshot.metadata.spec.id
    deletes = DataFile(f"file://{path}", "parquet", 1, size, spec_id=spec, content=content, equality_ids=(1,))
    commit_snapshot(pv.open(tmp_path).snapshot, SnapshotChange("delete", vectors=(deletes,)))
    before = rows(tmp_path)
    assert [number for number, _ in before] == [1, 3, 4]
    pv.open(tmp_path).annotate([])
    assert rows(tmp_path) == before
    pv.open(tmp_path).append({"id": [2], "v": pv.parse_json(["2"])})
    pv.open(tmp_path).annotate()
    assert rows(tmp_path) == sorted([*before, (2, "2")], key=str)


@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_other_readers(table_format: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    if table_format == "parquet":
        for name in ("a", "k=1/b"):
            pv.write(table / f"{name}.parquet", ROWS, schema="a bigint")
    else:
        options: dict[str, Any] = {"properties": {"delta.enableVariantShredding": False}}
        pv.write(table, ROWS, format=table_format, **(options if table_format == "delta" else {}))
    pv.open(table).annotate()
    for file in files(table):
        with pytest.raises(Exception, match=r"(?i)logical"):
            pl.read_parquet(file, hive_partitioning=False)
        assert str(duckdb.sql(f"SELECT v FROM read_parquet('{file}')").types) == "[VARIANT]"
    pv.open(table).annotate([])
    for file in files(table):
        assert pl.read_parquet(file, hive_partitioning=False)["id"].to_list() == ROWS["id"]
    if table_format == "delta":
        assert deltalake.DeltaTable(table).to_pyarrow_table()["id"].to_pylist() == ROWS["id"]
        assert deltalake.DeltaTable(table).version() == 2


def test_a_change_of_the_same_rows_is_kept(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work: Callable[..., Any] = optimizing.annotate_data_file
    others = [lambda: (pv.open(table).append(ROWS), pv.open(table).delete("id = 1"))]

    def after_another(*arguments: Any) -> Any:
        done = work(*arguments)
        if others:
            others.pop()()
        return done

    monkeypatch.setattr(optimizing, "annotate_data_file", after_another)
    pv.open(table).annotate([])
    assert not others
    assert [number for number, _ in rows(table)] == [2, 2, 3, 3, 4, 4, 7, 7]


KILLED = """
import os, signal, sys
import parquet_variant as pv
from parquet_variant.files.parquet.operations import annotate

copy, left = annotate.FooterChange.copy, [1]


def killed(*arguments):
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left.pop()
    return copy(*arguments)


annotate.FooterChange.copy = killed
pv.open(sys.argv[1]).annotate([])
"""


@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_a_killed_job_changes_nothing(table_format: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    if table_format == "parquet":
        for name in ("a", "k=1/b", "k=2/c"):
            pv.write(table / f"{name}.parquet", ROWS)
    else:
        pv.write(table, ROWS, format=table_format, partition_by="id", schema="a bigint")
    before, names = rows(table), sorted(files(table))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    child = subprocess.run([sys.executable, "-c", KILLED, str(table)], env=environment, check=False)
    assert child.returncode == -signal.SIGKILL
    assert (rows(table), sorted(files(table))) == (before, names)
    assert all(map(is_annotated, files(table)))
    pv.open(table).annotate([])
    assert rows(table) == before
    assert not any(map(is_annotated, files(table)))


def test_variants_in_lists_and_unknown_columns(tmp_path: Path) -> None:
    name = {"ARROW:extension:name": "arrow.parquet.variant"}
    variants = pv.parse_json(["1", "2"]).storage
    element = pa.field("element", variants.type, metadata=name)
    lists = pa.ListArray.from_arrays([0, 1, 2], variants).cast(pa.list_(element))
    fields = [pa.field("l", lists.type), pa.field("v", variants.type, metadata=name)]
    data = pa.table([lists, variants], schema=pa.schema(fields))
    pv.write(tmp_path, data, format="delta", annotation=True)
    (before,) = (str(pq.ParquetFile(file).schema).count("(Variant(1))") for file in files(tmp_path))
    assert before == 2
    assert pv.open(tmp_path).annotate() == ("v",)
    assert pv.open(tmp_path).annotate([]) == ()
    (after,) = (str(pq.ParquetFile(file).schema).count("(Variant(1))") for file in files(tmp_path))
    assert after == 0
    with pytest.raises(pv.VariantError, match="nope is not a Variant column: choose from v") as caught:
        pv.open(tmp_path).annotate(["nope"])
    assert caught.value.reason == "no-such-column"
