"""The tree itself: invariants, walking, JSON, merge and diff."""

from __future__ import annotations

import pickle
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variant_strategies as testing
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError
from parquet_variant.layouts.reference.rows import slot_of
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import DDL_NAMES, common_numeric
from parquet_variant.types import TYPES
from parquet_variant.types.path import VariantPath

DDL = ShreddingSchema.from_ddl
schemas = testing.variants(max_leaves=12).flatmap(lambda value: testing.shredding_schemas([value]))


class TestTree:
    def test_fields_are_sorted_by_the_bytes_of_their_names(self) -> None:
        names = ["\U0001f600", "\uffff", "b", "B", "é", "", "a"]
        schema = ShreddingSchema.object(dict.fromkeys(names, pa.int8()))
        assert [name for name, _ in schema.fields] == sorted(names, key=str.encode)

    def test_equal_trees_are_equal_and_hash_alike_whatever_the_order(self) -> None:
        assert DDL("b int, a uuid") == DDL("a uuid, b int")
        assert len({DDL("b int, a uuid"), DDL("a uuid, b int"), DDL("a uuid, b bigint")}) == 2

    def test_every_type_of_the_type_table_is_a_primitive(self) -> None:
        for row in TYPES.values():
            if row.arrow is not None:
                assert ShreddingSchema.primitive(row.arrow).type == row.arrow

    @pytest.mark.parametrize(
        "arrow",
        [
            pa.uint8(),
            pa.large_string(),
            pa.timestamp("ms"),
            pa.timestamp("us", "+01:00"),
            pa.time64("ns"),
            pa.null(),
            pa.decimal128(5, -2),
            pa.decimal128(5, 6),
            pa.decimal256(10, 2),
            pa.list_(pa.int8()),
            pa.date64(),
        ],
        ids=str,
    )
    def test_other_types_are_refused(self, arrow: pa.DataType) -> None:
        with pytest.raises(SchemaError) as caught:
            ShreddingSchema.primitive(arrow)
        assert caught.value.reason in ("unsupported-type", "bad-decimal")

    def test_an_object_needs_a_field_and_names_are_text(self) -> None:
        for fields, reason in (({}, "empty-object"), ({"\ud800": pa.int8()}, "bad-name"), ({1: pa.int8()}, "bad-name")):
            with pytest.raises(SchemaError) as caught:
                ShreddingSchema.object(fields)  # type: ignore[arg-type]
            assert caught.value.reason == reason

    def test_parts_that_do_not_fit_the_kind_are_refused(self) -> None:
        for parts in ({"kind": "primitive"}, {"kind": "variant", "type": pa.int8()}, {"kind": "array"}):
            with pytest.raises(SchemaError):
                ShreddingSchema(**parts)  # type: ignore[arg-type]

    def test_walk_get_and_leaves_agree(self) -> None:
        schema = DDL("a array<struct<x: int, y: variant>>, `b c` date")
        walked = dict(schema.walk())
        assert [str(path) for path in walked] == [
            "$", "$['a']", "$['a'][*]", "$['a'][*]['x']", "$['a'][*]['y']", "$['b c']",
        ]  # fmt: skip
        assert all(schema.get(path) is node for path, node in walked.items())
        assert [str(path) for path, _ in schema.leaves()] == ["$['a'][*]['x']", "$['a'][*]['y']", "$['b c']"]
        assert schema.get("$.a[7].x") == ShreddingSchema.primitive(pa.int32())
        assert schema.get("$.a.x") is None
        assert schema.get(VariantPath(("b c", "d"))) is None

    def test_it_is_printed_as_a_tree(self) -> None:
        assert str(DDL("a struct<b: array<int>>, `\n` uuid, `` date")) == (
            "object\n├─ '': date\n├─ '\\n': uuid\n└─ a: object\n   └─ b: array\n      └─ [*]: int"
        )

    @given(schemas)
    def test_it_survives_pickle_json_and_storage(self, schema: ShreddingSchema) -> None:
        assert pickle.loads(pickle.dumps(schema)) == schema
        assert ShreddingSchema.from_json(schema.to_json()) == schema
        assert ShreddingSchema.of(schema.to_json()) == schema
        assert ShreddingSchema.from_storage(schema.storage_type()) == schema


class TestJson:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "1",
            "null",
            '"a int"',
            '"nope"',
            '{"array": "int", "object": {}}',
            '{"map": "int"}',
            '{"object": []}',
            '{"object": {}}',
            '{"object": {"a": "int", "a": "date"}}',
            "[" * 100000,
            '{"array":' * 300 + '"int"' + "}" * 300,
        ],
        ids=lambda text: text[:20],
    )
    def test_an_invalid_schema_is_refused(self, text: str) -> None:
        with pytest.raises(SchemaError):
            ShreddingSchema.from_json(text)

    def test_parsed_json_is_taken_too(self) -> None:
        assert ShreddingSchema.from_json({"array": "decimal(4, 1)"}) == DDL("array<decimal(4,1)>")


class TestMerge:
    @given(schemas, schemas, schemas)
    def test_it_is_associative_commutative_and_idempotent(
        self, a: ShreddingSchema, b: ShreddingSchema, c: ShreddingSchema
    ) -> None:
        assert a.merge(a) == a
        assert a.merge(b) == b.merge(a)
        assert a.merge(b).merge(c) == a.merge(b.merge(c))

    @given(st.data())
    def test_the_common_numeric_type_holds_every_value_of_both(self, data: st.DataObject) -> None:
        numeric = st.sampled_from([pa.int8(), pa.int16(), pa.int32(), pa.int64()]) | st.builds(
            lambda precision, scale: pa.decimal128(precision, min(precision, scale)),
            st.integers(1, 38),
            st.integers(0, 38),
        )
        a, b = data.draw(numeric), data.draw(numeric)
        common = common_numeric(a, b)
        for arrow in (a, b):
            if pa.types.is_decimal(arrow):
                largest = Decimal((0, (9,) * arrow.precision, -arrow.scale))
            else:
                largest = -(1 << (arrow.bit_width - 1))
            variant = Variant.from_python(largest)
            assert slot_of(variant, arrow) is not None
            if common is not None:
                assert slot_of(variant, common) is not None

    @pytest.mark.parametrize(
        ("a", "b", "merged"),
        [
            ("int", "bigint", "bigint"),
            ("bigint", "decimal(5,2)", "decimal(21,2)"),
            ("decimal(38,0)", "decimal(38,38)", "variant"),
            ("int", "double", "variant"),
            ("float", "double", "variant"),
            ("string", "int", "variant"),
            ("timestamp", "timestamp_ntz", "variant"),
            ("array<int>", "int", "variant"),
            ("array<int>", "array<string>", "array<variant>"),
            ("a int, b string", "b string, c date", "a int, b string, c date"),
            ("variant", "int", "variant"),
        ],
    )
    def test_examples(self, a: str, b: str, merged: str) -> None:
        assert DDL(a).merge(DDL(b)) == DDL(merged)


class TestDiff:
    @given(schemas, schemas)
    def test_nothing_changes_between_equals_and_back_is_the_reverse(
        self, a: ShreddingSchema, b: ShreddingSchema
    ) -> None:
        assert a.diff(a) == []
        assert [(c.path, c.after, c.before) for c in a.diff(b)] == [(c.path, c.before, c.after) for c in b.diff(a)]
        assert (a.diff(b) == []) == (a == b)

    def test_the_topmost_difference_is_reported_once(self) -> None:
        changes = DDL("a struct<x: int, y: int>, b array<int>, c int").diff(
            DDL("a struct<x: int>, b array<string>, c struct<z: int>, d date")
        )
        assert [str(change) for change in changes] == [
            "$.a.y: int -> (not shredded)",
            "$.b[*]: int -> string",
            "$.c: int -> struct<z int>",
            "$.d: (not shredded) -> date",
        ]


def test_ddl_names_cover_the_type_table() -> None:
    named = {*DDL_NAMES.values()}
    assert {row.arrow for row in TYPES.values() if row.arrow is not None and row.precision is None} == named
