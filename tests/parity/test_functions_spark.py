"""Spark 4.3 as the oracle of the functions that change and explode values."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import parquet_variant as pv

pytestmark = pytest.mark.spark

VALUES = [
    "null", "5", '"x"', "true", "1.50", "[]", "{}", "[1]", "[null]", "[1,[2,{}],null]", '{"a":1}', '{"a":null}',
    '{"a":[1,2]}', '{"a":{"b":{"c":[0]}}}', '{"b":1,"a":[{"b":null},[null,3]],"":{"x":null}}', '[[[]],{"a":[[1]]}]',
    '{"k":"' + "x" * 300 + '","a":{}}', "[" + ",".join(map(str, range(300))) + "]", '{"é":1,"z":2,"a":{"é":[]}}',
]  # fmt: skip
PATHS = ["$.a", "$[0]", "$[1]", "$[3]", "$.a.b", "$.a[0]", "$.a[1].b", "$.a.b.c[2]", "$[0][0]", "$[1].a[0]", "$['']"]
PATHS += ["$['é']", "$.b.b", "$[2][1].x", "$.zz"]
PUT = ["7", "null", '{"q":[1,null]}', '[{"a":2}]', '"long ' + "y" * 80 + '"']


def _table(spark: Any) -> list[tuple[str, str, str]]:
    rows = [
        (value, path, PUT[(i + j) % len(PUT)])
        for (i, value), (j, path) in itertools.product(enumerate(VALUES), enumerate(PATHS))
    ]
    frame = spark.createDataFrame(
        [(number, *row) for number, row in enumerate(rows)], "i int, v string, p string, x string"
    )
    frame.createOrReplaceTempView("edits")
    return rows


def _theirs(spark: Any, expression: str) -> list[str | None]:
    query = f"select i, to_json({expression}) j from (select i, parse_json(v) v, p, parse_json(x) x from edits)"
    return [row.j for row in sorted(spark.sql(query).collect())]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("try_variant_insert", ()),
        ("try_variant_set", ()),
        ("try_variant_set", (False,)),
        ("try_variant_array_append", ()),
        ("variant_delete", None),
    ],
)
def test_changes_at_paths(spark: Any, function: str, arguments: tuple[Any, ...] | None) -> None:
    rows = _table(spark)
    more = "" if arguments is None else ", x" + "".join(f", {str(argument).lower()}" for argument in arguments)
    theirs = _theirs(spark, f"{function}(v, p{more})")
    for path in PATHS:
        chosen = [number for number, row in enumerate(rows) if row[1] == path]
        array = pv.parse_json([rows[number][0] for number in chosen])
        put = () if arguments is None else (pv.parse_json([rows[number][2] for number in chosen]), *arguments)
        errors = "null" if function.startswith("try_") else "raise"
        change = getattr(pv, function.removeprefix("try_"))
        ours = pv.to_json(change(array, path, *put, errors=errors)).to_pylist()
        assert ours == [theirs[number] for number in chosen], path
    assert any(found is not None for found in theirs)


def test_the_error_is_raised_where_spark_raises(spark: Any) -> None:
    for value, path in [('{"a":1}', "$.a"), ('{"a":1}', "$.a.b"), ("[1]", "$.a"), ('{"a":null}', "$.a.b")]:
        with pytest.raises(Exception, match=r"VARIANT_(DUPLICATE_KEY|PATH_TYPE_MISMATCH)"):
            spark.sql(f"select variant_insert(parse_json('{value}'), '{path}', 1)").collect()
        with pytest.raises(pv.PathError):
            pv.variant_insert(pv.parse_json(value), path, 1)


def test_deleting_at_several_paths(spark: Any) -> None:
    _table(spark)
    theirs = _theirs(spark, "variant_delete(v, '$[0]', null, '$.a', '$[0]', '$.zz')")
    ours = pv.to_json(pv.variant_delete(pv.parse_json(VALUES), "$[0]", None, "$.a", "$[0]", "$.zz")).to_pylist()
    assert ours == theirs[:: len(PATHS)]


@pytest.mark.parametrize("include_arrays", [True, False])
def test_strip_nulls(spark: Any, include_arrays: bool) -> None:
    _table(spark)
    theirs = _theirs(spark, f"variant_strip_nulls(v, {str(include_arrays).lower()})")
    assert pv.to_json(pv.strip_nulls(pv.parse_json(VALUES), include_arrays)).to_pylist() == theirs[:: len(PATHS)]


@pytest.mark.parametrize("function", ["variant_explode", "variant_explode_outer"])
def test_explode(spark: Any, function: str) -> None:
    frame = spark.createDataFrame([(i, v) for i, v in enumerate([*VALUES, None])], "i int, t string")
    frame.createOrReplaceTempView("explode")
    query = f"select i, pos, key, to_json(value) j from (select i, parse_json(t) v from explode), lateral {function}(v)"
    theirs = [tuple(row) for row in spark.sql(query).collect()]
    table = pv.variant_explode(pv.parse_json([*VALUES, None]), outer=function.endswith("_outer"))
    json = pv.to_json(pv.VariantArray(table["value"])).to_pylist()
    ours = list(zip(*(table[name].to_pylist() for name in ("row", "pos", "key")), json, strict=True))
    # Spark orders keys by UTF-16, which is the order of bytes for these.
    assert ours == sorted(theirs, key=lambda line: (line[0], -1 if line[1] is None else line[1]))


def test_spark_reads_what_we_wrote(spark: Any) -> None:
    from pyspark.sql.types import VariantVal

    changed = pv.variant_set(pv.parse_json([value for value in VALUES if value.startswith("{")]), "$.new[1].x", 1.5)
    rows = [(number, VariantVal(value.value, value.metadata)) for number, value in enumerate(changed)]
    theirs = spark.createDataFrame(rows, "i int, v variant").selectExpr("i", "to_json(v) j", "is_valid_variant(v) ok")
    for value, row in zip(changed, sorted(theirs.collect()), strict=True):
        assert row.ok and row.j == value.to_json()
