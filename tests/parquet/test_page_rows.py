"""Rows read out of the pages that hold them are the rows that a reader of the whole file filters."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.files.parquet.pages.stored_chunks import rows_of_pages
from random_tables import CODECS, tables, write_in_batches


def written(table: pa.Table, step: int, group: int, **options: Any) -> bytes:
    """A file whose batches have some rows each, as its row groups have."""
    sink = io.BytesIO()
    write_in_batches(sink, table, step, group, **options)
    return sink.getvalue()


@given(table=tables(), data=st.data())
def test_rows_of_pages_are_those_of_a_reader_that_filters(table: pa.Table, data: st.DataObject) -> None:
    file = written(
        table,
        data.draw(st.integers(1, 9)),
        data.draw(st.integers(5, 30)),
        page_bytes=data.draw(st.sampled_from([1, 30, 2 << 20])),
        compression=data.draw(st.sampled_from(CODECS)),
        use_dictionary=data.draw(st.booleans()),
    )
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table))), dtype=bool)
    whole = pq.ParquetFile(io.BytesIO(file)).read()
    names = data.draw(st.lists(st.sampled_from(table.column_names), min_size=1, unique=True))
    rows = rows_of_pages(pa.BufferReader(file), names, chosen)
    # A map whose keys and values came from different pages is not put together.
    if rows is not None and rows.schema.types == [whole.schema.field(n).type for n in table.column_names if n in names]:
        expected = whole.select([name for name in table.column_names if name in names]).filter(pa.array(chosen))
        assert rows.schema.equals(expected.schema)
        assert repr(rows.to_pylist()) == repr(expected.to_pylist())
        rows.validate(full=True)


def test_columns_whose_pages_end_at_different_rows_are_put_together() -> None:
    count = 400
    items = [None if n % 7 == 0 else [{"i": n, "t": "x" * (n % 50)}] * (n % 4) for n in range(count)]
    pairs = [None if n % 5 == 0 else {"a": n, "b": {"c": "y" * (n % 90), "d": None}} for n in range(count)]
    kind = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string()), ("d", pa.float64())]))])
    table = pa.table({
        "l": pa.array(items, pa.list_(pa.struct([("i", pa.int64()), ("t", pa.string())]))), "s": pa.array(pairs, kind)
    })  # fmt: skip
    file = written(table, 3, 250, page_bytes=300, use_dictionary=False)
    chosen = np.zeros(count, dtype=bool)
    chosen[[3, 120, 121, 330]] = True
    rows = rows_of_pages(pa.BufferReader(file), table.column_names, chosen)
    assert rows is not None
    assert rows.to_pylist() == table.filter(pa.array(chosen)).to_pylist()


def test_only_the_pages_of_the_rows_are_read() -> None:
    table = pa.table({"n": np.random.default_rng(0).random(5000)})
    file = written(table, 100, 5000, page_bytes=800, use_dictionary=False)
    chosen = np.zeros(5000, dtype=bool)
    chosen[2040] = True
    damaged = bytearray(file)
    damaged[100:4000] = bytes(3900)  # pages of other rows
    rows = rows_of_pages(pa.BufferReader(damaged), ["n"], chosen)
    assert rows is not None
    assert rows.to_pylist() == table.slice(2040, 1).to_pylist()


@pytest.mark.parametrize("most", [50, 5000])
def test_most_rows_of_a_file_and_files_without_indexes_are_left_to_pyarrow(most: int) -> None:
    table = pa.table({"n": range(5000)})
    chosen = np.arange(5000) < most
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_index=most == 5000)
    assert rows_of_pages(pa.BufferReader(sink.getvalue()), ["n"], chosen) is None


def test_an_update_by_deletion_vectors_reads_the_pages_of_the_rows_that_change(tmp_path: Path) -> None:
    rows = [f'{{"n": {n}, "t": "{n * 7919 % 10007:05}{"abcdefgh"[n % 8] * (n % 30)}"}}' for n in range(30_000)]
    array = pv.shred_variant(pv.parse_json(rows), pv.ShreddingSchema.from_ddl("struct<n bigint, t string>"))
    pv.write(tmp_path, {"v": array}, format="delta", properties={"delta.enableDeletionVectors": "true"})
    result = pv.open(tmp_path).update({"v:t": "'new'"}, "v:n::bigint >= 17 and v:n::bigint < 20")
    assert (result.rows_updated, result.files_added) == (3, 2)
    found = {value["n"]: value["t"] for value in pv.open(tmp_path).read().to_pylist()}
    assert len(found) == 30_000
    assert [found[n] for n in (16, 17, 18, 19)] == [json.loads(rows[16])["t"], "new", "new", "new"]
