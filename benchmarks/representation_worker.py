"""One engine over one representation of JSON, in its own process: loads events and answers JSONBench's queries.

Owns how each engine stores and reads each representation. Leaves rounds, checks and the table to
`benchmarks.works.representations`, which starts ``python -m benchmarks.representation_worker CELL FOLDER`` and writes
one command per line: ``load EVENTS``, ``fresh``, or the name of a query. Each answer is one line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS = 2
STRING, JSON_TYPE, UNSHREDDED, SHREDDED = "JSON string", "JSON type", "Variant, unshredded", "Variant, shredded"
REPRESENTATIONS = (STRING, JSON_TYPE, UNSHREDDED, SHREDDED)
_MICROS_PER_HOUR = 3_600_000_000
_DUCKDB_TYPES = {STRING: "VARCHAR", JSON_TYPE: "JSON"}


class Engine:
    """An engine with a folder for its files; `representation` says what it stores there."""

    def __init__(self, representation: str, folder: Path) -> None:
        self.representation, self.folder = representation, folder

    def load(self, events: str) -> None:
        """Store the events of an NDJSON file in place of those that are stored."""
        raise NotImplementedError

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query of JSONBench has."""
        raise NotImplementedError

    def fresh(self) -> None:
        """Forget data that the engine keeps in memory between queries."""

    def stored_bytes(self) -> int:
        """Return the size of the stored events."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())


def _clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _sql(query: str, table: str, path: Callable[[str, str], str], hour: str = "hour(make_timestamp({}))") -> str:
    from benchmarks.works.jsonbench import text

    return text(query, table, path, hour)


class Ours(Engine):
    """`pv.ingest` and `pv.sql`; JSON strings are a column of Parquet that pyarrow wrote, parsed in the query."""

    def load(self, events: str) -> None:
        import parquet_variant as pv

        shutil.rmtree(self.folder, ignore_errors=True)
        if self.representation == STRING:
            self.folder.mkdir(parents=True)
            _write_strings(events, self.folder / "events.parquet")
            return
        schema = pv.ShreddingSchema.from_ddl("variant") if self.representation == UNSHREDDED else None
        pv.ingest(events, str(self.folder), schema=schema, threads=THREADS)

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        import parquet_variant as pv

        column = "parse_json(j)" if self.representation == STRING else "v"
        sql = _sql(query, "t", lambda path, kind: f"{column}:{path}::{kind}", "hour(timestamp_micros({}))")
        return [tuple(row.values()) for row in pv.sql(sql, t=str(self.folder), threads=THREADS).to_pylist()]


def _write_strings(events: str, path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet as pq

    lines = pyarrow.csv.open_csv(
        events,
        pyarrow.csv.ReadOptions(column_names=["j"], block_size=16 << 20),
        pyarrow.csv.ParseOptions(delimiter="\x01", quote_char=False, escape_char=False),
        pyarrow.csv.ConvertOptions(column_types={"j": "string"}),
    )
    with pq.ParquetWriter(path, lines.schema, compression="zstd") as writer:
        for batch in lines:
            writer.write_batch(batch)


class DuckDB(Engine):
    """DuckDB over Parquet files that it wrote."""

    def __init__(self, representation: str, folder: Path) -> None:
        super().__init__(representation, folder)
        self.fresh()

    def fresh(self) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {THREADS}")

    def source(self, events: str) -> str:
        """Return the query that reads the events as the type of the representation."""
        type_name = _DUCKDB_TYPES.get(self.representation, "VARIANT")
        return f"SELECT json::{type_name} AS v FROM read_ndjson_objects('{events}')"

    def load(self, events: str) -> None:
        _clear(self.folder)
        # By default DuckDB shreds row groups of 30,000 rows and more.
        smallest = 0 if self.representation == SHREDDED else -1
        self.connection.execute(f"SET variant_minimum_shredding_size = {smallest}")
        target = self.folder / "events.parquet"
        self.connection.execute(f"COPY ({self.source(events)}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")

    def table(self) -> str:
        """Return what a query names after FROM."""
        return f"read_parquet('{self.folder}/events.parquet')"

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(_sql(query, self.table(), self._path)).fetchall())

    def _path(self, path: str, kind: str) -> str:
        if self.representation in (STRING, JSON_TYPE):
            value = f"(v->>'$.{path}')"
            return value if kind == "string" else f"TRY_CAST({value} AS BIGINT)"
        place = "v" + "".join(f"['{key}']" for key in path.split("."))
        return f"TRY_CAST({place} AS {'VARCHAR' if kind == 'string' else 'BIGINT'})"


class DuckDBTable(DuckDB):
    """DuckDB over a table in its database file."""

    def fresh(self) -> None:
        super().fresh()
        if (self.folder / "events.duckdb").exists():
            self._attach()

    def _attach(self) -> None:
        self.connection.execute(f"ATTACH '{self.folder}/events.duckdb' AS bench")

    def load(self, events: str) -> None:
        _clear(self.folder)
        super().fresh()
        self._attach()
        self.connection.execute(f"CREATE TABLE bench.events AS {self.source(events)}")
        self.connection.execute("CHECKPOINT bench")

    def table(self) -> str:
        return "bench.events"


class Spark(Engine):
    """Spark over Parquet files that it wrote."""

    def __init__(self, representation: str, folder: Path) -> None:
        super().__init__(representation, folder)
        from benchmarks.peers import spark

        self.session = spark()
        shreds = str(representation == SHREDDED).lower()
        self.session.conf.set("spark.sql.variant.writeShredding.enabled", shreds)
        self.session.conf.set("spark.sql.variant.inferShreddingSchema", shreds)

    def load(self, events: str) -> None:
        value = "value AS v" if self.representation == STRING else "parse_json(value) AS v"
        self.session.read.text(events).selectExpr(value).write.mode("overwrite").parquet(str(self.folder))

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        sql = _sql(query, f"parquet.`{self.folder}`", self._path, "hour(timestamp_micros({}))")
        return [tuple(row) for row in self.session.sql(sql).collect()]

    def _path(self, path: str, kind: str) -> str:
        if self.representation == STRING:
            return f"CAST(get_json_object(v, '$.{path}') AS {kind})"
        return f"try_variant_get(v, '$.{path}', '{kind}')"


class ChDB(Engine):
    """chDB over a table of its own."""

    _CACHES = ("MARK CACHE", "UNCOMPRESSED CACHE", "QUERY CONDITION CACHE")

    def __init__(self, representation: str, folder: Path) -> None:
        super().__init__(representation, folder)
        from chdb.session import Session

        folder.mkdir(parents=True, exist_ok=True)
        self.session = Session(str(folder))

    def load(self, events: str) -> None:
        kind = "String" if self.representation == STRING else "JSON"
        line = "LineAsString, 'v String'" if self.representation == STRING else "JSONAsObject, 'v JSON'"
        self.session.query("DROP TABLE IF EXISTS events SYNC")
        self.session.query(f"CREATE TABLE events (v {kind} CODEC(ZSTD(1))) ENGINE = MergeTree ORDER BY tuple()")
        source = f"file('{events}', {line})"
        self.session.query(f"INSERT INTO events SELECT v FROM {source} SETTINGS max_threads = {THREADS}")
        self.session.query("SYSTEM STOP MERGES events")

    def fresh(self) -> None:
        for cache in self._CACHES:
            self.session.query(f"SYSTEM DROP {cache}")

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        from benchmarks.works.jsonbench import number

        sql = _sql(query, "events", self._path, "toHour(fromUnixTimestamp64Micro({}, 'UTC'))")
        found = str(self.session.query(f"{sql} SETTINGS max_threads = {THREADS}", "JSONCompactEachRow"))
        return [tuple(number(value) for value in json.loads(line)) for line in found.splitlines()]

    def _path(self, path: str, kind: str) -> str:
        type_name = "String" if kind == "string" else "Int64"
        if self.representation == JSON_TYPE:
            return f"v.{path}.:{type_name}"
        keys = ", ".join(f"'{key}'" for key in path.split("."))
        return f"JSONExtract(v, {keys}, 'Nullable({type_name})')"

    def stored_bytes(self) -> int:
        query = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = 'events'"
        return int(str(self.session.query(query, "TSV")).strip())


class Polars(Engine):
    """polars over a Parquet file of strings; its SQL runs over the extracted paths."""

    def load(self, events: str) -> None:
        import polars as pl

        _clear(self.folder)
        pl.scan_lines(events, name="v").sink_parquet(self.folder / "events.parquet", compression="zstd")

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        import polars as pl

        columns: dict[str, Any] = {}

        def column(path: str, kind: str) -> str:
            name = path.replace(".", "_")
            value = pl.col("v").str.json_path_match(f"$.{path}")
            columns[name] = value if kind == "string" else value.cast(pl.Int64)
            return name

        sql = _sql(query, "t", column, "hour_of_{}")
        columns["hour_of_time_us"] = columns["time_us"] // _MICROS_PER_HOUR % 24
        frame = pl.scan_parquet(self.folder / "events.parquet").select(**columns)
        return list(pl.SQLContext(t=frame).execute(sql, eager=True).rows())


ENGINES: dict[str, type[Engine]] = {
    "parquet-variant": Ours,
    "DuckDB, Parquet": DuckDB,
    "DuckDB, its table": DuckDBTable,
    "Spark": Spark,
    "chDB": ChDB,
    "polars": Polars,
}
# Engines that lack a cell have no such type or cannot write it. DuckDB's table always shreds its Variants.
CELLS = {
    f"{engine}: {representation}": (engine, representation)
    for engine, representations in {
        "parquet-variant": (STRING, UNSHREDDED, SHREDDED),
        "DuckDB, Parquet": (STRING, UNSHREDDED, SHREDDED),
        "DuckDB, its table": (JSON_TYPE, SHREDDED),
        "Spark": (STRING, UNSHREDDED, SHREDDED),
        "chDB": (STRING, JSON_TYPE),
        "polars": (STRING,),
    }.items()
    for representation in representations
}


def _spent() -> tuple[float, int]:
    """Return the CPU seconds, and the bytes read by system calls, of this process and its children (Spark's JVM)."""
    import psutil

    this = psutil.Process()
    cpu, read = time.process_time(), this.io_counters().read_chars
    for process in this.children(recursive=True):
        times = process.cpu_times()
        cpu += times.user + times.system
        read += process.io_counters().read_chars
    return cpu, read


def main() -> None:
    """Answer commands until the input ends."""
    cell, folder = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Messages of engines do not mix with the answers.
    name, representation = CELLS[cell]
    engine = ENGINES[name](representation, Path(folder))
    for line in sys.stdin:
        command, *arguments = line.split()
        cpu, read = _spent()
        begun = time.perf_counter()
        rows: list[tuple[Any, ...]] = []
        if command == "load":
            engine.load(*arguments)
        elif command == "fresh":
            engine.fresh()
        else:
            rows = engine.answer(command)
        wall = time.perf_counter() - begun
        cpu_after, read_after = _spent()
        found = {
            "wall": wall,
            "cpu": cpu_after - cpu,
            "read": read_after - read,
            "rows": [list(map(str, r)) for r in rows],
        }
        if command == "load":
            found["size"] = engine.stored_bytes()
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
