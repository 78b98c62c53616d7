"""The commit of Spark's writer: files that were planned for another state of the table are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType, VariantType

import parquet_variant as pv
from parquet_variant.spark.arrow_variant import to_spark
from parquet_variant.spark.datasource.options import WriteOptions
from parquet_variant.spark.datasource.writing import BatchWriter, StreamWriter

_SCHEMA = StructType([StructField("id", LongType()), StructField("v", VariantType())])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pv.create(tmp_path / "t", _SCHEMA.json())
    return tmp_path / "t"


def _options(table: Path, **options: str) -> WriteOptions:
    return WriteOptions.of({"path": str(table), "format": "delta", "schema": "a int", **options})


def _batch(*ids: int):
    columns = [pa.array(ids, pa.int64()), to_spark(pv.from_python([{"a": n} for n in ids]))]
    return pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(_SCHEMA))


def _ids(table: Path) -> list[int]:
    return sorted(pv.open(table).to_arrow()["id"].to_pylist())


CHANGES: dict[str, Callable[[Path], object]] = {
    "constraint": lambda table: pv.open(table).set_properties({"delta.constraints.few": "id < 10"}),
    "shredding": lambda table: pv.open(table).set_properties({"delta.enableVariantShredding": False}),
    "append-only": lambda table: pv.open(table).set_properties({"delta.appendOnly": True}),
    "column": lambda table: pv.open(table).add_columns(pa.schema([("more", pa.string())])),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_table_while_files_are_written_is_a_conflict(table: Path, change: str, stream: bool) -> None:
    options = _options(table, **({"checkpointLocation": str(table.parent / "checkpoint")} if stream else {}))
    writer = (StreamWriter if stream else BatchWriter)(options, _SCHEMA, False)
    messages = [writer.write(iter([_batch(20, 30)]))]
    CHANGES[change](table)
    with pytest.raises(pv.DeltaError) as caught:
        writer.commit(messages, *([0] if stream else []))
    assert caught.value.reason == "conflict"
    assert _ids(table) == []
    assert not list(table.glob("*.parquet"))


def test_other_commits_are_not_a_conflict(table: Path) -> None:
    writer = BatchWriter(_options(table), _SCHEMA, False)
    messages = [writer.write(iter([_batch(1)]))]
    pv.open(table).append({"id": [2], "v": pv.from_python([{"a": 2}])})
    writer.commit(messages)
    assert _ids(table) == [1, 2]


def test_a_batch_with_an_application_and_version_is_committed_once(table: Path) -> None:
    options = _options(table, txnAppId="job", txnVersion="7")
    for _ in range(2):
        writer = BatchWriter(options, _SCHEMA, False)
        writer.commit([writer.write(iter([_batch(1)]))])
        assert _ids(table) == [1]
    assert len(list(table.glob("*.parquet"))) == 1
    for version, ids in (("6", [1]), ("8", [1, 1])):
        writer = BatchWriter(_options(table, txnAppId="job", txnVersion=version), _SCHEMA, False)
        writer.commit([writer.write(iter([_batch(1)]))])
        assert _ids(table) == ids


@pytest.mark.parametrize("options", [{"txnAppId": "a"}, {"txnVersion": "1"}, {"txnAppId": "a", "txnVersion": "x"}])
def test_half_of_a_transaction_is_refused(table: Path, options: dict[str, str]) -> None:
    with pytest.raises(pv.VariantError) as caught:
        BatchWriter(_options(table, **options), _SCHEMA, False)
    assert caught.value.reason == "bad-option"


def test_a_transaction_of_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(pv.VariantError, match="Iceberg tables"):
        BatchWriter(WriteOptions.of({"path": str(tmp_path / "d"), "txnAppId": "a", "txnVersion": "1"}), _SCHEMA, False)
    assert not (tmp_path / "d").exists()


def test_files_are_kept_if_it_is_unknown_whether_they_were_committed(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = BatchWriter(_options(table), _SCHEMA, False)
    messages = [writer.write(iter([_batch(1)]))]

    def unknown(*_: object, **__: object) -> None:
        raise pv.TableError("the answer was lost", reason="unknown-outcome")

    monkeypatch.setattr("parquet_variant.tables.delta.writing.write.commit_adds", unknown)
    with pytest.raises(pv.TableError):
        writer.commit(messages)
    assert len(list(table.glob("*.parquet"))) == 1
