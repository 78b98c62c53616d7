"""What inference makes of each data set: file size, and the bytes that its ten most frequent paths need.

Usage: ``python -m benchmarks.works.inference [FILE.ndjson ...]`` (all data sets, shared and made up, by default).

Each contender writes one file of the same rows with zstd and what it infers by itself. A path needs its typed column,
and a residual column that holds anything and could hold it: its own, or, where it is not shredded, that of the nearest
shredded path above. A residual column needs the dictionaries too.

DuckDB writes in a process of its own, with 3 GB and 180 s: that it needs more is a result too.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow.parquet as pq

import parquet_variant as pv
from benchmarks.data import ROOT, DataSet, data_sets, scratch
from benchmarks.harness import OURS
from benchmarks.heterogeneous import HETEROGENEOUS
from benchmarks.peers import duckdb, spark
from parquet_variant.inference.profile import Profile
from parquet_variant.types.path import VariantPath

_TOP = 10
_DUCKDB_MEMORY, _DUCKDB_SECONDS = "3GB", 180


def table(sets: list[DataSet] | None = None) -> str:
    """The results as Markdown; goal: nothing larger than a peer's."""
    lines = [
        "### inference: file size and bytes of the ten most frequent paths",
        "",
        "| data | contender | file | ten paths | typed cells | our file ÷ | our paths ÷ | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for data in inference_sets() if sets is None else sets:
        found = _rows(data)
        print("\n".join(found), file=sys.stderr, flush=True)
        lines.extend(found)
    return "\n".join([*lines, ""])


def inference_sets() -> list[DataSet]:
    """The shared data sets, earthquakes among them, and the made-up ones."""
    quakes = ROOT / "examples" / "usgs_earthquakes.ndjson"
    made = [_data_set(name, make()) for name, make in HETEROGENEOUS.items()]
    return [*data_sets(), _data_set("usgs_earthquakes", quakes.read_bytes()), *made]


def _data_set(name: str, text: bytes) -> DataSet:
    file = scratch() / f"{name}.ndjson"
    file.write_bytes(text)
    return DataSet(name, text, file, [])


def _rows(data: DataSet) -> list[str]:
    paths = top_paths(data)
    contenders: dict[str, Callable[[DataSet], list[Path]]] = {OURS: _ours, "Spark": _spark, "DuckDB": _duckdb}
    lines, ours = [], (0, 0)
    for name, write in contenders.items():
        try:
            files = write(data)
        except Exception as error:  # what stops a peer is part of the result
            reason = error if isinstance(error, _PeerError) else type(error).__name__
            lines.append(f"| {data.name} | {name} | {reason} | | | | | |")
            continue
        size = sum(file.stat().st_size for file in files)
        needed = sum(path_bytes(file, paths) for file in files)
        cells = sum(typed_cells(file) for file in files)
        ratios = "| | |"
        if name == OURS:
            ours = size, needed
        else:
            met = "met" if ours[0] <= size and ours[1] <= needed else "missed"
            ratios = f"{ours[0] / size:.2f} | {ours[1] / needed:.2f} | {met} |"
        lines.append(f"| {data.name} | {name} | {size:,} | {needed:,} | {cells:,} | {ratios}")
    return lines


def top_paths(data: DataSet) -> list[VariantPath]:
    """The leaf paths that most rows have; of equals those with most values, then by name."""
    profile = Profile.of_array(pv.parse_json(data.lines, dictionary="batch"))
    leaves = [found for found in profile if found.count > sum(map(found.kind_count, (0, 21, 22)))]
    leaves.sort(key=lambda found: (-found.rows, -found.count, str(found.path)))
    return [found.path for found in leaves[:_TOP]]


def path_bytes(file: Path, paths: list[VariantPath], column: str = "v") -> int:
    """Compressed bytes of the columns that the paths need, each column once."""
    metadata = pq.ParquetFile(file).metadata
    sizes: dict[str, int] = {}
    filled: dict[str, bool] = {}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for at in range(group.num_columns):
            chunk = group.column(at)
            name = chunk.path_in_schema
            sizes[name] = sizes.get(name, 0) + chunk.total_compressed_size
            bounds = chunk.statistics
            empty = bounds is not None and bounds.has_null_count and bounds.null_count == chunk.num_values
            filled[name] = filled.get(name, False) or not empty
    needed: set[str] = set()
    for path in paths:
        needed |= _columns(column, path, set(sizes), filled)
    if any(name.endswith(".value") for name in needed):
        needed.add(f"{column}.metadata")
    return sum(sizes[name] for name in needed)


def _columns(place: str, path: VariantPath, names: set[str], filled: dict[str, bool]) -> set[str]:
    for segment in path.segments:
        below = f"{place}.typed_value.{segment}" if isinstance(segment, str) else f"{place}.typed_value.list.element"
        if not any(name.startswith(f"{below}.") for name in names):
            return {f"{place}.value"} if filled.get(f"{place}.value") else set()
        place = below
    typed = f"{place}.typed_value"
    columns = {name for name in names if name == typed or name.startswith(f"{typed}.")}
    return columns | ({f"{place}.value"} if filled.get(f"{place}.value") else set())


def typed_cells(file: Path) -> int:
    """Values in typed leaf columns."""
    metadata = pq.ParquetFile(file).metadata
    total = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for at in range(group.num_columns):
            chunk = group.column(at)
            if chunk.path_in_schema.endswith(".typed_value") and chunk.statistics is not None:
                total += chunk.num_values - (chunk.statistics.null_count or 0)
    return total


def _ours(data: DataSet) -> list[Path]:
    path = scratch() / f"{data.name}-inferred.parquet"
    array = pv.parse_json(data.lines, dictionary="batch")
    pv.write(str(path), pv.shred_variant(array, pv.infer_shredding_schema(array)), mode="overwrite")
    return [path]


def _spark(data: DataSet) -> list[Path]:
    out = scratch() / f"{data.name}-spark"
    frame = spark().read.text(str(data.file)).selectExpr("parse_json(value) AS v").coalesce(1)
    frame.write.mode("overwrite").parquet(str(out))
    return list(out.glob("*.parquet"))


def _duckdb(data: DataSet) -> list[Path]:
    out = scratch() / f"{data.name}-duckdb.parquet"
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    writer = context.Process(target=_duckdb_writes, args=(str(data.file), str(out), sender))
    writer.start()
    sender.close()
    try:
        if not receiver.poll(_DUCKDB_SECONDS):
            raise _PeerError(f"over {_DUCKDB_SECONDS} s")
        error = receiver.recv()
    except EOFError:
        raise _PeerError("killed") from None
    finally:
        writer.kill()
        writer.join()
    if error is not None:
        raise _PeerError(error)
    return [out]


class _PeerError(Exception):
    """Why a peer wrote no file, in the words for the table."""


def _duckdb_writes(source: str, out: str, sender: Connection) -> None:
    connection = duckdb(2)
    connection.execute(f"SET memory_limit = '{_DUCKDB_MEMORY}'; SET max_temp_directory_size = '0GB'")
    connection.execute("SET variant_minimum_shredding_size = 0; SET preserve_insertion_order = true")
    read = f"read_csv('{source}', columns={{'j': 'VARCHAR'}}, delim='\\x01', quote='', escape='', header=false, "
    read += "max_line_size=20000000, auto_detect=false)"
    try:
        connection.execute(
            f"COPY (SELECT j::JSON::VARIANT AS v FROM {read}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)"
        )
    except Exception as error:  # what stops a peer is part of the result
        short = str(error).splitlines()[0][:60]
        sender.send(f"out of memory ({_DUCKDB_MEMORY})" if "Memory" in type(error).__name__ else short)
    else:
        sender.send(None)


if __name__ == "__main__":
    given = [_data_set(Path(name).stem, Path(name).read_bytes()) for name in sys.argv[1:]]
    print(table(given or None))
