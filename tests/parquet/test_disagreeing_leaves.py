"""Damaged leaves that disagree whether their group is null: a path has the same values whatever else is asked for."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv

PATHS = {"a": "$.a:bigint", "b": "$.b:bigint", "e": "$.l[*]:bigint", "inner": "$.o.x:bigint"}


def _file(path: Path, first: int) -> None:
    """Write eight rows, of which two are objects; all chunks have the same size whichever rows these are."""
    values = [{"a": 1, "b": 2, "l": [1], "o": {"x": 9}} if row in (first, first + 1) else "text" for row in range(8)]
    array = pv.shred_variant(pv.from_python(values), "a bigint, b bigint, l array<bigint>, o struct<x: bigint>")
    table = pa.table({"v": array.storage})
    pq.write_table(table, path, use_dictionary=False, compression="none", write_statistics=False)


@pytest.mark.parametrize("leaf", ["a.value", "a.typed_value", "b.typed_value", "o.typed_value.x.typed_value"])
def test_a_path_does_not_depend_on_the_other_paths(leaf: str, tmp_path: Path) -> None:
    good, other, damaged = (tmp_path / f"{name}.parquet" for name in ("good", "other", "damaged"))
    _file(good, 1)
    _file(other, 4)
    group = pq.read_metadata(good).row_group(0)
    number = next(n for n in range(group.num_columns) if group.column(n).path_in_schema == f"v.typed_value.{leaf}")
    chunks = [pq.read_metadata(path).row_group(0).column(number) for path in (good, other)]
    assert chunks[0].total_compressed_size == chunks[1].total_compressed_size
    data, foreign = bytearray(good.read_bytes()), other.read_bytes()
    start, source, size = chunks[0].data_page_offset, chunks[1].data_page_offset, chunks[0].total_compressed_size
    data[start : start + size] = foreign[source : source + size]
    damaged.write_bytes(data)
    alone = {name: pv.open(damaged).scan({name: path}).to_arrow()[name] for name, path in PATHS.items()}
    for count in (2, 3, 4):
        for names in combinations(PATHS, count):
            together = pv.open(damaged).scan({name: PATHS[name] for name in names}).to_arrow()
            for name in names:
                assert together[name].to_pylist() == alone[name].to_pylist(), (name, names)
    assert pv.open(good).scan(PATHS).to_arrow()["a"].to_pylist() == [None, 1, 1, None, None, None, None, None]
