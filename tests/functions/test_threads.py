"""Threads change nothing but the time: values, errors and their rows are those of one thread."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.ops.columns import arguments

ROWS = 3000
SCHEMA = "a bigint, b struct<c: string>, l array<bigint>"


@pytest.fixture(autouse=True)
def every_column_is_large(monkeypatch):
    monkeypatch.setattr(arguments, "MIN_SLICE_BYTES", 1 << 10)


def text(number):
    if number % 13 == 0:
        return None
    row = {"a": number if number % 5 else f"x{number}", "b": {"c": f"é{number % 7}", f"k{number % 3}": number / 8}}
    return json.dumps(row | ({"l": list(range(number % 4))} if number % 2 else {}))


def texts():
    return pa.chunked_array([[text(n) for n in range(start, start + 1000)] for start in range(0, ROWS, 1000)])


@pytest.mark.parametrize("threads", [2, 3, None])
def test_columns_are_those_of_one_thread(threads):
    plain = pv.parse_json(texts(), threads=1)
    parsed = pv.parse_json(texts(), threads=threads)
    assert parsed.to_pylist() == plain.to_pylist()
    assert parsed.storage.field("value").equals(plain.storage.field("value"))
    assert pv.parse_json(texts(), schema=SCHEMA, threads=threads).equals(pv.shred_variant(plain, SCHEMA, threads=1))
    shredded = pv.shred_variant(plain, SCHEMA, threads=1)
    assert pv.shred_variant(plain, SCHEMA, threads=threads).equals(shredded)
    for layout in ("draft-paths", "draft-object"):
        draft = pv.shred_variant(plain, SCHEMA, layout=layout, threads=threads)
        assert draft.equals(pv.shred_variant(plain, SCHEMA, layout=layout, threads=1))
        assert pv.to_json(draft, threads=threads).equals(pv.to_json(plain, threads=1))
    assert pv.unshred_variant(shredded, threads=threads).equals(pv.unshred_variant(shredded, threads=1))
    assert pv.to_json(shredded[7:], threads=threads).equals(pv.to_json(shredded[7:], threads=1))
    assert pv.infer_shredding_schema(plain, threads=threads) == pv.infer_shredding_schema(plain, threads=1)


def test_errors_name_the_row_of_the_column():
    lines = texts().to_pylist()
    lines[2500], lines[2700] = '{"a": tru}', "["
    for threads in (1, 2, 5):
        with pytest.raises(pv.JsonError) as found:
            pv.parse_json(lines, threads=threads)
        assert (found.value.row, found.value.offset) == (2500, 6)
        good = pv.parse_json(lines, threads=threads, errors="null")
        assert [number for number in range(ROWS) if good[number] is None and lines[number]] == [2500, 2700]
    values = [pv.Variant.from_python({"a": n, "s": "x" * 50}) for n in range(2000)]
    values[1500] = pv.Variant(b"\x11\0\0", b"\x0c")
    damaged = pv.VariantArray.from_variants(values)
    for work in (pv.to_json, lambda array, threads: pv.shred_variant(array, "a bigint", threads=threads)):
        errors = []
        for threads in (1, 4):
            with pytest.raises(pv.VariantError) as found:
                work(damaged, threads=threads)
            errors.append((found.value.row, found.value.reason))
        assert errors == [(1500, errors[0][1])] * 2


def test_no_thread_is_refused():
    for threads in (0, -1, 1.5, True):
        with pytest.raises(pv.VariantError, match="threads is"):
            pv.parse_json(["1"], threads=threads)
        with pytest.raises(pv.VariantError, match="threads is"):
            pv.to_json(pv.parse_json(["1"]), threads=threads)


@pytest.mark.parametrize("threads", [2, None])
def test_files_are_those_of_one_thread(tmp_path, threads):
    table = {"id": pa.array(range(ROWS)), "v": pv.parse_json(texts(), threads=1)}
    pv.write(tmp_path / "a.parquet", table, schema=SCHEMA, row_group_bytes=20_000)
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups > 4
    for options in ({"layout": "unshredded"}, {"schema": "a string"}, {"schema": "infer"}):
        for name, count in (("one", 1), ("more", threads)):
            pv.open(tmp_path / "a.parquet").rewrite(
                tmp_path / f"{name}.parquet", threads=count, mode="overwrite", **options
            )
        assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "more.parquet").read_bytes()


def test_errors_become_null_in_every_slice():
    values = pv.parse_json(texts(), threads=1).to_pylist()
    rows = [None if value is None else pv.Variant.from_python(value) for value in values]
    rows[100] = rows[2500] = pv.Variant(b"\x11\0\0", b"\x0c")
    column = pv.VariantArray.from_variants(rows)
    alone = pv.to_json(column, threads=1, errors="null")
    assert (alone[100].as_py(), alone[101].as_py() is None, alone[2500].as_py()) == (None, False, None)
    assert all(pv.to_json(column, threads=threads, errors="null").equals(alone) for threads in (2, 3, None))
