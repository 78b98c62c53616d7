"""Spark 4.3 as the oracle of `parse_json`, `to_json` and the types of numbers, on tricky texts and on real ones."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant import Variant
from parquet_variant.encoding.json_reader import JsonOptions, parse_json
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.walk import walk
from parquet_variant.errors import JsonError
from parquet_variant.types import VariantType

pytestmark = pytest.mark.spark

_NINES = "9" * 38
TEXTS = [
    "0", "-0", "127", "128", "-129", "32768", "2147483648", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", _NINES, "-" + _NINES, "1" + "0" * 38, "1" + "0" * 60,
    "-170141183460469231731687303715884105728", "1.50", "1.0", "-0.0", "0.00", "100.00", "123456789.1", "0.0000000001",
    "0.0000000000000000001", "0." + "0" * 37 + "1", "0." + "0" * 38 + "1", "0." + "0" * 40, "10." + "0" * 40,
    "0." + "1" * 38, "0." + "1" * 39, "1." + "1" * 37, "1." + "1" * 38, "1.1" + "0" * 37, "123456789.123456789",
    "1e10", "1E2", "1.5e-7", "1.0e0", "1e400", "-1e400", "1e-400", "0e0", "-0e0", "1e6", "1e7", "9.999999e6", "1e-3",
    "1e-4", "4.35e0", "1e16", "1e21", "123e0", "2.2250738585072014e-308", "1.7976931348623157e308",
    "123456789012345680000.0e0",
    " 1 ", "true", "null", "[]", "{}", "[[],{}]", '""', r'"\"\\\/\b\f\n\r\t\u0000\u001f\u007f\u2028/é😀"',
    r'"\ud83d\ude00"', '{"b":1,"a":[1,2.50,"x",null],"":3,"B":{"z":{},"y":[]}}', '{"a b":1,"a.b":2,"\\u0000":3}',
    '"' + "x" * 63 + '"', '"' + "x" * 64 + '"', "[" + ",".join(map(str, range(300))) + "]",
    "{" + ",".join(f'"k{index}":{index}' for index in range(300)) + "}",
]  # fmt: skip
REFUSED = [
    "", " ", "[1,]", "[1", '{"a":1,}',
    '{"a"}', "{a:1}", "'a'", "nul", "01", "-", "1.", ".5", "+1", "1e", '"a\nb"', r'"\x"',
    r'"\u12"', '"a', "NaN", "Infinity", "-Infinity", "// c\n1", "\ufeff1", "[1 2]", '{"a":NaN}', r'"\ud800"',
]  # fmt: skip
# Longest round trip: before Java 19 Double.toString gives more digits than are needed, or not the shortest.
JAVA_DIGITS = ["5e-324", "1e23", "2e-323", "2.0e-3"]


def _in_spark(spark: Any, texts: list[str]) -> list[tuple[Variant | None, str | None, str | None]]:
    frame = spark.createDataFrame(list(enumerate(texts)), "i int, t string")
    frame = frame.selectExpr("i", "try_parse_json(t) v").selectExpr("i", "v", "to_json(v) j", "schema_of_variant(v) s")
    rows = sorted(frame.collect())
    return [(Variant(bytes(r.v.metadata), bytes(r.v.value)) if r.v else None, r.j, r.s) for r in rows]


def _types(variant: Variant) -> list[tuple[str, Any]]:
    """Every event with its type: scalars of another width differ."""
    events = walk(variant.metadata, variant.value, 0, len(variant.value), by_key=True)
    return [(str(event.kind), event.raw) for event in events]


def test_texts_that_spark_reads(spark: Any) -> None:
    for text, (theirs, their_json, _) in zip(TEXTS, _in_spark(spark, TEXTS), strict=True):
        ours = parse_json(text)
        assert theirs is not None, text
        assert _types(ours) == _types(theirs), text
        assert ours.to_json() == their_json, text
        assert theirs.validate().to_json() == their_json, text
        if ours.type not in (VariantType.ARRAY, VariantType.OBJECT):
            assert ours.value == theirs.value, text


def test_texts_that_spark_refuses(spark: Any) -> None:
    for text, (theirs, _, _) in zip(REFUSED, _in_spark(spark, REFUSED), strict=True):
        assert theirs is None, text
        with pytest.raises(JsonError):
            parse_json(text)


def test_where_we_differ_on_purpose(spark: Any) -> None:
    # docs/json.md lists these: Spark stops reading after the value; its duplicate keys are errors.
    texts = ["1 2", "[]x", "[1][2]", '{"a":1,"a":2}']
    (first, *_), (second, *_), (third, *_), (fourth, *_) = _in_spark(spark, texts)
    assert [first and first.to_json(), second and second.to_json(), third and third.to_json()] == ["1", "[]", "[1]"]
    assert fourth is None
    for text in texts[:3]:
        with pytest.raises(JsonError, match="expected the end of the text"):
            parse_json(text)
    assert parse_json(texts[3]).to_json() == '{"a":2}'
    with pytest.raises(JsonError):
        parse_json(texts[3], JsonOptions(on_duplicate_key="error"))
    for text, (theirs, their_json, _) in zip(JAVA_DIGITS, _in_spark(spark, JAVA_DIGITS), strict=True):
        ours = parse_json(text)
        assert theirs == ours and their_json is not None
        assert float(their_json) == float(ours.to_json())
        assert len(ours.to_json()) <= len(their_json)


def test_utf16_order_of_sparks_keys_is_read(spark: Any) -> None:
    [(theirs, their_json, _)] = _in_spark(spark, ['{"\\ud83d\\ude00":1,"\\ufb01":2}'])
    assert theirs is not None and their_json is not None
    ours = parse_json(their_json)
    assert ours == theirs and theirs["\U0001f600"].to_python() == 1 and theirs["\ufb01"].to_python() == 2
    # Spark sorts by UTF-16; we write the order of the specification.
    assert list(ours) == ["\ufb01", "\U0001f600"] and list(theirs) == ["\U0001f600", "\ufb01"]


def test_spark_reads_what_we_write(spark: Any) -> None:
    from pyspark.sql.types import VariantVal

    values = [
        Variant.from_python(obj)
        for obj in [
            None, True, -(2**63), 2**63, Decimal("1.50"), Decimal("1E-10"), Decimal("1E-19"), Decimal("0." + _NINES),
            0.1,
            -0.0, float("inf"), float("nan"), "é" * 40, b"\x00\xff", dt.date(1, 1, 1), dt.datetime(2024, 1, 2, 3, 4,
            5, 6000),
            dt.datetime(1900, 1, 1, tzinfo=dt.UTC), uuid.UUID(int=5), [[], {}], {f"k{i}": [i] for i in range(300)},
        ]
    ]  # fmt: skip
    extremes = [
        (VariantType.FLOAT, 1.5), (VariantType.DATE, -(2**31)), (VariantType.DATE, 2**31 - 1),
        (VariantType.TIMESTAMP, 2**63 - 1), (VariantType.TIMESTAMP, -(2**63)), (VariantType.TIMESTAMP_NTZ, -(2**63)),
        (VariantType.DECIMAL4, (-999_999_999, 9)), (VariantType.DECIMAL16, (5, 2)),
    ]  # fmt: skip
    values += [Variant(b"\x11\x00\x00", encode_scalar(kind, raw)) for kind, raw in extremes]
    rows = [(index, VariantVal(value.value, value.metadata)) for index, value in enumerate(values)]
    theirs = sorted(spark.createDataFrame(rows, "i int, v variant").selectExpr("i", "to_json(v) j").collect())
    for value, row in zip(values, theirs, strict=True):
        assert value.to_json() == row.j


def _lines(file: Path) -> list[str]:
    with pa.input_stream(file) as source:  # knows .zst
        return [line.decode() for line in io.BufferedReader(source)]


def test_real_lines(spark: Any, variant_test_data: Path) -> None:
    files = sorted((variant_test_data / "data").glob("*.ndjson*"))
    assert files
    lines = [line for file in files for line in _lines(file)[:60]]
    for text, (theirs, their_json, _) in zip(lines, _in_spark(spark, lines), strict=True):
        ours = parse_json(text)
        assert theirs is not None and ours == theirs
        assert _types(ours) == _types(theirs)
        assert ours.to_json() == their_json


@pytest.mark.parametrize("name", ["cve_v5", "gharchive", "usgs_earthquakes", "windows_events"])
def test_whole_data_sets(name: str, spark: Any, variant_test_data: Path) -> None:
    """Text and type of every value, by the kernels; Spark's rows come in Spark's order, so they carry a number."""
    [file] = (variant_test_data / "data").glob(f"{name}.ndjson*")
    lines = _lines(file)
    ours = pv.parse_json(lines)
    texts, types = pv.to_json(ours), pv.schema_of_variant(ours)
    frame = spark.createDataFrame(pa.table({"i": range(len(lines)), "t": lines}))
    frame = frame.selectExpr("i", "parse_json(t) v").selectExpr("i", "to_json(v) j", "schema_of_variant(v) s")
    theirs = frame.toArrow().sort_by("i")
    assert theirs["i"].to_pylist() == list(range(len(lines)))
    for column, found in (("j", texts), ("s", types)):
        for row, (mine, spark_says) in enumerate(zip(found.to_pylist(), theirs[column].to_pylist(), strict=True)):
            assert mine == spark_says, (name, row, column)


def test_types_of_tricky_texts(spark: Any) -> None:
    texts = [
        *(text for text in TEXTS if "e" not in text.lower() or text[0] not in "-0123456789"),
        "[1, 2.5, 1e3]", "[1.5, 2.25]", "[1, 123456789.123456789]", "[true, null]", "[[1], [null], []]", "[{}, []]",
        '[{"a": 1, "b": []}, {"a": 2.5, "c": null}, {"b": ["x"]}]', '{"a b": 1, "9a": 2, "a`b": 3, "_z": 4, "": 5}',
        "[99999999999999999999999999999999999999, 0.5]", "[12345678901234567890123456789, 0.1234567890]",
        '[1, "x"]', '{"a": [1, {"b": 2}]}', '[{"a": {"b": 1}}, {"a": 7}]', "[100.00, 0.000, 1]", "[0.001, 0.0]",
    ]  # fmt: skip
    ours = pv.schema_of_variant(pv.parse_json(texts)).to_pylist()
    for text, mine, (_, _, theirs) in zip(texts, ours, _in_spark(spark, texts), strict=True):
        assert mine == theirs, text
