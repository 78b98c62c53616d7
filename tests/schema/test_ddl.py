"""DDL: what is read, what is written, and where an error points."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variant_strategies as testing
from parquet_variant.errors import SchemaError
from parquet_variant.layouts.shredding_schema import ShreddingSchema

DDL = ShreddingSchema.from_ddl
PRIMITIVE = ShreddingSchema.primitive


@pytest.mark.parametrize(
    ("name", "arrow"),
    [
        ("boolean", pa.bool_()), ("BOOL", pa.bool_()),
        ("tinyint", pa.int8()), ("byte", pa.int8()), ("int8", pa.int8()),
        ("smallint", pa.int16()), ("short", pa.int16()),
        ("int", pa.int32()), ("Integer", pa.int32()),
        ("bigint", pa.int64()), ("long", pa.int64()),
        ("float", pa.float32()), ("real", pa.float32()), ("double", pa.float64()),
        ("decimal", pa.decimal128(10, 0)), ("decimal(38)", pa.decimal128(38, 0)),
        ("numeric(10, 2)", pa.decimal128(10, 2)), ("dec(3,3)", pa.decimal128(3, 3)),
        ("date", pa.date32()), ("time", pa.time64("us")),
        ("timestamp", pa.timestamp("us", "UTC")), ("timestamp_ltz", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("timestamp_nanos", pa.timestamp("ns", "UTC")), ("timestamp_ntz_nanos", pa.timestamp("ns")),
        ("binary", pa.binary()), ("string", pa.string()), ("uuid", pa.uuid()),
    ],
)  # fmt: skip
def test_every_type_name_is_a_type_alone_and_in_a_column(name: str, arrow: pa.DataType) -> None:
    assert DDL(name) == PRIMITIVE(arrow)
    assert DDL(f"x {name}") == ShreddingSchema.object({"x": arrow})
    assert DDL(DDL(name).to_ddl()) == PRIMITIVE(arrow)


def test_the_example_of_the_issue() -> None:
    schema = DDL("a bigint, b struct<c: string>, tags array<string>, v variant")

    assert schema == ShreddingSchema.object(
        {
            "v": ShreddingSchema.variant(),
            "tags": ShreddingSchema.array(pa.string()),
            "b": ShreddingSchema.object({"c": pa.string()}),
            "a": pa.int64(),
        }
    )
    assert schema.to_ddl() == "a bigint, b struct<c: string>, tags array<string>, v variant"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("struct<a bigint>", "a bigint"),
        ("a: bigint", "a bigint"),
        ("  a\n bigint ,b  int ", "a bigint, b int"),
        ("date date, string string, array array<int>, struct struct<x int>", None),
        ("a bigint NOT NULL COMMENT 'it''s'", None),
        ("a bigint not null, b int comment 'x'", "a bigint, b int"),
        ("`a.b` int, `` int, `x``y` int", None),
        ("ä int, 日本 int", None),
        ("array<array<array<decimal(2,1)>>>", None),
    ],
)
def test_spellings(text: str, same: str | None) -> None:
    if "''" in text:  # SQL doubles the quote, Spark's own DDL escapes it: only the latter is read
        with pytest.raises(SchemaError):
            DDL(text)
        return
    schema = DDL(text)
    assert DDL(schema.to_ddl()) == schema
    assert same is None or schema == DDL(same)


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("", 0, "field name"),
        ("a", 0, "unknown type 'a'"),
        ("a bigint,", 9, "field name"),
        ("a bigint b int", 9, "found 'b'"),
        ("a bigint, b strin", 12, "unknown type 'strin'"),
        ("ä bigint, b strin", 13, "unknown type"),
        ("a array<int", 11, "expected '>', found the end"),
        ("a array int", 8, "expected '<'"),
        ("a struct<>", 9, "without fields"),
        ("a decimal(39,2)", 2, "decimal(39,2)"),
        ("a decimal(5,6)", 2, "decimal(5,6)"),
        ("a decimal(x)", 10, "expected a number"),
        ("a int, a string", 7, "duplicate"),
        ("a int; b int", 5, "unexpected ';'"),
        ("`a int", 0, "unexpected '`'"),
        ("a map<string, int>", 2, "unknown type 'map'"),
        ("a interval", 2, "unknown type"),
        ("a void", 2, "unknown type"),
    ],
)
def test_an_error_says_where(text: str, offset: int, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        DDL(text)
    assert caught.value.reason in ("bad-ddl", "empty-object")
    assert message in caught.value.message
    assert caught.value.offset == offset


def test_nesting_beyond_the_limit_is_an_error_not_a_crash() -> None:
    with pytest.raises(SchemaError, match="nested deeper"):
        DDL("array<" * 100_000)
    assert DDL("array<" * 199 + "int" + ">" * 199).depth == 200
    with pytest.raises(SchemaError, match="nested deeper"):
        DDL("array<" * 200 + "int" + ">" * 200)


@given(testing.variants(max_leaves=30).flatmap(lambda value: testing.shredding_schemas([value])))
def test_what_is_written_is_read(schema: ShreddingSchema) -> None:
    assert DDL(schema.to_ddl()) == schema


@given(st.text(st.sampled_from("ab`<>(),: 1'é") | st.characters(codec="utf-8"), max_size=30))
def test_any_text_gives_a_schema_or_a_schema_error(text: str) -> None:
    try:
        schema = DDL(text)
    except SchemaError as error:
        assert error.offset is None or 0 <= error.offset <= len(text.encode())
    else:
        assert DDL(schema.to_ddl()) == schema


def test_columns_without_a_comma_are_shown_with_the_text() -> None:
    with pytest.raises(SchemaError, match="expected a comma or the end of 'a bigint b string', found 'b'"):
        ShreddingSchema.from_ddl("a bigint b string")
