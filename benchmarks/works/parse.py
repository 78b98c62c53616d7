"""JSON strings to Variants, one thread.

Limit lines are parsers that make something else of the same strings: "tape only" is simdjson's index of each document,
without values; "objects" are Python dicts and lists. Their ratios have no goals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

import parquet_variant as pv
from benchmarks.checks import difference_note, different_json
from benchmarks.data import DataSet, data_sets
from benchmarks.harness import OURS, Work
from benchmarks.peers import duckdb, spark


def works() -> Iterator[Work]:
    for data in data_sets():
        lines = data.lines
        yield Work(
            f"parse: JSON strings → Variant, 1 thread, {data.name}",
            {
                OURS: partial(pv.parse_json, lines, dictionary="batch"),
                "DuckDB ::JSON::VARIANT": _duckdb(data),
                "Spark parse_json": _spark(data),
                **_limits(data),
            },
            {"DuckDB ::JSON::VARIANT": 3, "Spark parse_json": 3},
            partial(_check, data),
            data.size,
        )


def _check(data: DataSet, who: str, ours: pv.VariantArray, theirs: int) -> str:
    assert len(ours) == theirs, (len(ours), theirs)
    if who.startswith("limit"):
        return ""
    if who.startswith("DuckDB"):
        found = duckdb(1).execute("SELECT v::JSON::VARCHAR AS v FROM parsed").to_arrow_table()
    else:
        found = spark().read.text(str(data.file)).coalesce(1).selectExpr("to_json(parse_json(value)) AS v").toArrow()
    return difference_note(who, different_json(pv.to_json(ours), found["v"].to_pylist()), len(ours))


def _limits(data: DataSet) -> dict[str, Callable[[], int]]:
    """Return the limit lines of the parsers that are installed."""
    lines = data.lines.to_pylist()
    encoded = [line.encode() for line in lines]
    limits: dict[str, Callable[[], int]] = {}
    if find_spec("simdjson"):
        import simdjson

        parser = simdjson.Parser()
        limits["limit: simdjson, tape only"] = partial(_count, parser.parse, encoded)
        limits["limit: simdjson, objects"] = partial(_count, lambda line: parser.parse(line, recursive=True), encoded)
    if find_spec("orjson"):
        import orjson

        limits["limit: orjson, objects"] = partial(_count, orjson.loads, encoded)
    if find_spec("msgspec"):
        import msgspec

        raw = msgspec.json.Decoder(msgspec.Raw)
        limits["limit: msgspec, syntax only"] = partial(_count, raw.decode, encoded)
        limits["limit: msgspec, objects"] = partial(_count, msgspec.json.Decoder().decode, encoded)
    return limits


def _count(parse: Callable[[bytes], Any], lines: list[bytes]) -> int:
    """Parse each line, dropping its document before the next one."""
    for line in lines:
        parse(line)
    return len(lines)


def _duckdb(data: DataSet) -> Any:
    connection = duckdb(1)
    connection.register("lines", pa.table({"j": data.lines}))
    connection.execute(f"CREATE OR REPLACE TABLE text_{data.name} AS SELECT j FROM lines")

    def run() -> int:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE parsed AS SELECT j::JSON::VARIANT AS v FROM text_{data.name}")
        return int(connection.execute("SELECT count(v) FROM parsed").fetchall()[0][0])

    return run


def _spark(data: DataSet) -> Any:
    from pyspark.sql import functions as f

    frame = spark().read.text(str(data.file)).repartition(1).cache()
    count = frame.count()

    def run() -> int:
        parsed = frame.select(f.parse_json("value").alias("v"))
        # An aggregate over the value itself, so that nothing is optimised away, and little is added.
        rows = parsed.select(f.sum(f.when(f.col("v").isNotNull(), 1)).alias("n"), f.max(f.expr("is_variant_null(v)")))
        assert rows.collect()[0].n == count
        return int(count)

    return run
