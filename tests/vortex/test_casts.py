"""`cast=True` of the RFC's expression: the casts of `variant_get`, in both layouts; without it exact types."""

from __future__ import annotations

import itertools
from importlib import import_module

import pyarrow as pa
import pytest

import parquet_variant as pv

ROWS = ['{"t": 1.5}', '{"t": 2}', '{"t": "3.5"}', '{"t": true}', '{"t": null}', "{}", '{"t": [1]}', '{"t": 1e1}']
TYPES = ["double", "bigint", "string", "boolean", "decimal(9,2)", "variant"]


@pytest.fixture(params=["unshredded", "final"])
def encoded(request):
    return pv.shred_variant(pv.parse_json(ROWS), "t double", layout=request.param)


@pytest.mark.parametrize("dtype", TYPES[:-1])
def test_casts_are_those_of_variant_get(encoded, dtype):
    expected = pv.variant_get(pv.parse_json(ROWS), "$.t", dtype, errors="null").to_pylist()
    assert pv.get_variant_element(encoded, "$.t", dtype, cast=True).to_pylist() == expected
    scalars = [pv.get_variant_scalar(encoded, row, "$.t", dtype, cast=True) for row in range(len(ROWS))]
    assert [scalar.as_py() for scalar in scalars] == expected


def test_without_casts_json_fractions_are_not_doubles(encoded):
    assert pv.get_variant_element(encoded, "$.t", "double").to_pylist() == [None] * 7 + [10.0]
    assert pv.get_variant_scalar(encoded, 0, "$.t", "double").state == "other-type"
    assert pv.get_variant_scalar(encoded, 0, "$.t", "double", cast=True).state == "value"


def test_matching_rows_compare_cast_values(encoded):
    statistics = pv.vortex.collect_statistics(pv.parse_json(ROWS), range_rows=2)
    for options in ({}, {"statistics": statistics}):
        assert pv.vortex.matching_rows(encoded, "$.t", "double", ">", 1.9, cast=True, **options).to_pylist() == [
            1,
            2,
            7,
        ]
        assert pv.vortex.matching_rows(encoded, "$.t", "double", ">", 1.9, **options).to_pylist() == [7]


def test_casts_use_the_zone():
    array = pv.parse_json(['{"t": "2026-07-01 00:00:00"}'])
    utc = pv.get_variant_element(array, "$.t", "timestamp", cast=True)
    berlin = pv.get_variant_element(array, "$.t", "timestamp", cast=True, zone="Europe/Berlin")
    assert (utc[0].value - berlin[0].value) == 2 * 3600 * 1_000_000


def test_structs_and_lists_as_requested_types(tmp_path):
    """Every layout returns nested types as the arrays do, and so does Vortex's own `variant_get`."""
    texts = ['{"a":{"x":1,"y":"s"},"l":[1,2]}', '{"a":{"x":"no"},"l":[{"k":1}]}', '{"a":[1],"l":"z"}', None, "3"]
    array = pv.parse_json([*texts, '{"a":null}', '{"a":{"x":1.5,"z":2}}', "null"])
    schema = "a struct<x: bigint, y: string>, l array<bigint>"
    asked = [("$.a", "struct<x: bigint, y: string>"), ("$.l", "array<bigint>"), ("$", "struct<a: struct<x: string>>")]
    for layout in ("variant", "struct"):
        file = tmp_path / f"{layout}.vortex"
        pv.write(file, array, format="vortex", schema=schema, layout=layout)
        for (path, kind), cast in itertools.product(asked, (False, True)):
            expected = pv.get_variant_element(array, path, kind, cast=cast)
            encoded = pv.open(file).read()
            assert pv.get_variant_element(encoded, path, kind, cast=cast).equals(expected)
            assert pv.open(file).scan({"o": (path, kind)}, cast=cast).to_arrow()["o"].combine_chunks().equals(expected)
    vortex, expr = import_module("vortex"), import_module("vortex.expr")
    kind = vortex.DType.from_arrow(pa.struct([("x", pa.int64()), ("y", pa.string())]))
    whole = expr.pack({"o": expr.variant_get(expr.column("v"), ["a"], kind)})
    theirs = vortex.open(str(tmp_path / "variant.vortex")).to_arrow(whole).read_all()["o"].to_pylist()
    assert theirs == pv.get_variant_element(array, *asked[0], cast=True).to_pylist()
