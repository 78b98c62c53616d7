"""What DuckDB's own VARIANT keeps, as docs/internals/sql-variants.md says."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

duckdb = pytest.importorskip("duckdb")
_VALUES = {
    "int8": pa.array([1], pa.int8()),
    "int16": pa.array([300], pa.int16()),
    "int32": pa.array([70_000], pa.int32()),
    "int64": pa.array([2**40]),
    "float": pa.array([1.5], pa.float32()),
    "double": pa.array([0.1]),
    "decimal4": pa.array([Decimal("1.50")], pa.decimal128(4, 2)),
    "decimal16": pa.array([Decimal("12345678901234567890.125")], pa.decimal128(38, 3)),
    "boolean": pa.array([True]),
    "binary": pa.array([b"ab"]),
    "date": pa.array([dt.date(2024, 1, 31)]),
    "time": pa.array([dt.time(12, 0, 0, 123456)]),
    "timestamp": pa.array([dt.datetime(2024, 1, 31, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([dt.datetime(2024, 1, 31)], pa.timestamp("us")),
    "timestamp_ntz_nanos": pa.array([1706659200123456789], pa.timestamp("ns")),
    "uuid": pa.array([uuid.UUID(int=1).bytes], pa.uuid()),
}


def _in_duckdb(values: pv.VariantArray, query: str) -> pa.Table:
    storage = values.to_unshredded().storage
    fields = [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary())]
    parts = [storage.field(field.name).cast(pa.binary()) for field in fields]
    marks = {"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}
    column = pa.StructArray.from_arrays(parts, fields=fields, mask=storage.is_null())
    table = pa.table([column], schema=pa.schema([pa.field("v", column.type, metadata=marks)]))
    with duckdb.connect() as connection:
        connection.register("t", table)
        return connection.sql(query).to_arrow_table()


@pytest.mark.parametrize("kind", _VALUES)
def test_duckdb_keeps_the_type_of_a_variant(kind: str) -> None:
    values = pv.cast_to_variant(_VALUES[kind])
    found = pv.VariantArray(_in_duckdb(values, "SELECT v FROM t")["v"].chunk(0))
    assert pv.variant_type(found).to_pylist() == pv.variant_type(values).to_pylist() == [kind]
    assert pv.to_json(found).to_pylist() == pv.to_json(values).to_pylist()


def test_duckdb_compares_and_casts_otherwise() -> None:
    numbers = pv.parse_json(["1", "1.0", "1e0"])
    assert _in_duckdb(numbers, "SELECT count(DISTINCT v) AS c FROM t")["c"].to_pylist() == [2]
    assert pv.sql("SELECT count(DISTINCT v) AS c FROM t", t=numbers).to_pylist() == [{"c": 1}]
    text = pv.parse_json(['"x"'])
    assert _in_duckdb(text, "SELECT v > 1 AS c FROM t")["c"].to_pylist() == [True]
    assert pv.sql("SELECT v > 1 AS c FROM t", t=text).to_pylist() == [{"c": None}]
    assert _in_duckdb(pv.parse_json(["1.5"]), "SELECT CAST(v AS INT) AS c FROM t")["c"].to_pylist() == [2]
    with pytest.raises(duckdb.Error, match="TIMESTAMP_NANOS_TZ"):
        _in_duckdb(pv.cast_to_variant(pa.array([1], pa.timestamp("ns", "UTC"))), "SELECT v FROM t")


@pytest.mark.parametrize(
    ("value", "json", "kind"),
    [
        ("18446744073709551615::UBIGINT", "18446744073709551615", "decimal16"),
        ("TIMESTAMP_S '2024-01-31 12:00:00'", '"2024-01-31 12:00:00"', "timestamp_ntz"),
        ("MAP {'a': 1, 'b': 2}", '{"a":1,"b":2}', "object"),
        ("{'m': MAP {'k': 'x'}}", '{"m":{"k":"x"}}', "object"),
        ("UUID '00000000-0000-0000-0000-000000000001'", '"00000000-0000-0000-0000-000000000001"', "uuid"),
        ("1.50::DECIMAL(4,2)", "1.5", "decimal4"),
        ("5", "5", "int32"),
        ("array(1, 2)", "[1,2]", "array"),
        ("named_struct('a', 1)", '{"a":1}', "object"),
    ],
)
def test_values_of_sql_keep_their_types(value: str, json: str, kind: str) -> None:
    row: Any = pv.sql(f"SELECT to_json(w) AS j, variant_type(w) AS k FROM (SELECT to_variant_object({value}) AS w)")
    assert row.to_pylist() == [{"j": json, "k": kind}]


def _generated(seed: int) -> pv.VariantArray:
    generator = random.Random(seed)

    def value(depth: int = 0) -> Any:
        kind = generator.randrange(7 if depth < 3 else 4)
        if kind > 4:
            return {key: value(depth + 1) for key in generator.sample(["a", "b", "c", "x y"], generator.randrange(4))}
        nested = [value(depth + 1) for _ in range(generator.randrange(4))] if kind == 4 else None
        return [None, generator.random() < 0.5, generator.choice([1, 1.5, 7, -3]), generator.choice("x7"), nested][kind]

    return pv.from_python([value() for _ in range(60)])


@pytest.mark.parametrize("function", ["variant_keys", "variant_array_length", "variant_exists", "variant_contains"])
def test_functions_of_duckdb_give_what_duckdb_gives(function: str) -> None:
    arguments = [", 'a'", ", 'b'", ", 'c'", ", 'x y'"]
    if function == "variant_contains":
        arguments = [", 1", ", 'x'", ", true", ", [1]", ", {'a': 1}", ", [[]]", ", '7'"]
    elif function != "variant_exists":
        arguments.append("")
    calls = 0
    for seed in range(3):
        values = _generated(seed)
        for argument in arguments:
            cast = "::VARIANT" if function == "variant_contains" else ""
            theirs = _in_duckdb(values, f"SELECT {function}(v{argument}{cast}) AS c FROM t")["c"].to_pylist()
            ours = pv.sql(f"SELECT {function}(v{argument}) AS c FROM t", t=values).to_arrow()["c"].to_pylist()
            for value, judged, found in zip(values, theirs, ours, strict=True):
                # docs/sql-variants.md names what differs: SQL NULL does not exist.
                if not (function == "variant_exists" and value is None):
                    assert found == judged, f"{function}(v{argument}) of {value}"
                calls += 1
    assert calls >= 500
