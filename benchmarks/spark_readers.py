"""How fast plain Spark and Iceberg's reader read our files, next to files of the same data that they wrote themselves.

``python -m benchmarks.spark_readers`` measures Parquet files with the installed PySpark. With the path of
iceberg-spark-runtime (for Spark 4.1) it measures Iceberg tables. The queries run in turns in one session with one
thread; printed are milliseconds (minima), and ratios to the engine's own shredded files.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import parquet_variant as pv
from benchmarks.data import NAMES, DataSet, data_sets

_ROUNDS = int(os.environ.get("ROUNDS", "5"))
_OPTIONS = {
    "spark.sql.variant.writeShredding.enabled": "true",
    "spark.sql.variant.inferShreddingSchema": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.files.maxPartitionBytes": "1g",
}


def main() -> None:
    """Write the files of each data set, run the queries in turns, and print a table."""
    jar = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as folder:
        spark = _session(folder, jar)
        print(f"Spark {spark.version}, {Path(jar).stem if jar else 'Parquet'}, minima of {_ROUNDS}")
        print("| data set | query | own, shredded (ms) | own, unshredded | ours | ours / own |")
        print("|---|---|---|---|---|---|")
        names = os.environ.get("ONLY", " ".join(NAMES)).split()
        write = _iceberg_tables if jar else _parquet_files
        for data in (data for data in data_sets() if data.name in names):
            tables = write(spark, data, Path(folder) / "h" / "db")
            for query, text in _queries(data).items():
                times = _measure(spark, text, tables)
                cells = " | ".join(f"{1000 * seconds:.0f}" for seconds in times)
                print(f"| {data.name} | {query} | {cells} | {times[2] / times[0]:.2f} |", flush=True)
        spark.stop()


def _session(folder: str, jar: str | None) -> Any:
    iceberg = {
        "spark.jars": str(jar),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.h": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.h.type": "hadoop",
        "spark.sql.catalog.h.warehouse": f"{folder}/h",
    }
    options = _OPTIONS | {"spark.sql.warehouse.dir": f"{folder}/warehouse"} | (iceberg if jar else {})
    return pv.spark.local_session(cores=1, memory="2g", **options)


def _queries(data: DataSet) -> dict[str, str]:
    getters = [f"count(try_variant_get(v, '{path}', '{kind}'))" for path, kind in data.paths]
    first = next(at for at, (_, kind) in enumerate(data.paths) if kind == "string")
    path, kind = data.paths[first]
    return {
        "no column": "SELECT count(*) FROM {}",
        "one path": f"SELECT {getters[first]}, max(try_variant_get(v, '{path}', '{kind}')) FROM {{}}",
        "ten paths": f"SELECT {', '.join(getters)} FROM {{}}",
        "one path filtered": f"SELECT {getters[1]} FROM {{}} WHERE try_variant_get(v, '{path}', '{kind}') > 'P'",
        "whole values": "SELECT sum(length(to_json(v))) FROM {}",
    }


def _parquet_files(spark: Any, data: DataSet, folder: Path) -> list[str]:
    """Write the files, and return their names in SQL: own shredded, own unshredded, ours."""
    values = spark.read.text(str(data.file)).selectExpr("parse_json(value) AS v").coalesce(1)
    paths = [folder / data.name / kind for kind in ("own", "unshredded", "ours")]
    values.write.parquet(str(paths[0]))
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    values.write.parquet(str(paths[1]))
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "true")
    pv.ingest(data.file, paths[2])
    return [f"parquet.`{path}`" for path in paths]


def _iceberg_tables(spark: Any, data: DataSet, folder: Path) -> list[str]:
    """Write the tables, and return their names in SQL: own shredded, own unshredded, ours."""
    names = [f"{data.name}_{kind}" for kind in ("own", "unshredded", "ours")]
    values = spark.read.text(str(data.file)).selectExpr("parse_json(value) AS v").coalesce(1)
    for name, shreds in zip(names, ("true", "false"), strict=False):
        writer = values.writeTo(f"h.db.{name}").using("iceberg").tableProperty("format-version", "3")
        writer = writer.tableProperty("write.parquet.compression-codec", "zstd")
        writer.tableProperty("write.parquet.shred-variants", shreds).create()
    pv.ingest(data.file, folder / names[2], format="iceberg")
    return [f"h.db.{name}" for name in names]


def _measure(spark: Any, query: str, tables: list[str]) -> list[float]:
    """Return the least time for each table, after checking that the answers are equal."""
    answers = [spark.sql(query.format(table)).collect() for table in tables]
    # Texts of a Variant may differ in the notation of numbers.
    if "to_json" not in query and any(answer != answers[0] for answer in answers):
        raise SystemExit(f"the answers differ: {query}: {answers}")
    best = [float("inf")] * len(tables)
    for _ in range(_ROUNDS):
        for at, table in enumerate(tables):
            start = time.perf_counter()
            spark.sql(query.format(table)).collect()
            best[at] = min(best[at], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
