"""Deletes from files whose other rows are not written again: rows, statistics, change data, and what is copied."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv

BATCHES, ROWS = 8, 1100
COUNT = BATCHES * ROWS
DAY = datetime.datetime(2026, 1, 1)


def batch(numbers: list[int]) -> pa.Table:
    """Rows with a column that fills a page with each batch, next to small ones of many types."""
    rows = [json.dumps({"id": n, "s": {"t": f"t{n % 3}", "x": n / 7}, "odd": [n] if n % 2 else "x"}) for n in numbers]
    variants = pv.parse_json(pa.array([None if n % 13 == 0 else r for n, r in zip(numbers, rows, strict=True)]))
    structs = [None if n % 10 == 0 else {"a": n, "b": f"é{n}" * 9} for n in numbers]
    return pa.table({
        "k": pa.array(numbers, pa.int64()),
        "note": [np.random.default_rng(n).bytes(1000).hex() for n in numbers],
        "s": pa.array(structs, pa.struct([("a", pa.int32()), ("b", pa.string())])),
        "l": pa.array([None if n % 4 == 0 else [n] * (n % 3) for n in numbers], pa.list_(pa.int64())),
        "d": pa.array([None if n % 5 == 0 else Decimal(n) / 100 for n in numbers], pa.decimal128(20, 2)),
        "at": [DAY + datetime.timedelta(seconds=n) for n in numbers],
        "v": variants,
    })  # fmt: skip


def batches(numbers: list[int]) -> Iterator[pa.Table]:
    for start in range(0, COUNT, ROWS):
        part = [n for n in numbers if start <= n < start + ROWS]
        if part:
            yield batch(part)


def write(table: Path, numbers: list[int], **properties: Any) -> None:
    properties = {"delta.enableVariantShredding": True, **properties}
    pv.write(
        table,
        batches(numbers),
        format="delta",
        schema="id bigint, s struct<t: string, x: double>",
        properties=properties,
    )


def stats(table: Path) -> dict[str, Any]:
    (row,) = pv.open(table).snapshot.files.to_pylist()
    found: dict[str, Any] = json.loads(row["stats"])
    return found


def data_file(table: Path) -> Path:
    (path,) = pv.open(table).snapshot.files["path"].to_pylist()
    return table / path


def note_pages(path: Path) -> bytes:
    chunk = pq.read_metadata(path).row_group(0).column(1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return path.read_bytes()[start : start + chunk.total_compressed_size]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("made") / "t"
    write(table, [*range(COUNT)], **{"delta.enableChangeDataFeed": True})
    return table


@pytest.fixture
def table(made: Path, tmp_path: Path) -> Path:
    for path in made.rglob("*"):
        if path.is_file():
            copy = tmp_path / "t" / path.relative_to(made)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return tmp_path / "t"


@pytest.mark.parametrize(
    "where, gone",
    [
        ("k >= 1500 and k < 1600", range(1500, 1600)),
        ("v:id::bigint < 30 and k % 2 = 1", [n for n in range(1, 30, 2) if n % 13]),
        (f"k >= {COUNT - 5}", range(COUNT - 5, COUNT)),
        ("k < 1105", range(1105)),
    ],
)
def test_rows_that_go_leave_the_others_and_the_statistics_of_a_file_written_whole(
    table: Path, tmp_path: Path, where: str, gone: Any
) -> None:
    pages = note_pages(data_file(table))
    result = pv.open(table).delete(where)
    kept = [n for n in range(COUNT) if n not in set(gone)]
    assert (result.rows_deleted, result.rows_copied, result.files_added) == (len(gone), len(kept), 1)
    found = pv.open(table).to_arrow()
    expected = pa.concat_tables(batches(kept))
    plain = [name for name in expected.column_names if name != "v"]
    assert found.select(plain).to_pylist() == expected.select(plain).to_pylist()
    variants = pv.VariantArray.from_arrow(expected, column="v").to_pylist()
    assert pv.VariantArray.from_arrow(found, column="v").to_pylist() == variants
    new = note_pages(data_file(table))
    # Of the first page or the last no row goes.
    assert pages[-1_000_000:] in new or pages[4_000_000:5_000_000] in new
    assert pv.open(data_file(table)).validate().ok
    write(tmp_path / "whole", kept)
    assert stats(table) == stats(tmp_path / "whole")
    changes = pv.open(table).changes(1)
    assert sorted(changes["k"].to_pylist()) == sorted(gone)
    assert set(changes["_change_type"].to_pylist()) == {"delete"}


def test_a_merge_that_only_deletes_copies_pages_too(table: Path) -> None:
    pages = note_pages(data_file(table))
    pv.open(table).merge({"k": [5, 7, COUNT + 1]}, "target.k = source.k").when_matched_delete().execute()
    assert pv.open(table).to_arrow(["k"])["k"].to_pylist() == [n for n in range(COUNT) if n not in (5, 7)]
    assert pages[-100_000:] in note_pages(data_file(table))


def test_bounds_of_variants_that_are_not_shredded_are_kept_tight(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(
        table,
        batches([*range(COUNT)]),
        format="delta",
        schema="variant",
        properties={"delta.enableVariantShredding": True},
    )
    pv.open(table).delete("k < 20")
    assert len(pv.open(table).to_arrow()) == COUNT - 20
    asked = {"id": "$.id:long"}
    assert pv.open(table).scan(asked, "id < 20").explain().files_pruned == 1


def test_a_damaged_page_is_an_error_and_changes_nothing(table: Path) -> None:
    path = data_file(table)
    chunk = pq.read_metadata(path).row_group(0).column(1)
    damaged = bytearray(path.read_bytes())
    damaged[chunk.data_page_offset : chunk.data_page_offset + 1000] = bytes(1000)
    path.write_bytes(damaged)
    with pytest.raises(pv.VariantError):
        pv.open(table).delete("k = 3")
    assert len(list(table.glob("*.parquet"))) == 1
    assert pv.open(table).snapshot.version == 0
