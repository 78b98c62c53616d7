"""Shredded arrays to a Parquet file, one thread: our pages and those of pyarrow, as DuckDB reads them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import parquet_variant as pv
from benchmarks.data import data_sets, scratch
from benchmarks.files import schema_of
from benchmarks.harness import OURS, Work
from benchmarks.peers import duckdb


def works() -> Iterator[Work]:
    for data in data_sets():
        array = pv.parse_json(data.lines, schema=schema_of(data), dictionary="batch")

        def written(array: pv.VariantArray, name: str, writer: str) -> str:
            path = str(scratch() / f"{name}-{writer}.parquet")
            pv.write(path, array, writer=writer, mode="overwrite")
            return path

        contenders = {
            OURS: partial(written, array, data.name, "native"),
            "pyarrow's writer": partial(written, array, data.name, "pyarrow"),
        }
        name = f"write: shredded arrays → Parquet file, encodings tried, 1 thread, {data.name}"
        yield Work(name, contenders, {"pyarrow's writer": 1.2}, _check, data.size)


def _check(who: str, ours: str, theirs: str) -> str:
    found, wanted = (
        duckdb(1).execute(f"SELECT md5(string_agg(v::JSON::VARCHAR, '')) FROM read_parquet('{path}')").fetchall()
        for path in (ours, theirs)
    )
    assert found == wanted, (ours, theirs)
    sizes = Path(ours).stat().st_size, Path(theirs).stat().st_size
    return f"{who}: DuckDB reads the same values; {sizes[0]:,} bytes, {sizes[1]:,} theirs."
