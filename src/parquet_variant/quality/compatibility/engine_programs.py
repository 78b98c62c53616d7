"""Read files or a table with one engine: a program that runs in a process, and perhaps an environment, of its own.

It imports nothing of parquet-variant, so that the Python of another environment can run it. The argument is a JSON
object with ``engine``, ``kind``, ``paths``, ``columns`` and ``out``. The program writes the columns to ``out``, an
Arrow IPC file, and prints a JSON object: ``{"version", "seconds", "types"}``, ``{"version", "error"}``, or
``{"version", "missing"}`` if an extension of the engine is not installed. Without paths it only prints the version.
"""

import importlib.metadata
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple


class Engine(NamedTuple):
    """An engine: the module and package that it needs, the kinds of data that it reads, and its program."""

    module: str
    package: str
    kinds: tuple[str, ...]
    read: Callable[[Any, dict[str, Any]], Any]  # Called with the module and the request.


class MissingExtensionError(Exception):
    """An extension of an engine that is not installed; the text says how to install it."""


def _concatenated(tables: Iterable[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_tables(list(tables))


def _with_duckdb(duckdb: Any, request: dict[str, Any]) -> Any:
    connection = duckdb.connect()
    paths = ", ".join(_quoted(request["paths"], "'"))
    source = f"read_parquet([{paths}], hive_partitioning = false)"
    if request["kind"] != "parquet":
        try:
            connection.execute(f"LOAD {request['kind']}")
        except duckdb.Error:
            problem = f"the extension {request['kind']}: INSTALL {request['kind']} in DuckDB"
            raise MissingExtensionError(problem) from None
        source = f"{request['kind']}_scan({paths})"
    names = _quoted(request["columns"], '"')
    relation = connection.sql(f"SELECT {', '.join(names)} FROM {source}")
    request["types"] = dict(zip(relation.columns, map(str, relation.types), strict=True))
    try:
        return relation.to_arrow_table()
    except duckdb.NotImplementedException:  # DuckDB 1.5 reads Variants, but has no Arrow type for them
        items = [
            f"CASE WHEN {name} IS NOT NULL THEN {name}::JSON END AS {name}" if kind == "VARIANT" else name
            for name, kind in zip(names, request["types"].values(), strict=True)
        ]
        return connection.sql(f"SELECT {', '.join(items)} FROM {source}").to_arrow_table()


def _with_polars(polars: Any, request: dict[str, Any]) -> Any:
    if request["kind"] == "parquet":
        frame = polars.concat([polars.read_parquet(path, columns=request["columns"]) for path in request["paths"]])
    elif request["kind"] == "delta":
        frame = polars.read_delta(request["paths"][0], columns=request["columns"])
    else:
        frame = polars.scan_iceberg(request["paths"][0]).select(request["columns"]).collect()
    request["types"] = {name: str(kind) for name, kind in frame.schema.items()}
    return frame.to_arrow()


def _with_spark(core: Any, request: dict[str, Any]) -> Any:
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        # One task per file, so that rows keep their order.
        "spark.sql.files.maxPartitionBytes": str(1 << 40),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return _from_spark(spark, request)


def _from_spark(spark: Any, request: dict[str, Any]) -> Any:
    start = time.perf_counter()
    tables = []
    for path in request["paths"]:
        if request["kind"] == "parquet":
            frame = spark.read.option("recursiveFileLookup", "true").parquet(path)
        else:
            # Sail opens the directory of an Iceberg table, not its metadata file.
            location = str(Path(path).parent.parent) if request["kind"] == "iceberg" else path
            frame = spark.read.format(request["kind"]).load(location)
        frame = frame.select(*_quoted(request["columns"], "`"))
        request["types"] = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        tables.append(_collected(frame))
    request["seconds"] = time.perf_counter() - start
    return _concatenated(tables)


def _collected(frame: Any) -> Any:
    import pyarrow as pa

    try:
        return frame.toArrow()
    except (AttributeError, pa.ArrowInvalid):  # before Spark 4.0, and of SQL NULL in a Variant column in 4.1
        from pyspark.sql.pandas.types import to_arrow_schema

        rows = [row.asDict(recursive=True) for row in frame.collect()]
        # The attributes of a Variant are its value and metadata.
        rows = [{name: getattr(value, "__dict__", value) for name, value in row.items()} for row in rows]
        return pa.Table.from_pylist(rows, to_arrow_schema(frame.schema))


def _with_sail(sail: Any, request: dict[str, Any]) -> Any:
    from pyspark.sql.connect.session import SparkSession

    server = sail.SparkConnectServer()
    server.start(background=True)
    _, port = server.listening_address
    return _from_spark(SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate(), request)


def _with_datafusion(datafusion: Any, request: dict[str, Any]) -> Any:
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    names = _quoted(request["columns"], '"')
    return _concatenated(context.read_parquet(path).select(*names).to_arrow_table() for path in request["paths"])


def _with_chdb(chdb: Any, request: dict[str, Any]) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    names = ", ".join("`" + name.replace("`", "\\`") + "`" for name in request["columns"])
    tables = []
    for path, literal in zip(request["paths"], _quoted(request["paths"], "'"), strict=True):
        query = f"SELECT {names} FROM file({literal}, Parquet)"
        settings = " SETTINGS output_format_arrow_string_as_string = 0, max_threads = 1, use_hive_partitioning = 0"
        table = pa.ipc.open_stream(chdb.query(query + settings, "ArrowStream").bytes()).read_all()
        stored = parquet.read_schema(path)
        fields = [field.with_type(_with_strings(field.type, stored.field(field.name).type)) for field in table.schema]
        tables.append(table.cast(pa.schema(fields)))
    return pa.concat_tables(tables)


def _with_strings(kind: Any, stored: Any) -> Any:
    """Return the type of a column of ClickHouse, whose strings are bytes, with strings where the file has strings."""
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind) and types.is_struct(stored):
        return pa.struct([field.with_type(_with_strings(field.type, stored.field(field.name).type)) for field in kind])
    if types.is_list(kind) and types.is_list(stored):
        return pa.list_(kind.value_field.with_type(_with_strings(kind.value_type, stored.value_type)))
    return stored if types.is_binary(kind) and types.is_string(stored) else kind


def _with_daft(daft: Any, request: dict[str, Any]) -> Any:
    if request["kind"] == "parquet":
        frame = daft.read_parquet(request["paths"])
    elif request["kind"] == "delta":
        frame = daft.read_deltalake(request["paths"][0])
    else:
        frame = daft.read_iceberg(request["paths"][0])
    return frame.select(*request["columns"]).to_arrow()


_SHOWN_CHARACTERS = 240
_ALL = ("parquet", "delta", "iceberg")
ENGINES = {
    "pyarrow": Engine("pyarrow.parquet", "pyarrow", ("parquet",), lambda parquet, request: _concatenated(
        parquet.ParquetFile(path).read(columns=request["columns"]) for path in request["paths"]
    )),
    "delta-rs": Engine("deltalake", "deltalake", ("delta",), lambda deltalake, request: (
        deltalake.DeltaTable(request["paths"][0]).to_pyarrow_table(columns=request["columns"])
    )),
    "pyiceberg": Engine("pyiceberg.table", "pyiceberg", ("iceberg",), lambda table, request: (
        table.StaticTable.from_metadata(request["paths"][0]).scan(selected_fields=tuple(request["columns"])).to_arrow()
    )),
    "duckdb": Engine("duckdb", "duckdb", _ALL, _with_duckdb),
    "polars": Engine("polars", "polars", _ALL, _with_polars),
    "spark": Engine("pyspark.jars", "pyspark", ("parquet",), _with_spark),
    "datafusion": Engine("datafusion", "datafusion", ("parquet",), _with_datafusion),
    "chdb": Engine("chdb", "chdb", ("parquet",), _with_chdb),
    "sail": Engine("pysail.spark", "pysail", _ALL, _with_sail),
    "daft": Engine("daft", "daft", _ALL, _with_daft),
    "vortex": Engine("vortex", "vortex-data", ("vortex",), lambda vortex, request: _concatenated(
        vortex.open(path).to_arrow(request["columns"]).read_all() for path in request["paths"]
    )),
}  # fmt: skip


def _quoted(names: list[str], quote: str) -> list[str]:
    return [quote + name.replace(quote, 2 * quote) + quote for name in names]


def _short(error: BaseException) -> str:
    # The last cause of an error of the JVM says what is wrong.
    text = " ".join(str(error).rpartition("Caused by: ")[2].split()) or type(error).__name__
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def _version(engine: str) -> str | None:
    """Return the version of an engine; None if it is not installed."""
    module, package, *_ = ENGINES[engine]
    try:
        return None if importlib.util.find_spec(module) is None else importlib.metadata.version(package)
    except ImportError:
        return None


def main() -> None:
    """Read the columns and print the result."""
    request = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what engines print does not mix with the answer
    answer: dict[str, Any] = {"version": _version(request["engine"])}
    if answer["version"] is not None and request["paths"]:
        try:
            start = time.perf_counter()
            engine = ENGINES[request["engine"]]
            table = engine.read(importlib.import_module(engine.module), request)
            types = request.get("types") or {field.name: str(field.type) for field in table.schema}
            answer |= {"seconds": request.get("seconds", time.perf_counter() - start), "types": types}
            import pyarrow as pa

            with pa.OSFile(request["out"], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        except MissingExtensionError as error:
            answer["missing"] = str(error)
        except BaseException as error:  # also panics of Rust libraries
            answer["error"] = f"{type(error).__name__}: {_short(error)}"
    print(json.dumps(answer, default=str), file=answers, flush=True)
    with suppress(Exception):
        answers.close()
    os._exit(0)  # servers and JVMs of engines do not delay the answer


if __name__ == "__main__":
    main()
