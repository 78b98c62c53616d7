"""Iceberg tables of plain columns compared with PyIceberg: planning many files, appending rows, scanning one column.

Usage: ``python -m benchmarks.works.iceberg_tables [FILES …]`` (10,000 and 100,000 files to plan by default).
Each contender runs in a process of its own. The planned tables have manifests only, as 10 commits leave them; both
contenders plan and scan the same tables, and each appends to one of its own.
"""

from __future__ import annotations

import json
import statistics
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import parquet_variant as pv
from benchmarks.data import scratch
from parquet_variant.tables.iceberg.metadata.manifests import DataFile
from parquet_variant.tables.iceberg.reading.snapshot import snapshot
from parquet_variant.tables.iceberg.writing.commit import SnapshotChange, commit_snapshot

_COMMITS = 10
_ROWS = 100
_APPENDED = 1_000_000
_PEAK = r"""
import re, sys, time, json
def peak():
    return int(re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1]) / 1024
def timed(work):
    start, cpu = time.perf_counter(), time.process_time()
    return work(), [time.perf_counter() - start, time.process_time() - cpu]
def metadata_of(path):
    number = open(path + "/metadata/version-hint.text").read()
    return f"{path}/metadata/v{number}.metadata.json"
"""
_OURS = """
import parquet_variant as pv
pv.IcebergTable.scan, pv.IcebergTable.append, pv.IcebergTable.to_arrow
"""
_PYICEBERG = """
import pyarrow
from pyiceberg.table import StaticTable
from pyiceberg.catalog.sql import SqlCatalog
"""
_PLAN = {
    "parquet-variant": _OURS
    + """
middle = int(sys.argv[2]) // 2 * 100
query = lambda: pv.open(sys.argv[1]).scan({"id": "id"}, f"id >= {middle} and id < {middle + 1000}")
found = {"start": peak()}
planned, found["time"] = timed(lambda: sum(len(task.files) for task in query().tasks()))
""",
    "PyIceberg": _PYICEBERG
    + """
middle = int(sys.argv[2]) // 2 * 100
found = {"start": peak()}
def plan():
    table = StaticTable.from_metadata(metadata_of(sys.argv[1]))
    return len(list(table.scan(row_filter=f"id >= {middle} and id < {middle + 1000}").plan_files()))
planned, found["time"] = timed(plan)
""",
}
_DATA = """
import numpy as np, pyarrow as pa
numbers = np.arange(int(sys.argv[2]))
texts = pa.array(numbers % 9973).cast(pa.string())
rows = pa.table({"id": numbers, "d": numbers / 7, "k": numbers % 1000, "s": texts})
"""
_APPEND = {
    "parquet-variant": _DATA
    + _OURS
    + """
pv.write(sys.argv[1] + "/ours", rows.slice(0, 10), format="iceberg")
found = {"start": peak()}
_, found["time"] = timed(lambda: pv.open(sys.argv[1] + "/ours").append(rows))
planned = 0
""",
    "PyIceberg": _DATA
    + _PYICEBERG
    + """
catalog = SqlCatalog("c", uri=f"sqlite:///{sys.argv[1]}/c.db", warehouse=f"file://{sys.argv[1]}/wh")
catalog.create_namespace("db")
table = catalog.create_table("db.t", schema=rows.schema)
table.append(rows.slice(0, 10))
found = {"start": peak()}
_, found["time"] = timed(lambda: table.append(rows))
planned = 0
""",
}
_SCAN = {
    "parquet-variant": _OURS
    + """
found = {"start": peak()}
column, found["time"] = timed(lambda: pv.open(sys.argv[1]).to_arrow(["d"]))
planned = len(column)
""",
    "PyIceberg": _PYICEBERG
    + """
found = {"start": peak()}
read = lambda: StaticTable.from_metadata(metadata_of(sys.argv[1])).scan(selected_fields=("d",)).to_arrow()
column, found["time"] = timed(read)
planned = len(column)
""",
}
_END = """
print(json.dumps(found | {"peak": peak(), "found": planned}))
"""


def table(rounds: int = 3, counts: tuple[int, ...] = (10_000, 100_000)) -> str:
    """The results as Markdown: medians of interleaved rounds."""
    lines = [
        "### Iceberg: plain columns compared with PyIceberg",
        "",
        "| work | who | s (CPU s) | peak MB: at start | at the end |",
        "|---|---|---|---|---|",
    ]
    for count in counts:
        lines += _compared(f"plan {count:,} files", _PLAN, partial(_arguments, planned_table(count), count), rounds, 10)
    lines += _compared("append 1,000,000 rows", _APPEND, lambda: (str(scratch()), str(_APPENDED)), rounds, 0)
    scanned = scratch() / "t"
    numbers = pa.array(range(_APPENDED), pa.int64())
    pv.write(
        scanned, {"id": numbers, "d": numbers.cast(pa.float64()), "s": numbers.cast(pa.string())}, format="iceberg"
    )
    lines += _compared("scan one column of 1,000,000 rows", _SCAN, lambda: (str(scanned), "0"), rounds, _APPENDED)
    return "\n".join(lines) + "\n"


def _compared(work: str, scripts: dict[str, str], arguments: Any, rounds: int, expected: int) -> list[str]:
    runs: dict[str, list[dict[str, Any]]] = {who: [] for who in scripts}
    for _ in range(rounds):
        for who, script in scripts.items():
            command = [sys.executable, "-c", _PEAK + script + _END, *arguments()]
            run = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            assert run["found"] == expected, (who, run)
            runs[who].append(run)
    lines = []
    for who, results in runs.items():
        wall, cpu = (statistics.median(run["time"][at] for run in results) for at in (0, 1))
        start, end = (statistics.median(run[name] for run in results) for name in ("start", "peak"))
        lines.append(f"| {work} | {who} | {wall:.2f} ({cpu:.2f}) | {start:.0f} | {end:.0f} |")
    return lines


def _arguments(path: Path, count: int) -> tuple[str, str]:
    return str(path), str(count)


def planned_table(count: int) -> Path:
    """Return a table of many files that do not exist, with metrics of four columns, as 10 commits leave it."""
    path = scratch() / str(count)
    columns = {"id": pa.array([0], pa.int64()), "d": [0.0], "k": pa.array([0], pa.int64()), "s": ["x"]}
    pv.write(path, columns, format="iceberg")
    pv.open(path).delete()
    for commit in range(_COMMITS):
        base = snapshot(path)
        numbers = range(commit * count // _COMMITS, (commit + 1) * count // _COMMITS)
        commit_snapshot(
            base, SnapshotChange("append", added=tuple(_file(base.table.data_location(), n) for n in numbers))
        )
    return path


def _file(location: str, number: int) -> DataFile:
    low, high = number * _ROWS, number * _ROWS + _ROWS - 1
    texts = [f"{value:012}".encode() for value in (low, high)]
    bounds = [
        {1: struct.pack("<q", value), 2: struct.pack("<d", value), 3: struct.pack("<q", value), 4: text}
        for value, text in zip((low, high), texts, strict=True)
    ]
    counts = dict.fromkeys(range(1, 5), _ROWS)
    return DataFile(
        f"{location}/{number:08}-0000-0000-0000.parquet", "parquet", _ROWS, 10_000, column_sizes=counts,
        value_counts=counts, null_value_counts=dict.fromkeys(counts, 0), lower_bounds=bounds[0],
        upper_bounds=bounds[1],
    )  # fmt: skip


if __name__ == "__main__":
    chosen = tuple(int(word) for word in sys.argv[1:])
    print(table(counts=chosen or (10_000, 100_000)))
