"""Files that the JVM reads alone: only where that is sound, and with the very rows that the data source gives."""

from __future__ import annotations

import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantError
from parquet_variant.spark.operations.read import readers

_COLUMNS = {
    "n": ("$.n", "bigint"),
    "wide": ("$.n", "double"),
    "m": ("$.m", "double"),
    "s": ("$['a.b `x']", "string"),
    "deep": ("$.o.k", "boolean"),
    "upper": ("$.o.K", "int"),
}


def _write(spark, dest, rows, schema, **options):
    frame = spark.createDataFrame([(row,) for row in rows], "v string")
    pv.write(dest, frame, schema=schema, mode="append", **options)


_SCHEMA = "n int, m decimal(9,2), `a.b ``x` string, o struct<k: boolean, K: int>"
_ROWS = [f'{{"n": {n}, "m": {n}.25, "a.b `x": "s{n}", "o": {{"k": true, "K": {n}}}}}' for n in range(50)]


def _sorted(frame):
    return sorted(map(str, frame.collect()))


def test_plain_files_are_read_by_the_jvm_and_others_are_not(spark, tmp_path):
    plain, mixed = tmp_path / "plain", tmp_path / "mixed"
    nulls = ["null", None, '{"n": null, "a.b `x": null, "o": {"k": null, "K": null}, "m": null}']
    _write(spark, plain, [*_ROWS, *nulls], _SCHEMA)
    _write(spark, mixed, _ROWS, _SCHEMA)
    _write(spark, mixed, ['{"n": "seven", "m": "x", "o": 5}', '{"n": 7, "o": {"k": "no"}}'], _SCHEMA)
    _write(spark, mixed, _ROWS[:5], "variant")
    plan = readers(pv.open(plain), _COLUMNS)
    assert not plan.python, str(plan)
    assert sum(map(len, plan.jvm.values())) == 1
    plan = readers(pv.open(mixed), _COLUMNS)
    assert (sum(map(len, plan.jvm.values())), len(plan.python)) == (1, 2)
    assert "may have values in a residual" in str(plan)
    for table in (plain, mixed):
        auto, python = (
            pv.open(table, engine=spark).scan(_COLUMNS).to_spark(reader=engine) for engine in ("auto", "python")
        )
        assert auto.schema.simpleString() == python.schema.simpleString()
        assert _sorted(auto) == _sorted(python)
        for where in ("n > 40", "wide = 7 OR deep", "s IS NULL", "m < 3 AND upper >= 2", "NOT deep"):
            assert _sorted(auto.where(where)) == _sorted(python.where(where)), where
    with pytest.raises(VariantError, match="the JVM cannot read"):
        pv.open(mixed, engine=spark).scan(_COLUMNS).to_spark(reader="jvm")


def test_elements_of_typed_arrays_are_not_read_as_fields(spark, tmp_path):
    rows = [f'{{"c": [{n}.5, {{"k": {n}}}], "l": [{n}]}}' for n in range(5)]
    _write(spark, tmp_path / "t", [*rows, '{"c": []}', "[7]"], "l array<int>, c array<double>")
    columns = {"first": ("$.l[0]", "int"), "k": ("$.c[1].k", "int"), "none": ("$.l[9]", "int"), "root": ("$[0]", "int")}
    assert "first is in an array" in str(readers(pv.open(tmp_path / "t"), {"first": columns["first"]}))
    found = pv.open(tmp_path / "t", engine=spark).scan(columns).to_spark().collect()
    expected = pv.open(tmp_path / "t").scan(columns).to_arrow().to_pylist()
    assert sorted(map(str, (row.asDict() for row in found))) == sorted(map(str, expected))


def test_the_session_of_the_user_stays_as_it_is(spark, tmp_path):
    _write(spark, tmp_path / "t", _ROWS, _SCHEMA)
    frame = pv.open(tmp_path / "t", engine=spark).scan(_COLUMNS).to_spark(reader="jvm")
    native = spark.read.parquet(str(tmp_path / "t"))
    assert native.schema.simpleString() == "struct<v:variant>"
    frame.createOrReplaceTempView("pv_view")
    assert spark.sql("SELECT sum(n), sum(m) FROM pv_view").first() == (1225, 1237.5)
    other = native.selectExpr("variant_get(v, '$.n', 'bigint') AS k")
    assert other.join(frame, other.k == frame.n).count() == frame.join(other, other.k == frame.n).count() == 50


@pytest.mark.parametrize(
    ("schema", "wanted", "plain"),
    [
        ("int", "int", True), ("int", "bigint", True), ("bigint", "int", False), ("int", "double", True),
        ("int", "string", False), ("decimal(9,2)", "double", True), ("decimal(9,2)", "decimal(9,2)", True),
        ("decimal(9,2)", "decimal(10,2)", False), ("float", "double", False), ("string", "string", True),
        ("string", "int", False),
    ],
)  # fmt: skip
def test_only_casts_that_are_the_same_everywhere_are_left_to_the_jvm(spark, tmp_path, schema, wanted, plain):
    value = {"string": '"7"', "float": "7.5"}.get(schema, "7")
    text = f'{{"a": {value}}}'
    if schema == "float":
        frame = spark.sql("SELECT to_variant_object(named_struct('a', float(7.5))) AS v")
    else:
        frame = spark.createDataFrame([(text,)], "v string")
    pv.write(tmp_path / "t", frame, schema=f"a {schema}")
    columns = {"a": ("$.a", wanted)}
    assert bool(readers(pv.open(tmp_path / "t"), columns).jvm) is plain
    auto, python = (
        pv.open(tmp_path / "t", engine=spark).scan(columns).to_spark(reader=engine).collect()
        for engine in ("auto", "python")
    )
    assert auto == python
    assert auto[0].a is not None


def test_filters_reach_the_row_groups(spark, tmp_path):
    _write(spark, tmp_path / "t", _ROWS, _SCHEMA)
    frame = pv.open(tmp_path / "t", engine=spark).scan(_COLUMNS).to_spark(reader="jvm").where("n > 48")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [IsNotNull(v.typed_value.n.typed_value), GreaterThan(v.typed_value.n.typed_value,48)" in plan
    assert [row.n for row in frame.collect()] == [49]
