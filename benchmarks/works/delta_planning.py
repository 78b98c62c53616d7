"""Planning over a synthetic Delta log of many files with variant bounds: time and peak memory, and those of delta-rs.

Usage: ``python -m benchmarks.works.delta_planning [FILES …]`` (100,000 and 1,000,000 by default). Each
contender runs in a process of its own. delta-rs loads the same log but cannot plan by variant paths: it drops their
bounds.
"""

from __future__ import annotations

import json
import statistics
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import parquet_variant as pv
from benchmarks.data import scratch
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.statistics import encode_bounds
from parquet_variant.types.path import VariantPath

_ROWS = 100
_COMMITS = 10
_PATHS = [VariantPath.parse(text) for text in ("$.id", "$.mag", "$.props.name")]
# Ids from here on are all stored as int64, so that every file's bounds have the same bytes at the same places.
_FIRST_ID = 1 << 40
_CHECKED = 100

# Not ru_maxrss: that begins with the peak of the process which started this one.
_PEAK = r"""
import re, sys, time, json
def peak():
    return int(re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1]) / 1024
def timed(work):
    start, cpu = time.perf_counter(), time.process_time()
    return work(), [time.perf_counter() - start, time.process_time() - cpu]
"""
_OURS = """
import parquet_variant as pv
(lambda path, *query, **options: pv.open(path).scan(*query, **options))
found = {"start": peak()}
table, found["load"] = timed(lambda: pv.open(sys.argv[1]).snapshot)
found["load_peak"] = peak()
middle = int(sys.argv[2]) + table.num_files // 2 * 100
query = lambda: pv.open(table).scan({"id": "$.id:long"}, f"id >= {middle} and id < {middle + 1000}").plan.pruned
query()
pruned, found["plan"] = timed(query)
assert len(pruned.files) == 10, len(pruned.files)
print(json.dumps(found | {"plan_peak": peak(), "files": table.num_files}))
"""
_DELTA_RS = """
from deltalake import DeltaTable
found = {"start": peak()}
adds, found["load"] = timed(lambda: DeltaTable(sys.argv[1]).get_add_actions(flatten=True))
print(json.dumps(found | {"load_peak": peak(), "plan": None, "plan_peak": None, "files": adds.num_rows}))
"""


def table(rounds: int = 3, counts: tuple[int, ...] = (100_000, 1_000_000)) -> str:
    """The results as Markdown: medians of interleaved rounds."""
    lines = [
        "### Delta: planning a query by variant path",
        "",
        "| files in the log | who | load: s (CPU s) | plan: s (CPU s) | peak MB: at start | after load | after plan |",
        "|---|---|---|---|---|---|---|",
    ]
    for count in counts:
        log = synthetic_log(count)
        contenders = {"parquet-variant": _OURS, "delta-rs": _DELTA_RS}
        runs: dict[str, list[dict[str, Any]]] = {who: [] for who in contenders}
        for _ in range(rounds):
            for who, script in contenders.items():
                command = [sys.executable, "-c", _PEAK + script, str(log), str(_FIRST_ID)]
                run = subprocess.run(command, capture_output=True, text=True, check=True)
                runs[who].append(json.loads(run.stdout))
                assert runs[who][-1]["files"] == count, runs[who][-1]
        for who, found in runs.items():
            times = " | ".join(_seconds([each[name] for each in found]) for name in ("load", "plan"))
            peaks = " | ".join(
                _megabytes([each[name] for each in found]) for name in ("start", "load_peak", "plan_peak")
            )
            lines.append(f"| {count:,} | {who} | {times} | {peaks} |")
    return "\n".join(lines) + "\n"


def synthetic_log(count: int) -> Path:
    """A log of `count` adds in ten commits; the files themselves are not there."""
    root = scratch() / f"delta-log-{count}"
    if (root / "_delta_log" / "done").exists():
        return root
    if not (root / "_delta_log").exists():
        variant = pv.parse_json(["1"]).arrow_field.with_name("v")
        pv.create(root, pa.schema([pa.field("k", pa.int64()), variant]))
    for commit in range(_COMMITS):
        numbers = range(count * commit // _COMMITS, count * (commit + 1) // _COMMITS)
        with (root / "_delta_log" / f"{commit + 1:020}.json").open("w") as file:
            file.write('{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n')
            file.writelines(_lines(numbers))
    (root / "_delta_log" / "done").touch()
    return root


def _lines(numbers: range) -> list[str]:
    """The add actions of files as log lines: one is spelled out, and the others differ from it at fixed places."""
    form = _line("%s", -111, "%s", -222, "%s").replace("-111", "%d").replace("-222", "%d")
    lows, highs = _all_bounds(numbers, 0), _all_bounds(numbers, 1)
    made = []
    for number, lower, upper in zip(numbers, lows, highs, strict=True):
        low, high = _ids(number)
        made.append(form % (_path(number), low, lower, high, upper))
    for at in range(0, len(numbers), max(1, len(numbers) // _CHECKED)):
        number = numbers[at]
        (low, high), (lower, upper) = _ids(number), (encode_bounds(_bounds(number, side)) for side in (0, 1))
        assert made[at] == _line(_path(number), low, lower, high, upper), number
    return made


def _line(path: str, low: int, lower: str, high: int, upper: str) -> str:
    stats = {
        "numRecords": _ROWS,
        "minValues": {"k": low, "v": lower},
        "maxValues": {"k": high, "v": upper},
        "nullCount": {"k": 0, "v": 0},
    }
    add = {
        "path": path, "partitionValues": {}, "size": 123456, "modificationTime": 1, "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }  # fmt: skip
    return json.dumps({"add": add}, separators=(",", ":")) + "\n"


def _path(number: int) -> str:
    return f"part-{number:08}.zstd.parquet"


def _ids(number: int) -> tuple[int, int]:
    low = _FIRST_ID + number * _ROWS
    return low, low + _ROWS - 1


def _values(number: int, side: int) -> tuple[int, float, str]:
    """The lowest or highest (side 0 or 1) id, magnitude and name in a file."""
    return _ids(number)[side], number / 7 + side, f"name{number:07}{'az'[side]}"


def _bounds(number: int, side: int) -> dict[VariantPath, pv.Variant]:
    return {path: pv.Variant.from_python(v) for path, v in zip(_PATHS, _values(number, side), strict=True)}


def _all_bounds(numbers: range, side: int) -> list[str]:
    """`encode_bounds` of many files: the bytes of the first, with the others' values written over its own."""
    first = z85.decode(encode_bounds(_bounds(numbers[0], side)))
    blobs = np.tile(np.frombuffer(first, dtype=np.uint8), (len(numbers), 1))
    columns = zip(*(_packed(number, side) for number in numbers), strict=True)
    for own, column in zip(_packed(numbers[0], side), columns, strict=True):
        at = first.index(own)
        blobs[:, at : at + len(own)] = _matrix(column, len(own))
    text = z85.encode(blobs.tobytes())
    width = len(text) // len(numbers)
    return [text[start : start + width] for start in range(0, len(text), width)]


def _packed(number: int, side: int) -> tuple[bytes, bytes, bytes]:
    whole, real, text = _values(number, side)
    return struct.pack("<q", whole), struct.pack("<d", real), text.encode()


def _matrix(values: tuple[bytes, ...], width: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(values), dtype=np.uint8).reshape(len(values), width)


def _seconds(pairs: list[list[float] | None]) -> str:
    known = [pair for pair in pairs if pair is not None]
    if not known:
        return "cannot"
    wall, cpu = (statistics.median(side) for side in zip(*known, strict=True))
    return f"{wall:.2f} ({cpu:.2f})"


def _megabytes(peaks: list[float | None]) -> str:
    known = [peak for peak in peaks if peak is not None]
    return f"{statistics.median(known):.0f}" if known else ""


if __name__ == "__main__":
    print(table(counts=tuple(int(text) for text in sys.argv[1:]) or (100_000, 1_000_000)))
