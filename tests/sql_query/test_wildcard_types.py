"""The type of a path with wildcards means the same in Python, scans, polars and SQL."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import parquet_variant as pv

DOCUMENTS = [
    '{"t":[{"n":1,"l":["a"]},{"n":2,"l":["b","c"]}]}',
    '{"t":5}',
    '{"t":[]}',
    "{}",
    None,
    '{"t":[{"m":1},{"n":"x"},7,null]}',
]
NUMBERS = [[1, 2], None, [], None, None, [None] * 4]
LISTS = [[["a"], ["b", "c"]], None, [], None, None, [None] * 4]
CASES = [
    ("$.t[*].n", "array<bigint>", NUMBERS),
    ("$.t[*].n", "bigint", NUMBERS),
    ("$.t[*].n", pa.list_(pa.int64()), NUMBERS),
    ("$.t[*].l", "array<array<string>>", LISTS),
    ("$.t[*].l[*]", "array<array<string>>", LISTS),
    ("$.t[*].l[*]", "string", LISTS),
    ("$.t[*].l[0]", "array<string>", [["a", "b"], None, [], None, None, [None] * 4]),
]
SCHEMAS = [None, "t array<struct<n: bigint, l: array<string>>>", "t array<struct<n: string>>", "t bigint"]


def columns(schema: str | None) -> pv.VariantArray:
    array = pv.parse_json(DOCUMENTS)
    return array if schema is None else pv.shred_variant(array, schema)


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize(("path", "type_name", "expected"), CASES)
def test_one_meaning(path: str, type_name: Any, expected: list[Any], schema: str | None, tmp_path: Any) -> None:
    array = columns(schema)
    result = pv.variant_get(array, path, type_name, errors="null")
    assert result.to_pylist() == expected
    assert [
        None if value is None else pv.variant_get(value, path, type_name, errors="null") for value in array
    ] == expected
    frame = pl.DataFrame({"v": array.to_polars("v")})
    series = frame.select(pl.col("v").variant.get(path, type_name, errors="null"))["v"]
    assert series.to_list() == expected
    pv.write(tmp_path / "a.parquet", array)
    scanned = pv.open(tmp_path / "a.parquet").scan({"x": (path, type_name)}).to_arrow()["x"]
    assert scanned.to_pylist() == expected
    assert scanned.type == result.type or isinstance(type_name, pa.DataType)
    if isinstance(type_name, str) and type_name.startswith("array"):
        query = f"SELECT try_variant_get(v, '{path}', '{type_name}') AS x FROM t"
        assert [row["x"] for row in pv.sql(query, t=tmp_path / "a.parquet").to_pylist()] == expected


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_result_has_exactly_the_list_type_that_was_asked_for(schema: str | None) -> None:
    for list_type in (pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.field("element", pa.int64()))):
        result = pv.variant_get(columns(schema), "$.t[*].n", list_type, errors="null")
        assert result.type == list_type
        assert result.to_pylist() == NUMBERS


def test_a_type_with_fewer_array_levels_than_wildcards_is_refused() -> None:
    for call in (pv.variant_get, partial(pv.variant_get, errors="null"), pv.get_variant_element):
        with pytest.raises(pv.CastError) as refused:
            call(columns(None), "$.t[*].l[*]", "array<string>")
        assert refused.value.reason == "bad-type"


def test_strict_elements_take_the_type_of_the_result() -> None:
    array = columns("t array<struct<n: bigint, l: array<string>>>")
    assert pv.get_variant_element(array, "$.t[*].n", "array<bigint>").to_pylist() == NUMBERS
    assert pv.get_variant_element(array, "$.t[*].n", "array<bigint>").to_pylist() == NUMBERS


def test_conditions_of_dml_mean_the_same(tmp_path: Any) -> None:
    pv.write(tmp_path / "t", {"v": pv.parse_json(DOCUMENTS)}, format="delta")
    pv.open(tmp_path / "t").delete("len(v:t[*].l::array<array<string>>) = 2")
    assert len(pv.open(tmp_path / "t").read()) == 5
