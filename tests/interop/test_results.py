"""Every tabular result has the same methods: to_arrow, to_polars, to_pandas and to_pylist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.arrays.chunked_array import ChunkedVariantArray

pytest.importorskip("polars", reason="polars is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")
_ROWS = [{"id": 1, "o": {"a": [1]}}, {"id": 2, "o": None}]


def _scans(folder: Path) -> dict[str, Any]:
    rows = pv.from_python(_ROWS)
    pv.write(folder / "a.parquet", rows, schema="id bigint")
    pv.write(folder / "d", {"v": rows}, format="delta")
    pv.write(folder / "i", {"v": rows}, format="iceberg")
    columns = {"id": "$.id:bigint", "o": "$.o"}
    return {
        "parquet": pv.open(folder / "a.parquet").scan(columns),
        "delta": pv.open(folder / "d").scan(columns),
        "iceberg": pv.open(folder / "i").scan(columns),
    }


def test_results_have_one_set_of_methods(tmp_path: Path) -> None:
    for name, scan in _scans(tmp_path).items():
        assert scan.to_arrow().to_pylist() == [row for part in scan.batches() for row in part.to_pylist()], name
        assert scan.to_pylist() == _ROWS
        assert scan.to_pandas().dtypes.astype(str).to_dict() == {"id": "int64", "o": "variant"}
        frame = scan.to_polars()
        assert frame["id"].to_list() == [1, 2]
        assert frame["o"].variant.to_json().to_list() == ['{"a":[1]}', "null"]
    rows = pv.from_python(_ROWS)
    for view in (pv.open(rows).typed(), pv.sql("SELECT v:id AS id FROM t", t=rows)):
        assert view.to_arrow()["id"].to_pylist() == view.to_polars()["id"].to_list() == [1, 2]
        assert view.to_pandas()["id"].tolist() == [row["id"] for row in view.to_pylist()]
    for array in (rows, ChunkedVariantArray([rows])):
        assert pv.VariantArray.from_arrow(array.to_arrow()) == rows
        assert array.to_pylist() == _ROWS
        assert len(array.to_polars("v")) == len(array.to_pandas("v")) == 2


def test_variants_inside_lists_and_structs_are_objects_in_pandas(tmp_path: Path) -> None:
    variants = pv.from_python([{"a": 1}, [2], None])
    rows = {"v": variants, "s": pa.StructArray.from_arrays([pa.array(variants)], ["x"]), "i": [1, 2, 3]}
    pv.write(tmp_path / "n.parquet", rows)
    scan = pv.open(tmp_path / "n.parquet").scan(["i", "s"])
    assert scan.to_pandas().to_dict("list") == {"i": [1, 2, 3], "s": [row["s"] for row in scan.to_pylist()]}
    assert scan.to_pylist()[0]["s"] == {"x": {"a": 1}}


def test_variants_of_a_query_are_stored_as_variants(tmp_path: Path) -> None:
    rows = pv.from_python([{"k": n, "a": {"b": n}} for n in range(3)])
    result = pv.sql("SELECT v:k::int AS k, v:a AS a, [v:a] AS l FROM t", t=rows)
    assert result.to_arrow()["a"].to_pylist()[1] == '{"b":1}'  # for people, Variants are JSON
    expected = [{"k": n, "a": {"b": n}, "l": [{"b": n}]} for n in range(3)]
    for format in ("parquet", "delta", "iceberg"):
        path = tmp_path / format
        pv.write(path, result, format=format)
        assert pv.open(path).scan(["k", "a", "l"]).to_pylist() == expected, format
        if format != "parquet":
            pv.open(path).append(pv.sql("SELECT v:k::int + 3 AS k, v:a AS a, [v:a] AS l FROM t", t=rows))
            merged = pv.open(path).merge(pv.sql("SELECT 0::int AS k, v:k AS a, [v:a] AS l FROM t LIMIT 1", t=rows), "k")
            assert merged.when_matched_update_all().execute().rows_updated == 1
            assert pv.open(path).scan({"a": "$"}, "k = 0", column="a").to_pylist() == [{"a": 0}], format
    total = pv.sql("SELECT sum(a:b::int) AS b FROM r", r=result)
    assert total.to_pylist() == [{"b": 3}]
