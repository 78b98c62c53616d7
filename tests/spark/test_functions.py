"""SQL functions: callable from SQL text, equal to Spark's own where it has the same."""

from __future__ import annotations

import pytest

import parquet_variant as pv


@pytest.fixture(scope="module")
def sql(spark):
    names = pv.spark.register_functions(spark)
    assert {"pv_variant_get", "pv_variant_get_double", "pv_try_variant_get_date", "pv_to_json"} <= set(names)
    spark.sql(
        """SELECT * FROM VALUES
        (1, '{"a": {"b": 1.50}, "s": "x", "t": "2024-02-03"}', '$.a.b'),
        (2, '{"a": [1, 2], "s": "7"}', '$.a[1]'),
        (3, NULL, '$.s'),
        (4, 'null', '$'),
        (5, '{"a": {"b": true}}', NULL) AS rows(id, text, path)"""
    ).createOrReplaceTempView("pv_rows")
    yield spark.sql
    spark.catalog.dropTempView("pv_rows")


def _column(frame):
    return [row[0] for row in frame.collect()]


def test_parse_and_print(sql):
    text = _column(sql("SELECT pv_to_json(pv_parse_json(text)) FROM pv_rows ORDER BY id"))
    assert text == [
        '{"a":{"b":1.5},"s":"x","t":"2024-02-03"}', '{"a":[1,2],"s":"7"}', None, "null", '{"a":{"b":true}}',
    ]  # fmt: skip
    assert _column(sql("SELECT pv_to_json(pv_try_parse_json('{'))")) == [None]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("pv_try_variant_get_double(v, '$.a.b')", "try_variant_get(v, '$.a.b', 'double')"),
        ("pv_try_variant_get_string(v, '$.a')", "try_variant_get(v, '$.a', 'string')"),
        ("pv_try_variant_get_bigint(v, '$.s')", "try_variant_get(v, '$.s', 'bigint')"),
        ("pv_try_variant_get_date(v, '$.t')", "try_variant_get(v, '$.t', 'date')"),
        ("pv_try_variant_get_decimal(v, '$.a.b')", "try_variant_get(v, '$.a.b', 'decimal(38,9)')"),
        ("to_json(pv_variant_get(v, '$.a'))", "to_json(variant_get(v, '$.a', 'variant'))"),
        ("pv_variant_get_string(v, '$.s')", "variant_get(v, '$.s', 'string')"),
    ],
)
def test_getters_give_what_spark_gives(sql, ours, theirs):
    values = sql(f"SELECT {ours}, {theirs} FROM (SELECT id, parse_json(text) AS v FROM pv_rows) ORDER BY id").collect()
    assert [row[0] for row in values] == [row[1] for row in values]
    assert any(row[0] is not None for row in values)


def test_casts_use_the_time_zone_of_the_session(spark, tmp_path):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        pv.spark.register_functions(spark, "tokyo_")
        pv.write(tmp_path / "t", spark.sql("""SELECT '"2024-01-01 12:00:00"' AS v"""), schema="variant")
        frame = pv.open(tmp_path / "t", engine=spark).scan({"at": ("$", "timestamp")}).to_spark()
        native = spark.read.parquet(str(tmp_path / "t"))
        ours = native.selectExpr("tokyo_variant_get_timestamp(v, '$') AS at")
        theirs = native.selectExpr("variant_get(v, '$', 'timestamp') AS at")
        seconds = [frame.selectExpr("unix_timestamp(at)").head()[0] for frame in (frame, ours, theirs)]
        assert seconds == [1704078000] * 3
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_every_row_may_have_its_own_path(sql):
    rows = sql("SELECT pv_try_variant_get_string(parse_json(text), path) FROM pv_rows ORDER BY id")
    assert _column(rows) == ["1.5", "2", None, None, None]
    variants = sql("SELECT pv_to_json(pv_variant_get(parse_json(text), path)) FROM pv_rows ORDER BY id")
    assert _column(variants) == ["1.5", "2", None, "null", None]


def test_a_cast_that_cannot_be_is_an_error_or_null(sql):
    assert _column(sql("SELECT pv_try_variant_get_int(parse_json('\"x\"'), '$')")) == [None]
    for call, message in (
        ("pv_variant_get_int(parse_json('\"x\"'), '$')", "CastError"),
        ("pv_variant_get(parse_json('1'), '$..a')", "PathError"),
        ("pv_parse_json('{')", "JsonError"),
        ("pv_to_json('x')", "the argument is string, not a VARIANT: convert it with parse_json"),
        ("pv_variant_get_int(parse_json('1'))", "takes 2 arguments, not 1"),
    ):
        with pytest.raises(Exception, match=message) as raised:
            sql(f"SELECT {call}").collect()
        assert 'File "' not in str(raised.value)


def test_a_null_without_a_type_is_null(sql):
    rows = sql(
        "SELECT pv_to_json(NULL), pv_parse_json(NULL), pv_variant_get_int(NULL, '$'), pv_variant_get(NULL, NULL)"
    )
    assert tuple(rows.collect()[0]) == (None, None, None, None)


ENCODINGS = ["1", "1.0", "1.00", "1e0", '{"a": 1, "b": [2.0]}', '{"b": [2], "a": 1.0}', '"1"', "null", "[1]", "[1.0]"]


def test_equal_values_have_equal_canonical_bytes(spark, sql):
    rows = [(number, text) for number, text in enumerate(ENCODINGS * 20)]
    spark.createDataFrame(rows, "id int, text string").createOrReplaceTempView("pv_encodings")
    grouped = sql("SELECT count(*) AS n FROM pv_encodings GROUP BY pv_canonical(parse_json(text)) ORDER BY n").collect()
    values = pv.parse_json([text for _, text in rows])
    expected = pv.sql("SELECT count(*) AS n FROM t GROUP BY v ORDER BY n", t=values).to_arrow()["n"].to_pylist()
    assert [row[0] for row in grouped] == expected == [20, 20, 40, 40, 80]


def test_variants_are_changed_as_in_python(sql):
    text = """SELECT to_json(pv_variant_set(v, '$.x', pv_parse_json('5'))),
        to_json(pv_try_variant_insert(v, path, v)), to_json(pv_variant_delete(v, '$.a')),
        to_json(pv_variant_strip_nulls(v))
        FROM (SELECT id, parse_json(text) AS v, path FROM pv_rows WHERE id IN (1, 5)) ORDER BY id"""
    first, second = sql(text).collect()
    assert [first[0], first[2]] == ['{"a":{"b":1.5},"s":"x","t":"2024-02-03","x":5}', '{"s":"x","t":"2024-02-03"}']
    assert first[1] is None  # the field exists
    assert list(second) == ['{"a":{"b":true},"x":5}', None, "{}", '{"a":{"b":true}}']


def test_invalid_arguments_are_named(spark):
    for arguments, message in (
        ((spark, None), "prefix is None"),
        ((spark, "a b."), "prefix is 'a b.'"),
        ((None,), "SparkSession"),
    ):
        with pytest.raises(pv.VariantError, match=message):
            pv.spark.register_functions(*arguments)
    with pytest.raises(pv.VariantError, match="invalid table name None"):
        pv.spark.register_table(spark, None, "p")
