"""Planning over a synthetic Delta log of many files with variant bounds: time and peak memory, beside delta-rs.

Usage: ``python -m benchmarks.works.delta_planning [FILES …]`` (100,000 and 1,000,000 unless told otherwise). Each
contender runs in a process of its own. delta-rs loads the same log but cannot plan by variant paths: it drops their
bounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import parquet_variant as pv
from benchmarks.data import scratch
from parquet_variant.delta.variant_stats import encode_bounds
from parquet_variant.path import VariantPath

_ROWS = 100
_COMMITS = 10
_PATHS = [VariantPath.parse(text) for text in ("$.id", "$.mag", "$.props.name")]

_OURS = """
import sys, time, json, resource
import parquet_variant as pv
pv.delta.scan
start, cpu = time.perf_counter(), time.process_time()
table = pv.delta.snapshot(sys.argv[1])
loaded = time.perf_counter() - start, time.process_time() - cpu
middle = table.num_files // 2 * 100
query = lambda: pv.delta.scan(table, {"id": "$.id:long"}, f"id >= {middle} and id < {middle + 1000}").pruned
query()
start, cpu = time.perf_counter(), time.process_time()
left = len(query().files)
planned = time.perf_counter() - start, time.process_time() - cpu
assert left == 10, left
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"load": loaded, "plan": planned, "peak": peak, "files": table.num_files}))
"""
_DELTA_RS = """
import sys, time, json, resource
from deltalake import DeltaTable
start, cpu = time.perf_counter(), time.process_time()
files = DeltaTable(sys.argv[1]).get_add_actions(flatten=True).num_rows
loaded = time.perf_counter() - start, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"load": loaded, "plan": None, "peak": peak, "files": files}))
"""


def table(counts: tuple[int, ...] = (100_000, 1_000_000)) -> str:
    """The results as Markdown."""
    lines = [
        "### Delta: planning a query by variant path",
        "",
        "| files in the log | who | load: s (CPU s) | plan: s (CPU s) | peak MB |",
        "|---|---|---|---|---|",
    ]
    for count in counts:
        log = synthetic_log(count)
        for who, script in (("parquet-variant", _OURS), ("delta-rs", _DELTA_RS)):
            run = subprocess.run([sys.executable, "-c", script, str(log)], capture_output=True, text=True, check=True)
            found = json.loads(run.stdout)
            assert found["files"] == count, found
            load, plan = (_seconds(found[name]) for name in ("load", "plan"))
            lines.append(f"| {count:,} | {who} | {load} | {plan} | {found['peak']:.0f} |")
    return "\n".join(lines) + "\n"


def synthetic_log(count: int) -> Path:
    """A log of `count` adds in ten commits; the files themselves are not there."""
    root = scratch() / f"delta-log-{count}"
    if (root / "_delta_log" / "done").exists():
        return root
    if not (root / "_delta_log").exists():
        variant = pv.parse_json(["1"]).arrow_field.with_name("v")
        pv.delta.create(root, pa.schema([pa.field("k", pa.int64()), variant]))
    for commit in range(_COMMITS):
        with (root / "_delta_log" / f"{commit + 1:020}.json").open("w") as file:
            file.write('{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n')
            for number in range(count * commit // _COMMITS, count * (commit + 1) // _COMMITS):
                file.write(json.dumps({"add": _add(number)}, separators=(",", ":")) + "\n")
    (root / "_delta_log" / "done").touch()
    return root


def _add(number: int) -> dict[str, Any]:
    low, high = number * _ROWS, number * _ROWS + _ROWS - 1
    stats = {
        "numRecords": _ROWS,
        "minValues": {"k": low, "v": _bounds(low, number / 7, f"name{number:07}a")},
        "maxValues": {"k": high, "v": _bounds(high, number / 7 + 1, f"name{number:07}z")},
        "nullCount": {"k": 0, "v": 0},
    }
    return {
        "path": f"part-{number:08}.zstd.parquet", "partitionValues": {}, "size": 123456, "modificationTime": 1,
        "dataChange": True, "stats": json.dumps(stats, separators=(",", ":")),
    }  # fmt: skip


def _bounds(*values: Any) -> str:
    return encode_bounds({path: pv.Variant.from_python(v) for path, v in zip(_PATHS, values, strict=True)})


def _seconds(pair: list[float] | None) -> str:
    return "cannot" if pair is None else f"{pair[0]:.2f} ({pair[1]:.2f})"


if __name__ == "__main__":
    print(table(tuple(int(text) for text in sys.argv[1:]) or (100_000, 1_000_000)))
