"""Delete, update and merge of 1 % of the rows of a Delta table: CPU and wall time, and those of delta-rs.

Usage: ``python -m benchmarks.works.delta_changes [MB]`` (1000 by default). The rows that change are
scattered over all files, which is the worst case, or in a range of ids, so that statistics leave one file. Ours are in
a Variant, shredded; with and without deletion vectors, which delta-rs cannot write. Each contender runs in a process of
its own with as many threads as there are cores, on a copy of its own, changes a small table before what is timed, and
other rows each time.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import parquet_variant as pv
from benchmarks.data import scratch

_FILES = 16
_ROW_BYTES = 200
_SMALL_MEGABYTES = 2
_TIMED = """
import json, resource, sys, time
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def timed(name, work):
    start, before = time.perf_counter(), cpu()
    work()
    if path != small:
        print(json.dumps([name, time.perf_counter() - start, cpu() - before]), flush=True)
import numpy as np, pyarrow as pa
def where(kind, id):
    return f"{id} % 100 = {number}" if kind == "scattered" else f"{id} >= {low} AND {id} < {low + rows // 100}"
def keys(kind):
    return np.arange(number + 10, rows, 100) if kind == "scattered" else np.arange(low, low + rows // 100)
small, copy, number, script = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
# What is imported and compiled on first use is so on the small table.
for path, rows in (small, int(sys.argv[5])), (copy, int(sys.argv[6])):
    low = rows // 32 + number * (rows // 100)
    exec(script)
"""
_OURS = """
import parquet_variant as pv
for kind in ("in a range", "scattered"):
    sql = where(kind, "v:id::bigint")
    timed(f"update {kind}", lambda: pv.open(path).update({"v:mag": "v:mag::double + 1"}, sql, threads=None))
    ids = keys(kind)
    source = pa.table({"id": ids, "mag": ids * 0.5})
    merge = pv.open(path).merge(source, "target.v:id::bigint = source.id", threads=None)
    timed(f"merge {kind}", merge.when_matched_update({"v:mag": "source.mag"}).execute)
    timed(f"delete {kind}", lambda: pv.open(path).delete(sql, threads=None))
"""
_PLAIN = _OURS.replace("v:id::bigint", "id").replace("v:mag::double", "mag").replace("v:mag", "mag")
_DELTA_RS = """
from deltalake import DeltaTable
for kind in ("in a range", "scattered"):
    timed(f"update {kind}", lambda: DeltaTable(path).update(updates={"mag": "mag + 1"}, predicate=where(kind, "id")))
    ids = keys(kind)
    source = pa.table({"id": ids, "mag": ids * 0.5})
    merge = DeltaTable(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    timed(f"merge {kind}", merge.when_matched_update({"mag": "s.mag"}).execute)
    timed(f"delete {kind}", lambda: DeltaTable(path).delete(where(kind, "id")))
"""
_CONTENDERS = {
    "Variant": ("variant", _OURS, {}),
    "Variant, deletion vectors": ("variant", _OURS, {"delta.enableDeletionVectors": True}),
    "plain columns": ("plain", _PLAIN, {}),
    "delta-rs, plain columns": ("plain", _DELTA_RS, {}),
}


def table(rounds: int = 3, megabytes: int = 1000) -> str:
    """The results as Markdown: medians of interleaved rounds."""
    runs: dict[str, dict[str, list[tuple[float, float]]]] = {who: {} for who in _CONTENDERS}
    folder = scratch()
    sizes = _SMALL_MEGABYTES, megabytes
    made = {kind: [_table(folder / f"{kind}{size}", kind, size) for size in sizes] for kind in ("variant", "plain")}
    rows = [str(_file_rows(size) * _FILES) for size in sizes]
    for number in range(rounds):
        for who, (kind, script, properties) in _CONTENDERS.items():
            copies = [folder / "small-copy", folder / "copy"]
            for source, copy in zip(made[kind], copies, strict=True):
                shutil.copytree(source, copy)
                if properties:
                    pv.open(copy).set_properties(properties)
            command = [sys.executable, "-c", _TIMED, *map(str, copies), str(number), script, *rows]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            for line in run.stdout.splitlines():
                name, wall, cpu = json.loads(line)
                runs[who].setdefault(name, []).append((wall, cpu))
            for copy in copies:
                shutil.rmtree(copy)
    return _markdown(runs, megabytes)


def _markdown(runs: dict[str, dict[str, list[tuple[float, float]]]], megabytes: int) -> str:
    names = list(next(iter(runs.values())))
    lines = [
        f"### Delta: changing 1 % of the rows of {megabytes} MB in {_FILES} files",
        "",
        "Seconds (CPU seconds); behind them how many times less wall time than delta-rs takes.",
        "",
        "| change | " + " | ".join(runs) + " |",
        "|---" * (len(runs) + 1) + "|",
    ]
    medians = {
        who: {name: [statistics.median(each) for each in zip(*found[name], strict=True)] for name in names}
        for who, found in runs.items()
    }
    for name in names:
        theirs = medians["delta-rs, plain columns"][name][0]
        found = [each[name] for each in medians.values()]
        cells = [f"{wall:.2f} ({cpu:.2f}), {theirs / wall:.1f} ×" for wall, cpu in found]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _file_rows(megabytes: int) -> int:
    return megabytes * 1_000_000 // _ROW_BYTES // _FILES


def _table(path: Path, kind: str, megabytes: int) -> Path:
    """A table of about that many megabytes."""
    for number in range(_FILES):
        columns = _columns(number, _file_rows(megabytes))
        if kind == "variant":
            columns = {"v": pv.cast_to_variant(pa.StructArray.from_arrays(list(columns.values()), list(columns)))}
        pv.write(path, columns, format="delta", mode="append")
    return path


def _columns(number: int, rows: int) -> dict[str, Any]:
    chance = np.random.default_rng(number)
    text = chance.integers(97, 123, (rows, _ROW_BYTES * 8 // 5), dtype=np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int32) * text.shape[1]
    note = pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    return {
        "id": pa.array(np.arange(number * rows, (number + 1) * rows)),
        "mag": pa.array(chance.random(rows)),
        "kind": pa.array([f"k{n % 7}" for n in range(rows)]),
        "note": note,
    }


if __name__ == "__main__":
    print(table(megabytes=int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
