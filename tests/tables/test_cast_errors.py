"""Scans with errors="raise" raise for a value that cannot be cast, in all formats."""

from __future__ import annotations

import pickle

import pytest

import parquet_variant as pv

FORMATS = ["parquet", "delta", "iceberg", "vortex", "json", "memory"]
ROWS = [{"a": 1, "b": "x", "t": "2024-01-01T00:00:00"}, {"a": 2, "b": "7", "t": "2024-01-02T00:00:00"}, {"a": None}]


def _opened(folder, form):
    if form == "memory":
        return pv.open(pv.VariantArray.from_pylist(ROWS))
    path = str(folder / f"rows.{form}")
    if form == "json":
        (folder / "rows.json").write_text("\n".join(pv.to_json(pv.VariantArray.from_pylist(ROWS)).to_pylist()))
    else:
        pv.write(path, {"v": pv.VariantArray.from_pylist(ROWS)}, format=form)
    return pv.open(path)


@pytest.mark.parametrize("form", FORMATS)
def test_a_failed_cast_is_raised_and_others_are_as_without(tmp_path, form):
    table = _opened(tmp_path, form)
    columns = {"a": "$.a:int", "t": "$.t:timestamp", "v": "v"}
    for where in (None, "a > 1", "$.a:int > 1 and $.b:string = '7'", "v:b = '7'"):
        for zone in ("UTC", "America/New_York"):
            scan = table.scan(columns, where, errors="raise", zone=zone)
            assert scan.to_arrow().equals(table.scan(columns, where, zone=zone).to_arrow()), where
            assert all(map(len, scan.batches()))
    for request, condition in (
        (dict(columns, b="$.b:int"), None),
        (columns, "$.b:int > 0"),
        ({"b": "$.b:array<int>"}, None),
    ):
        with pytest.raises(pv.VariantError, match='cannot cast string "x"'):
            table.scan(request, condition, errors="raise").to_arrow()


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_deleted_rows_are_not_cast_and_tasks_raise(tmp_path, form):
    table = _opened(tmp_path, form)
    scan = table.scan({"b": "$.b:int"}, errors="raise")
    with pytest.raises(pv.CastError):
        list(pickle.loads(pickle.dumps(scan)).read(scan.tasks()[0]))
    table.delete("v:a = 1")
    assert table.scan({"b": "$.b:int"}, errors="raise").to_arrow()["b"].to_pylist() == [7, None]
