"""Every cast gives what Spark gives: each Variant type to each target type, in two time zones.

Owns the table of values. What differs on purpose is listed in `DIFFERENT`, and documented in docs/casts.md.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.types import VariantType

ZONES = ("UTC", "America/Los_Angeles")
TARGETS = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(38,0)": pa.decimal128(38, 0),
    "decimal(38,38)": pa.decimal128(38, 38),
    "decimal(3,3)": pa.decimal128(3, 3),
    "decimal(18,6)": pa.decimal128(18, 6),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time(6)": pa.time64("us"),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
    "array<array<int>>": pa.list_(pa.list_(pa.int32())),
    "struct<a int, b string>": pa.struct({"a": pa.int32(), "b": pa.string()}),
    "struct<A int>": pa.struct({"A": pa.int32()}),
    "map<string,int>": pa.map_(pa.string(), pa.int32()),
    "map<string,array<string>>": pa.map_(pa.string(), pa.list_(pa.string())),
    "variant": "variant",
}
# Values that we answer otherwise than Spark; docs/casts.md has the reasons.
DIFFERENT = {
    ("timestamp", "string 10:11:12"),  # Spark: today at that time
    ("timestamp", "string T10:11:12"),
    ("timestamp", "string 12:34"),
    ("string", "double 5e-324"),  # Spark: 4.9E-324
    ("string", "binary b'\\xff\\xfe'"),  # Spark: a string that is not UTF-8
}

_INTEGERS = {
    VariantType.INT8: [0, 1, -1, 127, -128],
    VariantType.INT16: [200, -32768],
    VariantType.INT32: [70000, 2**31 - 1],
    VariantType.INT64: [0, 5, 2**40, 2**63 - 1, -(2**63), 9223372036854, 9223372036855, -9223372036855],
}
_DOUBLES = [
    0.0, -0.0, 0.5, 1.0, 1.5, -1.5, 2.5, 127.9, 128.0, -128.9, 1e10, 1e15, 1e16, 1e20, 1e300, 1e-5, 0.001, 0.1, 123.456,
    math.nan, math.inf, -math.inf, 5e-324, 2.0**63, 2147483647.5, 1e7, 12345678.9, 1e38, 1.7976931348623157e308,
]  # fmt: skip
_FLOATS = [0.0, -0.0, 0.1, 1.5, 3.4e38, 1e-40, math.nan, math.inf, 16777216.0, 1e10, 127.9]
_DECIMALS = [
    (VariantType.DECIMAL4, (0, 0)), (VariantType.DECIMAL4, (12300, 2)), (VariantType.DECIMAL4, (-123, 2)),
    (VariantType.DECIMAL4, (5, 1)), (VariantType.DECIMAL4, (25, 1)), (VariantType.DECIMAL4, (1, 9)),
    (VariantType.DECIMAL4, (12799, 2)), (VariantType.DECIMAL4, (12800, 2)), (VariantType.DECIMAL4, (99999, 3)),
    (VariantType.DECIMAL8, (10**9, 9)), (VariantType.DECIMAL8, (15000001, 7)),
    (VariantType.DECIMAL16, (10**37, 0)), (VariantType.DECIMAL16, (10**38 - 1, 0)),
    (VariantType.DECIMAL16, (10**38 - 1, 38)), (VariantType.DECIMAL16, (-(10**38 - 1), 10)),
    (VariantType.DECIMAL16, (922337203685477580700, 2)), (VariantType.DECIMAL16, (922337203685477580800, 2)),
    (VariantType.DECIMAL16, (1, 0)), (VariantType.DECIMAL16, (1500000000000000000, 0)),
    (VariantType.DECIMAL16, (9223372036854775807, 6)),
]  # fmt: skip
_DAYS = [0, 1, -1, 19000, 2932896, -719162, -719528, 2**31 - 1, -(2**31), 2932897]
_MICROS = [
    0, 1, -1, 1600000000000000, 1600000000123456, 1600000000500000, 253402300800000000, -62135596800000000,
    -62167219200000001, 2**63 - 1, -(2**63), -2208988800000000, 1699174800000000, 1678588200000000, 1699149600000000,
]  # fmt: skip
_STRINGS = """
||abc|1|-1|+1| 12 |12\t|\u00a012|1.5|1.0|.5|1.|1e3|1E3|1e400|-1e400|1e-400|127|128|-128|-129|32768|2147483648
9223372036854775807|9223372036854775808|00012|1_000|1,000|0x10|0x1p3|true|TRUE|t|T|yes|y|Y|1 |no|n|f|F|0|false| true |on
NaN|nan|Infinity|-Infinity|inf|+inf|-inf|infinity|1d|1D|1f|1F|1L|1.5d|-0|-0.0|1e38|1e37|123.4567890|99.995
12345678901234567890123456789012345678|123456789012345678901234567890123456789|0.123456789012345678901234567890123456789
2020-01-01|2020-1-1|2020|2020-01|2020-01-01 |2020-01-01T|2020-01-01 10:11:12|2020-01-01T10:11:12Z|2020-01-01 10:11
2020-01-01T10:11:12.123456789Z|2020-01-01T10:11:12.1|2020-01-01 10|2020-01-01T10:11:12+01:00|2020-01-01T10:11:12 +01:00
2020-01-01T10:11:12+1:0|2020-01-01T10:11:12+0100|2020-01-01T10:11:12+01|2020-01-01 10:11:12 America/New_York
2020-01-01 10:11:12 UTC|2020-01-01T10:11:12UTC+3|2020-01-01T10:11:12GMT-08:00|2020-01-01 10:11:12 PST|T10:11:12|10:11:12
12:34|2020-02-30|2020-13-01|+2020-01-01|-2020-01-01|0000-01-01|0001-01-01|9999-12-31|10000-01-01|99999-01-01
294247-01-10T04:00:54.775807Z|294247-01-10T04:00:54.775808Z|-290308-12-21 19:59:05.224192Z|2020-01-01T24:00:00
2020-01-01T10:60:00|2020-01-01T10:11:60|epoch|now|2020-01-01T10:11:12,123|2020-01-01t10:11:12z|2020-01-01T10:11:12z
2020/01/01|20200101|2023-03-12 02:30:00|2023-11-05 01:30:00|1969-12-31T23:59:59.999999Z|2020-01-01T10:11:12.
2020-01-01T10:11:12.Z|2020-01-01T10:11:12+18:00|2020-01-01T10:11:12+19:00|5881580-07-11|5881580-07-12|-5877641-06-23
2020-01-01x|2020-01-01 x|2020-01-01Tx|é|😀|{}|[1]|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
"""
_NESTED: list[Any] = [
    [], [1, 2], [1, "x", None], ["1", "2"], [Decimal("1.50"), 1.0, 1e20, np.float32(0.1)], [[1], [2]],
    {}, {"a": 1}, {"a": 1, "b": "x"}, {"a": None}, {"c": 1}, {"a": "7", "b": 2}, {"a": {"a": 1}}, {"a": 300},
    {"a": [1, "x"]},
    {"a": dt.datetime(2020, 9, 13, 12, 26, 40, 123456, dt.UTC), "b": dt.date(1970, 1, 2), "c": b"\xff"},
    [dt.datetime(2020, 1, 1), True, -0.0, 1e7, 'q"\n\u0001é\u2028/\x7f', math.inf],
]  # fmt: skip


def values() -> Iterator[tuple[str, pv.Variant]]:
    """Every value with a name that contains its type."""
    table: list[tuple[VariantType, Any]] = [(VariantType.NULL, None), (VariantType.BOOLEAN, True)]
    table += [(VariantType.BOOLEAN, False)]
    table += [(kind, number) for kind, numbers in _INTEGERS.items() for number in numbers]
    table += [(VariantType.DOUBLE, number) for number in _DOUBLES] + [(VariantType.FLOAT, number) for number in _FLOATS]
    table += _DECIMALS
    table += [(VariantType.DATE, days) for days in _DAYS]
    table += [(kind, micros) for kind in (VariantType.TIMESTAMP, VariantType.TIMESTAMP_NTZ) for micros in _MICROS]
    table += [(VariantType.BINARY, data) for data in (b"", b"abc", b"\xff\xfe", b"\x00\x01", b"123")]
    table += [(VariantType.STRING, text) for line in _STRINGS.strip("\n").split("\n") for text in line.split("|")]
    table += [(VariantType.UUID, bytes(range(16)))]
    for kind, raw in table:
        yield f"{kind} {raw}", pv.Variant(EMPTY_METADATA, encode_scalar(kind, raw))
    for obj in _NESTED:
        yield repr(obj), pv.Variant.from_python(obj)


VALUES = dict(values())


def comparable(array: pa.Array) -> list[str]:
    """What the entries are, bit for bit; times as integers, since Python's end in the year 9999."""
    if pa.types.is_temporal(array.type):
        nanos = 1000 if array.type == pa.time64("ns") else 1
        return [repr(scalar.value if scalar.value is None else scalar.value // nanos) for scalar in array]
    if pa.types.is_string(array.type):
        array = array.cast(pa.binary())
    return [repr(scalar.as_py()) for scalar in array]


@pytest.fixture(scope="module")
def table(spark: Any) -> Iterator[Any]:
    """The values as a view `cast_values` of Spark."""
    from pyspark.sql.types import IntegerType, StructField, StructType, VariantVal
    from pyspark.sql.types import VariantType as SparkVariant

    rows = [(row, VariantVal(value.value, value.metadata)) for row, value in enumerate(VALUES.values())]
    schema = StructType([StructField("row", IntegerType()), StructField("v", SparkVariant())])
    frame = spark.createDataFrame(rows, schema).coalesce(1).cache()
    frame.createOrReplaceTempView("cast_values")
    before = spark.conf.get("spark.sql.session.timeZone")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)
    frame.unpersist()


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("target", TARGETS)
def test_every_value_is_cast_as_in_spark(table: Any, zone: str, target: str) -> None:
    table.conf.set("spark.sql.session.timeZone", zone)
    found = table.sql(f"SELECT try_variant_get(v, '$', '{target}') AS r FROM cast_values ORDER BY row").toArrow()
    theirs = found["r"].combine_chunks()
    ours = pv.variant_get(
        pv.VariantArray.from_variants(VALUES.values()), "$", TARGETS[target], zone=zone, errors="null"
    )
    if target == "variant":
        theirs_as_ours = pv.VariantArray(
            theirs.cast(pa.struct([theirs.type.field("value"), theirs.type.field("metadata")]))
        )
        assert list(theirs_as_ours) == list(ours)
        return
    different = {
        name: (spark_says, we_say)
        for name, spark_says, we_say in zip(VALUES, comparable(theirs), comparable(ours), strict=True)
        if spark_says != we_say and (target, name) not in DIFFERENT
    }
    assert different == {}


@pytest.mark.parametrize("target", ["boolean", "int", "double", "decimal(10,2)", "date", "timestamp", "array<int>"])
def test_variant_get_raises_where_spark_raises(table: Any, target: str) -> None:
    array = pv.VariantArray.from_variants(VALUES.values())
    tried = pv.variant_get(array, "$", TARGETS[target], errors="null")
    fails = [
        row for row, value in enumerate(array) if not tried[row].is_valid and value is not None and value.type != "null"
    ]
    sampled = {list(VALUES)[row].split()[0]: row for row in fails}
    for row in sampled.values():
        with pytest.raises(pv.VariantError):
            pv.variant_get(array[row : row + 1], "$", TARGETS[target])
        with pytest.raises(Exception, match="INVALID_VARIANT_CAST"):
            table.sql(f"SELECT variant_get(v, '$', '{target}') FROM cast_values WHERE row = {row}").collect()


@pytest.mark.parametrize("target", ["void", "interval day to second", "map<int,string>"])
def test_types_that_spark_refuses_are_refused(table: Any, target: str) -> None:
    ours = {"void": pa.null(), "interval day to second": pa.duration("us"), "map<int,string>": "map<int,string>"}
    with pytest.raises(pv.VariantError):
        pv.variant_get(pv.VariantArray.from_pylist([1]), "$", ours[target])
    with pytest.raises(Exception, match=r"DATATYPE_MISMATCH|cannot cast"):
        table.sql(f"SELECT variant_get(v, '$', '{target}') FROM cast_values").collect()


def test_schema_of_variant_is_sparks(table: Any) -> None:
    theirs = [row[0] for row in table.sql("SELECT schema_of_variant(v) FROM cast_values ORDER BY row").collect()]
    assert pv.schema_of_variant(pv.VariantArray.from_variants(VALUES.values())).to_pylist() == theirs


@pytest.mark.parametrize(
    "texts",
    [
        ["1", "2.5", None],
        ['{"a": 1, "b": [1, 2.5]}', '{"a": "x", "c": {"d": null}}', "{}"],
        ["[]", "[[]]", "[[1], [2.5, 1e3]]"],
        ['{"a b": 1, "": 2, "a`b": 3, "é": 4, "😀": 5, "ｚ": 6, "1a": 7}'],
        ["12345678901234567890123456789012345678", "0.12345678901234567890123456789"],
        [None],
    ],
    ids=["numbers", "objects", "arrays", "names", "wide", "nothing"],
)
def test_schema_of_variant_agg_is_sparks(spark: Any, texts: list[str | None]) -> None:
    frame = spark.createDataFrame([(text,) for text in texts], "text string")
    theirs = frame.selectExpr("schema_of_variant_agg(parse_json(text))").collect()[0][0]
    assert pv.schema_of_variant_agg(pv.parse_json(pa.array(texts, pa.string()))) == theirs


def test_is_variant_null_is_sparks(spark: Any) -> None:
    texts = ["null", '{"a": null}', "1", None]
    frame = spark.createDataFrame(list(enumerate(texts)), "row int, text string")
    theirs = [row[0] for row in frame.orderBy("row").selectExpr("is_variant_null(parse_json(text))").collect()]
    assert pv.is_variant_null(pv.parse_json(pa.array(texts, pa.string()))).to_pylist() == theirs
