"""Vortex files beside Parquet files of the same rows: bytes, writing, one and three paths, whole rows.

Usage: ``python -m benchmarks.works.vortex_tables [ROUNDS]`` (5 unless told otherwise). Rounds are interleaved, times
are medians. Writing a Vortex file includes reading it back and comparing all values.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import parquet_variant as pv
from benchmarks.data import DataSet, data_sets, scratch
from benchmarks.files import schema_of


def table(rounds: int = 5) -> str:
    """The results as Markdown."""
    lines = [
        "### Vortex files beside Parquet files",
        "",
        "| data | file | MB | write s | 1 path ms | 3 paths ms | all rows ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for data in data_sets():
        lines.extend(_rows(data, rounds))
    return "\n".join(lines) + "\n"


def _rows(data: DataSet, rounds: int) -> list[str]:
    plain = pv.parse_json(data.lines, dictionary="batch")
    shredded = pv.shred_variant(plain, schema_of(data))
    writers: dict[str, Callable[[str], Any]] = {
        "Parquet, shredded": lambda path: pv.parquet.write(path, shredded, mode="overwrite"),
        "Parquet, unshredded": lambda path: pv.parquet.write(path, plain, mode="overwrite"),
        "Vortex, struct of typed columns": lambda path: pv.vortex.write(path, shredded, mode="overwrite"),
        "Vortex, Variant type": lambda path: pv.vortex.write(path, plain, mode="overwrite"),
        "Vortex, struct, not compact": lambda path: pv.vortex.write(path, shredded, compact=False, mode="overwrite"),
    }
    paths = {name: str(scratch() / f"{data.name}-{number}") for number, name in enumerate(writers)}
    asked = [{f"c{i}": pair for i, pair in enumerate(data.paths[:count])} for count in (1, 3)]
    times: dict[str, list[list[float]]] = {name: [[], [], [], []] for name in writers}
    for _ in range(rounds):
        for name, write in writers.items():
            layer = pv.parquet if name.startswith("Parquet") else pv.vortex
            path = paths[name]
            steps: list[Callable[[], Any]] = [
                lambda write=write, path=path: write(path),
                *(lambda layer=layer, path=path, each=each: layer.scan(path, each).to_table() for each in asked),
                lambda layer=layer, path=path: layer.read(path),
            ]
            for step, spent in zip(steps, times[name], strict=True):
                begun = time.perf_counter()
                step()
                spent.append(time.perf_counter() - begun)
    wanted = pv.parquet.scan(paths["Parquet, shredded"], asked[1]).to_table()
    for name, path in paths.items():
        layer = pv.parquet if name.startswith("Parquet") else pv.vortex
        assert layer.scan(path, asked[1]).to_table().equals(wanted), name
    lines = []
    for name, path in paths.items():
        write, one, three, whole = (statistics.median(spent) for spent in times[name])
        size = Path(path).stat().st_size / 1e6
        lines.append(
            f"| {data.name} | {name} | {size:.2f} | {write:.2f} | {one * 1e3:.0f} | {three * 1e3:.0f} "
            f"| {whole * 1e3:.0f} |"
        )
    return lines


if __name__ == "__main__":
    print(table(*map(int, sys.argv[1:])))
