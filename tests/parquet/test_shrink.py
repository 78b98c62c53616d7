"""Files without some of their rows: what readers see, what was copied, and what statistics and indexes say."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.files.parquet.format.footer import footer_bytes
from parquet_variant.files.parquet.format.thrift import STRUCT, ThriftError, read_value
from parquet_variant.files.parquet.pages.stored_chunks import StoredFile, rows_of_pages
from parquet_variant.files.parquet.writing.patch import plan_shrink
from random_tables import CODECS, tables, write_in_batches


def written(path: Path, table: pa.Table, step: int, group: int, **options: Any) -> None:
    """Write a file whose batches have some rows each, as its row groups have."""
    with path.open("wb") as sink:
        write_in_batches(sink, table, step, group, {"key": "value"}, **options)


def shrunk(path: Path, kept: Any) -> Path | None:
    """The file without some rows, by its name."""
    new = path.with_suffix(".new")
    with pa.OSFile(str(path)) as source:
        plan = plan_shrink(source, kept)
        if plan is None:
            return None
        try:
            info = plan.write(new)
        except ThriftError as error:
            assert "NaN" in str(error)
            return None
    assert (info.rows, info.bytes) == (int(kept.sum()), new.stat().st_size)
    return new


def by_duckdb(path: Path) -> list[Any]:
    # As texts: DuckDB has instants for which Python has no value.
    found: list[Any] = duckdb.sql(f"SELECT COLUMNS(*)::VARCHAR FROM read_parquet('{path}')").fetchall()
    return found


@given(table=tables(), data=st.data())
def test_a_shrunk_file_has_the_rows_that_stay_for_every_reader(
    tmp_path_factory: Any, table: pa.Table, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("shrink")
    path, reference = folder / "old.parquet", folder / "reference.parquet"
    options = {
        "page_bytes": data.draw(st.sampled_from([1, 30, 2 << 20])),
        "compression": data.draw(st.sampled_from(CODECS)),
        "use_dictionary": data.draw(st.booleans()),
    }
    written(path, table, data.draw(st.integers(1, 9)), data.draw(st.integers(5, 30)), **options)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table))), dtype=bool)
    new = shrunk(path, kept) if kept.any() else None
    if new is None:
        return
    rows = pq.ParquetFile(path).read().filter(pa.array(kept))
    assert repr(pq.ParquetFile(new).read().to_pylist()) == repr(rows.to_pylist())
    written(reference, rows, 1000, 1000, **options)
    assert by_duckdb(new) == by_duckdb(reference)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), dtype=bool)
    with pa.OSFile(str(new)) as source:
        found = rows_of_pages(source, table.column_names, chosen)
    if found is not None and found.schema.equals(rows.schema):
        assert repr(found.to_pylist()) == repr(rows.filter(pa.array(chosen)).to_pylist())
    statistics_hold(new, reference)


def statistics_hold(new: Path, reference: Path) -> None:
    """Counts of nulls and bounds are those of a file that was written as a whole; bounds of texts may be wider."""
    one, two = pq.read_metadata(new), pq.read_metadata(reference).row_group(0)
    groups = [one.row_group(number) for number in range(one.num_row_groups)]
    for number in range(one.num_columns):
        chunks, expected = [group.column(number) for group in groups], two.column(number)
        assert sum(chunk.num_values for chunk in chunks) == expected.num_values
        known = [chunk.statistics for chunk in chunks]
        assert sum(item.null_count for item in known) == expected.statistics.null_count
        # Long bounds of a chunk are left out.
        there = [each for each, chunk in zip(known, chunks, strict=True) if each.null_count < chunk.num_values]
        if not expected.statistics.has_min_max or not all(item.has_min_max for item in there):
            continue
        if expected.physical_type == "BYTE_ARRAY":
            assert min(raw(item.min_raw) for item in there) <= raw(expected.statistics.min_raw)
            assert max(raw(item.max_raw) for item in there) >= raw(expected.statistics.max_raw)
        elif len(groups) == 1:
            assert repr(known[0].min_raw) == repr(expected.statistics.min_raw)
            assert repr(known[0].max_raw) == repr(expected.statistics.max_raw)


def raw(bound: Any) -> bytes:
    return bound.encode() if isinstance(bound, str) else bytes(bound)


def many(count: int) -> pa.Table:
    chance = np.random.default_rng(0)
    return pa.table({
        "n": range(count),
        "f": pa.array(chance.random(count), mask=chance.random(count) < 0.1),
        "t": [None if n % 11 == 0 else f"{n:06}" + "é" * (n % 60) for n in range(count)],
        "k": [f"k{n % 7}" for n in range(count)],
        "l": pa.array([None if n % 9 == 0 else [n] * (n % 4) for n in range(count)], pa.list_(pa.int32())),
    })  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
def test_pages_that_lose_no_row_are_copied_and_their_bounds_hold(tmp_path: Path, codec: str) -> None:
    table, path = many(6000), tmp_path / "old.parquet"
    written(path, table, 50, 3500, page_bytes=1500, use_dictionary=["k"], compression=codec, bloom_filters=["t"])
    kept = np.ones(6000, dtype=bool)
    kept[1203:1300] = False
    kept[3000:3100:7] = False
    new = shrunk(path, kept)
    assert new is not None
    assert pq.read_table(new).equals(table.filter(pa.array(kept)))
    before, after = pages_of(path), pages_of(new)
    for leaf in before:
        copied = set(before[leaf]) & set(after[leaf])
        assert len(copied) > 0.5 * len(set(before[leaf]))
    statistics_hold_by_page(new)


def pages_of(path: Path) -> dict[str, list[bytes]]:
    """The bytes of each data page, by column."""
    data, pages = path.read_bytes(), {}
    stored = StoredFile(pa.BufferReader(data))
    for group in range(len(stored.row_groups)):
        for known in stored.chunks(group, stored.schema.leaves()):
            pages.setdefault(known.leaf.dotted, []).extend(data[p.start : p.start + p.size] for p in known.pages)
    return pages


def statistics_hold_by_page(path: Path) -> None:
    """DuckDB and pyarrow look at bounds: a filter on each value finds its row."""
    whole = pq.read_table(path)
    for n in range(0, len(whole), 97):
        row = whole.slice(n, 1).to_pylist()[0]
        found = duckdb.sql(f"SELECT t FROM read_parquet('{path}') WHERE n = {row['n']}").fetchall()
        assert found == [(row["t"],)]
        if row["t"] is not None:
            found = duckdb.sql(f"SELECT n FROM read_parquet('{path}') WHERE t = '{row['t']}'").fetchall()
            assert found == [(row["n"],)]


def is_exact(path: Path) -> dict[str, bool]:
    """Whether the bounds of the columns of the first row group are said to be exact."""
    footer, _ = read_value(footer_bytes(io.BytesIO(path.read_bytes())), 0, STRUCT)
    message = [chunk[3] for chunk in footer[4][0][1]]
    return {b".".join(item[3]).decode(): item[12][7] and item[12][8] for item in message}


def test_bounds_of_a_chunk_that_may_have_lost_its_extremes_are_not_said_to_be_exact(tmp_path: Path) -> None:
    table, path = many(3000), tmp_path / "old.parquet"
    written(path, table, 50, 3000, page_bytes=1500, use_dictionary=False)
    before = pq.read_metadata(path).row_group(0)
    kept = np.arange(3000) < 2900
    new = shrunk(path, kept)
    assert new is not None
    after = pq.read_metadata(new).row_group(0)
    assert is_exact(path) == {"n": True, "f": True, "t": True, "k": True, "l.list.element": True}
    assert is_exact(new) == {"n": True, "f": True, "t": False, "k": False, "l.list.element": True}
    assert after.column(0).statistics.max == 2899
    assert before.column(2).statistics.max > after.column(2).statistics.max >= table["t"][2899].as_py()


def test_row_groups_that_lose_all_rows_are_left_out_and_others_copied(tmp_path: Path) -> None:
    table, path = many(3000), tmp_path / "old.parquet"
    written(path, table, 100, 1000)
    new = shrunk(path, np.arange(3000) >= 1000)
    assert new is not None
    assert [pq.read_metadata(new).row_group(n).num_rows for n in range(2)] == [1000, 1000]
    assert pages_of(new)["t"] == pages_of(path)["t"][-len(pages_of(new)["t"]) :]


def test_a_shredded_variant_stays_valid(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    texts = [chance.bytes(300).hex() for _ in range(20_000)]
    rows = [json.dumps({"a": n, "t": text, "x": [n, {"y": n % 5}]}) for n, text in enumerate(texts)]
    path = tmp_path / "old.parquet"
    schema = pv.ShreddingSchema.from_ddl("struct<a bigint, t string, x array<struct<y int>>>")
    with pv.VariantWriter(path) as writer:
        for start in range(0, 20_000, 1000):
            writer.write_batch({"v": pv.shred_variant(pv.parse_json(rows[start : start + 1000]), schema)})
    kept = np.ones(20_000, dtype=bool)
    kept[700:720] = False
    new = shrunk(path, kept)
    assert new is not None
    assert pv.open(new).validate().ok
    found = pv.open(new).read("v").to_pylist()
    assert found == [json.loads(row) for row, stays in zip(rows, kept, strict=True) if stays]


def test_files_of_others_and_files_that_lose_rows_everywhere_are_left_to_be_written_whole(tmp_path: Path) -> None:
    table, path = many(3000), tmp_path / "old.parquet"
    written(path, table, 3000, 3000, use_dictionary=False)
    assert shrunk(path, np.arange(3000) % 500 != 0) is None
    pq.write_table(table, path, write_page_index=True)
    assert shrunk(path, np.arange(3000) != 0) is None
