"""NDJSON files to shredded Parquet: through Spark on two cores, and in process on two threads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import parquet_variant as pv
from benchmarks.checks import difference_note, different_json
from benchmarks.data import DataSet, data_sets, scratch
from benchmarks.files import schema_of
from benchmarks.harness import OURS, Work
from benchmarks.peers import chdb, duckdb, spark


def works() -> Iterator[Work]:
    for data in data_sets():
        yield Work(
            f"ingest: NDJSON → shredded Parquet in process, 2 threads, schema given, {data.name}",
            {OURS: partial(_local, data, schema_of(data)), "DuckDB, same schema": partial(_duckdb, data, True)},
            {"DuckDB, same schema": 4},
            partial(_check, data),
            data.size,
        )
        yield Work(
            f"ingest: NDJSON → shredded Parquet in process, 2 threads, schema inferred, {data.name}",
            {
                OURS: partial(_local, data, None),
                "DuckDB, automatic": partial(_duckdb, data, False),
                **({"chDB, to its JSON type": partial(_chdb, data)} if chdb() else {}),
            },
            {"DuckDB, automatic": 10, "chDB, to its JSON type": 6},
            partial(_check, data),
            data.size,
        )
        yield Work(
            f"ingest: NDJSON → shredded Parquet through Spark, local[2], schema inferred, {data.name}",
            {OURS: partial(_spark_ours, data), "Spark, native": partial(_spark_native, data)},
            {"Spark, native": 5},
            partial(_check, data),
            data.size,
        )


def _check(data: DataSet, who: str, ours: str, theirs: str) -> str:
    if who.startswith("chDB"):
        return f"{who}: {theirs} rows."
    wanted = pv.to_json(pv.open(ours).read())
    assert len(wanted) == len(data.lines), (len(wanted), len(data.lines))
    if who.startswith("DuckDB"):
        sql = f"SELECT v::JSON::VARCHAR AS v FROM read_parquet('{theirs}')"
        found = duckdb(2).execute(sql).to_arrow_table()["v"].to_pylist()
    else:
        found = pv.to_json(pv.open(theirs).read()).to_pylist()
    return difference_note(who, different_json(wanted, found), len(wanted))


def _fresh(name: str) -> Path:
    path = scratch() / "out" / name
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True) if path.is_file() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _local(data: DataSet, schema: Any) -> str:
    out = str(_fresh("local"))
    pv.ingest([str(data.file)], out, schema=schema, threads=2)
    return out


def _spark_ours(data: DataSet) -> str:
    out = str(_fresh("spark-ours"))
    pv.ingest([str(data.file)], out, engine=spark())
    return out


def _spark_native(data: DataSet) -> str:
    out = str(_fresh("spark-native"))
    spark().read.text(str(data.file)).selectExpr("parse_json(value) AS v").write.parquet(out)
    return out


def _chdb(data: DataSet) -> int:
    session = chdb()
    session.query("DROP TABLE IF EXISTS ingested")
    session.query("CREATE TABLE ingested (v JSON CODEC(ZSTD(3))) ENGINE = MergeTree ORDER BY tuple()")
    source = f"file('{data.file}', JSONAsObject, 'v JSON')"
    session.query(f"INSERT INTO ingested SELECT v FROM {source} SETTINGS max_threads = 2, max_insert_threads = 2")
    return int(str(session.query("SELECT count(*) FROM ingested")))


def _duckdb(data: DataSet, same_schema: bool) -> str:
    out = _fresh("duckdb.parquet")
    out.unlink(missing_ok=True)
    connection = duckdb(2)
    connection.execute(f"SET variant_minimum_shredding_size = {-1 if same_schema else 0}")
    shredding = f", SHREDDING {{v: '{duckdb_type(schema_of(data))}'}}" if same_schema else ""
    source = f"read_csv('{data.file}', columns={{'j': 'VARCHAR'}}, delim='\\x01', quote='', escape='', header=false, "
    source += "max_line_size=20000000, auto_detect=false)"
    connection.execute(
        f"COPY (SELECT j::JSON::VARIANT AS v FROM {source}) TO '{out}' (FORMAT parquet, COMPRESSION zstd{shredding})"
    )
    return str(out)


def duckdb_type(schema: pv.ShreddingSchema) -> str:
    """The schema as DuckDB writes types; an untyped node is VARIANT."""
    if schema.kind == "object":
        # DuckDB's names are blind to case: of two that differ by case only, it gets one.
        unique = {name.lower(): (name, child) for name, child in schema.fields}
        fields = ", ".join(f'"{_quoted(name)}" {duckdb_type(child)}' for name, child in unique.values())
        return f"STRUCT({fields})"
    if schema.kind == "array":
        assert schema.element is not None
        return f"{duckdb_type(schema.element)}[]"
    if schema.kind == "variant":
        return "VARIANT"
    names: dict[str, str] = {"string": "VARCHAR", "bigint": "BIGINT", "boolean": "BOOLEAN", "double": "DOUBLE"}
    ddl = schema.to_ddl()
    return names.get(ddl, ddl.upper())


def _quoted(name: str) -> str:
    return name.replace('"', '""').replace("'", "''")
