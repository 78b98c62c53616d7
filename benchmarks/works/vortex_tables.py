"""Vortex files next to Parquet files of the same rows: bytes, writing, one and three paths, whole rows.

Usage: ``python -m benchmarks.works.vortex_tables [ROUNDS]`` (3 by default: about three minutes). Rounds are
interleaved, times are medians; a file is asked once before it is timed. Writing a Vortex file includes reading it back
and comparing all values. "vortex-data" is that library alone: its Variant type, its `variant_get`, nothing compared.
"asked by polars" is its `to_polars` over the typed columns of our file: values that are not typed it does not see.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import parquet_variant as pv
from benchmarks.data import DataSet, data_sets, scratch
from benchmarks.files import schema_of
from parquet_variant.files.parquet.format.footer_cache import SETTLED_NS

Columns = dict[str, tuple[str, str]]


@dataclass(frozen=True)
class _Way:
    """A way to write the rows, to ask for paths, and to read all."""

    write: Callable[[str], Any]
    ask: Callable[[str, Columns], pa.Table]
    read: Callable[[str], Any]


def table(rounds: int = 3) -> str:
    """The results as Markdown."""
    lines = [
        "### Vortex files next to Parquet files",
        "",
        "| data | file | MB | write s | 1 path ms | 3 paths ms | all rows ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for data in data_sets():
        lines.extend(_rows(data, rounds))
    return "\n".join(lines) + "\n"


def _ways(data: DataSet) -> dict[str, _Way]:
    plain = pv.parse_json(data.lines, dictionary="batch")
    shredded = pv.shred_variant(plain, schema_of(data))

    def parquet(array: Any) -> _Way:
        return _Way(
            lambda path: pv.write(path, array, mode="overwrite"),
            lambda path, asked: pv.open(path).scan(asked).to_arrow(),
            (lambda path: pv.open(path).read()),
        )

    def vortex(array: Any, **options: Any) -> _Way:
        return _Way(
            lambda path: pv.write(path, array, format="vortex", mode="overwrite", **options),
            lambda path, asked: pv.open(path).scan(asked).to_arrow(),
            (lambda path: pv.open(path).read()),
        )

    return {
        "Parquet, shredded": parquet(shredded),
        "Parquet, unshredded": parquet(plain),
        "Vortex, struct": vortex(shredded, layout="struct"),
        "Vortex, struct, not compact": vortex(shredded, layout="struct", compact=False),
        "Vortex, Variant type": vortex(plain),
        "Vortex, Variant type, typed as far as it goes": vortex(shredded),
        "Vortex, struct, asked by polars": _Way(
            lambda path: pv.write(path, shredded, format="vortex", layout="struct", mode="overwrite"),
            _ask_polars,
            _read_polars,
        ),
        "vortex-data, Variant type": _Way(lambda path: _write_alone(path, plain), _ask_alone, _read_alone),
    }


def _rows(data: DataSet, rounds: int) -> list[str]:
    ways = _ways(data)
    paths = {name: str(scratch() / f"{data.name}-{number}") for number, name in enumerate(ways)}
    asked = [{f"c{i}": pair for i, pair in enumerate(data.paths[:count])} for count in (1, 3)]
    times: dict[str, list[list[float]]] = {name: [[], [], [], []] for name in ways}

    def timed(step: Callable[[], Any], spent: list[float]) -> None:
        begun = time.perf_counter()
        step()
        spent.append(time.perf_counter() - begun)

    for _ in range(rounds):
        for name, way in ways.items():
            timed(partial(way.write, paths[name]), times[name][0])
    time.sleep(SETTLED_NS / 1e9)  # what is known of a file is kept from then on, of Parquet files and of Vortex files
    wanted = ways["Parquet, shredded"].ask(paths["Parquet, shredded"], asked[1]).to_pylist()
    for name, way in ways.items():
        assert way.ask(paths[name], asked[1]).to_pylist() == wanted, name
        way.ask(paths[name], asked[0])
    for _ in range(rounds):
        for name, way in ways.items():
            timed(partial(way.ask, paths[name], asked[0]), times[name][1])
            timed(partial(way.ask, paths[name], asked[1]), times[name][2])
            timed(partial(way.read, paths[name]), times[name][3])
    lines = []
    for name, path in paths.items():
        write, one, three, whole = (statistics.median(spent) for spent in times[name])
        size = Path(path).stat().st_size / 1e6
        lines.append(
            f"| {data.name} | {name} | {size:.2f} | {write:.2f} | {one * 1e3:.0f} | {three * 1e3:.0f} "
            f"| {whole * 1e3:.0f} |"
        )
    return lines


# -- vortex-data alone


def _write_alone(path: str, array: Any) -> None:
    import vortex

    Path(path).unlink(missing_ok=True)
    vortex.io.VortexWriteOptions.compact().write(pv.vortex.variant_table({"v": array}, plain=True), path)


def _ask_alone(path: str, asked: Columns) -> pa.Table:
    import vortex.expr

    import vortex

    kinds = {"string": vortex.utf8(nullable=True), "bigint": vortex.int_(64, nullable=True)}
    expr = vortex.expr
    pieces = {
        name: expr.variant_get(expr.column("v"), place.removeprefix("$.").split("."), kinds[kind])
        for name, (place, kind) in asked.items()
    }
    return vortex.open(path).to_arrow(projection=expr.pack(pieces), batch_size=8192).read_all()


def _read_alone(path: str) -> pa.Table:
    import vortex

    return vortex.open(path).to_arrow(batch_size=8192).read_all()


# -- polars, over the file that vortex-data opens for it


def _ask_polars(path: str, asked: Columns) -> pa.Table:
    import polars as pl

    import vortex

    pieces = {}
    for name, (place, _) in asked.items():
        found = pl.col("v")
        for each in place.removeprefix("$.").split("."):
            found = found.struct.field("typed_value").struct.field(each)
        pieces[name] = found.struct.field("typed_value")
    return vortex.open(path).to_polars().select(**pieces).collect().to_arrow()


def _read_polars(path: str) -> Any:
    import vortex

    return vortex.open(path).to_polars().collect()


if __name__ == "__main__":
    print(table(*map(int, sys.argv[1:])))
