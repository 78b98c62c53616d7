"""A report says what is in the files: typed and residual shares by path, bytes, layouts."""

from __future__ import annotations

import json

import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError


def test_shares_and_bytes_by_path(tmp_path):
    rows = [{"a": 1, "b": [1, "x"]}, {"a": "n/a"}, {"c": 1}, 5]
    array = pv.VariantArray.from_pylist(rows)
    pv.write(tmp_path / "a.parquet", array, schema="a bigint, b array<int>")
    pv.write(tmp_path / "b.parquet", array, schema="a string")
    pv.write(tmp_path / "c.parquet", array, annotation=False)
    report = pv.open(tmp_path).inspect()
    assert (report.files, report.rows, report.row_groups) == (3, 12, 3)
    assert report.bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    (column,) = report.columns
    assert (column.layouts, column.annotated) == ({"final": 2, "unshredded": 1}, 2)
    paths = {path.path: path for path in column.paths}
    assert list(paths) == ["$", "$['a']", "$['b']", "$['b'][*]"]
    assert paths["$['a']"].types == {"bigint": 1, "string": 1}
    assert (paths["$['a']"].typed, paths["$['a']"].residual, paths["$['a']"].entries) == (2, 2, 8)
    assert (paths["$['b'][*]"].typed, paths["$['b'][*]"].residual) == (1, 1)
    assert paths["$"].types == {"object": 2, "variant": 1}
    assert paths["$"].residual == 2 + 3 + 4
    assert json.loads(json.dumps(report.to_dict()))["columns"][0]["paths"][1]["typed_share"] == 0.25
    (line,) = [line for line in str(report).splitlines() if line.startswith("$.a ")]
    assert line.split()[1:8] == ["bigint", "or", "string", "8", "25.0%", "25.0%", "50.0%"]


@pytest.mark.parametrize("layout", ["draft-paths", "draft-object"])
def test_drafts_are_inspected_too(layout, tmp_path):
    array = pv.VariantArray.from_pylist([{"a": 1, "b": [{"c": 1}]}, {"a": "x", "d": 2}])
    pv.write(tmp_path / "a.parquet", array, schema="a bigint, b array<struct<c: int>>", layout=layout)
    (column,) = pv.open(tmp_path).inspect().columns
    paths = {path.path: path for path in column.paths}
    assert column.layouts == {layout: 1}
    assert (paths["$['a']"].typed, paths["$['a']"].residual) == (1, 1)
    assert paths["$['b'][*]['c']"].typed == 1


def test_a_column_that_is_not_there(tmp_path):
    pv.write(tmp_path / "a.parquet", pv.VariantArray.from_pylist([1]))
    with pytest.raises(VariantFileError, match="no Variant column w"):
        pv.open(tmp_path).inspect(column="w")
