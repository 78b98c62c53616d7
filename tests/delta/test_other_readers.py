"""Other engines read our tables: delta-rs the log, DuckDB and Spark the data files, DuckDB's delta extension both."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv


def expected(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "mag": n + 1.5, "name": f"n{n:05}", "odd": [n], "props": {"a": n % 5}} for n in range(count)]


def data_files(table: Path) -> list[str]:
    found = pv.open(table).snapshot
    return [found.storage.filesystem(path)[1] for path in found.files["path"].to_pylist()]


@pytest.mark.parametrize("checkpointed", [False, True])
def test_delta_rs_loads_the_log_and_counts_right(make_table: Callable[..., Path], checkpointed: bool) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    table = make_table(6, 6, partition_by=["p"])
    pv.open(table).append({"k": [99], "p": ["p1"]}, batch=("app", 3))
    if checkpointed:
        pv.open(table).checkpoint(stats_parsed=True)
        for file in (table / "_delta_log").glob("*.json"):
            file.unlink()
    other = deltalake.DeltaTable(str(table))
    assert other.version() == 2
    protocol = other.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == ["variantType", "variantShredding"]
    assert other.metadata().partition_columns == ["p"]
    assert other.transaction_version("app") == 3
    actions = pa.table(other.get_add_actions(flatten=True)).to_pylist()
    assert sorted(action["num_records"] for action in actions) == [1, 3, 3, 3, 3]
    assert sorted(action["min.k"] for action in actions) == [0, 1, 6, 7, 99]
    assert {action["partition.p"] for action in actions} == {"p0", "p1"}
    assert sorted(Path(uri).name for uri in other.file_uris()) == sorted(Path(f).name for f in data_files(table))


def test_we_read_the_checkpoints_that_delta_rs_writes(make_table: Callable[..., Path]) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    table = make_table(6, 6)
    before = pv.open(table).snapshot
    deltalake.DeltaTable(str(table)).create_checkpoint()
    for file in (table / "_delta_log").glob("*.json"):
        file.unlink()
    after = pv.open(table).snapshot
    assert (after.version, after.protocol, after.metadata.schema_string) == (
        before.version, before.protocol, before.metadata.schema_string,
    )  # fmt: skip
    assert sorted(after.files["path"].to_pylist()) == sorted(before.files["path"].to_pylist())
    query = pv.open(table).scan({"id": "$.id:long"}, "id >= 8")
    assert len(query.plan.pruned.files) == 1
    assert sorted(query.to_arrow()["id"].to_pylist()) == [8, 9, 10, 11]


@pytest.mark.parametrize("shredded", [True, False])
def test_duckdb_reads_the_data_files(make_table: Callable[..., Path], shredded: bool) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    # Without the annotation it is a struct to DuckDB, as it is to most readers: unshredded files have it if asked for.
    table = make_table(20, properties={"delta.enableVariantShredding": str(shredded).lower()}, annotation=True)
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT k, v::JSON FROM read_parquet($1) ORDER BY k", [data_files(table)]).fetchall()
    assert [json.loads(text) for _, text in rows] == expected(20)


@pytest.mark.parametrize("shredded", [True, False])
def test_spark_reads_the_data_files(spark: Any, make_table: Callable[..., Path], shredded: bool) -> None:
    table = make_table(20, properties={"delta.enableVariantShredding": str(shredded).lower()})
    frame = spark.read.schema("k bigint, p string, v variant").parquet(*data_files(table))
    rows = frame.selectExpr("k", "to_json(v) as v", "variant_get(v, '$.name', 'string') as n").orderBy("k").collect()
    assert [json.loads(row["v"]) for row in rows] == expected(20)
    assert [row["n"] for row in rows] == [f"n{n:05}" for n in range(20)]


SCRIPT = """
import sys, json, glob, os, duckdb, duckdb_extension_delta
folder = os.path.join(os.path.dirname(duckdb_extension_delta.__file__), "extensions")
(extension,) = glob.glob(os.path.join(folder, "*", "delta.duckdb_extension"))
connection = duckdb.connect()
connection.execute(f"LOAD '{extension}'")
query = f"SELECT k, p, v::JSON FROM delta_scan('{sys.argv[1]}') ORDER BY k"
print(json.dumps([[k, p, json.loads(v)] for k, p, v in connection.execute(query).fetchall()]))
"""


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("options", [{"preview": True}, {"properties": {"delta.enableVariantShredding": "false"}}])
def test_duckdbs_delta_extension_reads_our_tables(
    make_table: Callable[..., Path], options: dict[str, Any], checkpointed: bool
) -> None:
    python = os.environ.get("DUCKDB_DELTA_PYTHON")
    if not python:
        pytest.skip("set DUCKDB_DELTA_PYTHON to a Python that has duckdb-extension-delta (it pins its own DuckDB)")
    table = make_table(10, 10, partition_by=["p"], **options)
    if checkpointed:
        pv.open(table).checkpoint(stats_parsed=True)
        for file in (table / "_delta_log").glob("*.json"):
            file.unlink()
    run = subprocess.run([python, "-c", SCRIPT, str(table)], capture_output=True, text=True, check=True)
    rows = json.loads(run.stdout)
    assert [row[0] for row in rows] == list(range(20))
    assert [row[1] for row in rows] == [f"p{n % 2}" for n in range(20)]
    assert [row[2] for row in rows] == expected(20)
