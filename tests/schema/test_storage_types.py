"""Storage structs in and out: the final layout's rules, the drafts', and distinguishing them; Arrow schemas."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given

import variant_strategies as testing
from draft_schemas import object_storage_type, paths_storage_type
from parquet_variant.errors import SchemaError
from parquet_variant.layouts.layout import detect_layout
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storages import read_storage

DDL = ShreddingSchema.from_ddl
BINARY = pa.binary()
schemas = testing.variants(max_leaves=12).flatmap(lambda value: testing.shredding_schemas([value]))


def column(**fields: pa.DataType) -> pa.StructType:
    return pa.struct({"metadata": BINARY, **fields})


class TestFinal:
    @pytest.mark.parametrize(
        ("storage", "ddl"),
        [
            (column(value=BINARY), "variant"),
            (column(value=BINARY, typed_value=pa.int64()), "bigint"),
            (column(typed_value=pa.int64()), "bigint"),
            (pa.struct({"typed_value": pa.int8(), "value": BINARY, "metadata": BINARY}), "tinyint"),
            (column(value=BINARY, typed_value=pa.struct({"a": pa.struct({"value": BINARY})})), "a variant"),
            (column(typed_value=pa.struct({"a": pa.struct({"typed_value": pa.date32()})})), "a date"),
            (column(typed_value=pa.struct({"_a": pa.struct({"value": BINARY})})), "_a variant"),
            (column(typed_value=pa.list_(pa.struct({"typed_value": pa.string()}))), "array<string>"),
            (column(typed_value=pa.large_list(pa.struct({"value": BINARY}))), "array<variant>"),
            (column(value=BINARY, typed_value=pa.bool_(), _future=pa.list_(pa.int8())), "boolean"),
            (
                pa.struct({"metadata": pa.dictionary(pa.int32(), BINARY), "value": pa.binary_view()}),
                "variant",
            ),
        ],
        ids=lambda given: given if isinstance(given, str) else "",
    )
    def test_shapes_that_are_read(self, storage: pa.StructType, ddl: str) -> None:
        assert ShreddingSchema.from_storage(storage) == DDL(ddl)

    @pytest.mark.parametrize(
        ("typed", "ddl"),
        [
            (pa.large_string(), "string"), (pa.string_view(), "string"), (pa.large_binary(), "binary"),
            (pa.dictionary(pa.int32(), pa.string()), "string"),
            (pa.decimal32(9, 2), "decimal(9,2)"), (pa.decimal64(18, 2), "decimal(18,2)"),
            (pa.decimal256(38, 2), "decimal(38,2)"), (pa.binary(16), "uuid"),
            (pa.timestamp("us", "Europe/Berlin"), "timestamp"), (pa.timestamp("ns", "+00:00"), "timestamp_nanos"),
        ],
    )  # fmt: skip
    def test_arrow_forms_of_the_allowed_types_are_read(self, typed: pa.DataType, ddl: str) -> None:
        assert ShreddingSchema.from_storage(column(value=BINARY, typed_value=typed)) == DDL(ddl)

    @pytest.mark.parametrize(
        "typed",
        [
            pa.uint8(),
            pa.uint16(),
            pa.uint32(),
            pa.uint64(),
            pa.float16(),
            pa.date64(),
            pa.null(),
            pa.binary(4),
            pa.timestamp("ms"),
            pa.timestamp("s", "UTC"),
            pa.time32("ms"),
            pa.time64("ns"),
            pa.duration("us"),
            pa.decimal256(39, 2),
            pa.decimal128(5, -1),
            pa.decimal128(3, 4),
            pa.map_(pa.string(), pa.int8()),
        ],
        ids=str,
    )
    def test_unlisted_types_are_refused_at_their_path(self, typed: pa.DataType) -> None:
        storage = column(value=BINARY, typed_value=pa.struct({"a": pa.struct({"typed_value": typed})}))
        with pytest.raises(SchemaError) as caught:
            ShreddingSchema.from_storage(storage)
        assert (caught.value.reason, caught.value.path) == ("unsupported-type", "$['a']")

    @pytest.mark.parametrize(
        ("storage", "reason"),
        [
            (pa.int64(), "not-a-group"),
            (pa.struct({"value": BINARY}), "no-metadata"),
            (column(), "no-value"),
            (pa.struct({"metadata": pa.string(), "value": BINARY}), "not-binary"),
            (column(value=pa.string()), "not-binary"),
            (column(value=BINARY, extra=BINARY), "unknown-field"),
            (column(typed_value=pa.struct({"a": pa.struct({"value": BINARY, "metadata": BINARY})})), "unknown-field"),
            (column(typed_value=pa.struct({"a": pa.int64()})), "not-a-group"),
            (column(typed_value=pa.struct({"a": pa.struct({"_x": BINARY})})), "no-value"),
            (column(typed_value=pa.struct([])), "empty-object"),
            (column(typed_value=pa.list_(pa.int64())), "not-a-group"),
            (column(typed_value=pa.list_(pa.struct([]))), "no-value"),
            (pa.struct([("metadata", BINARY), ("value", BINARY), ("value", BINARY)]), "duplicate-field"),
        ],
        ids=lambda given: given if isinstance(given, str) else "",
    )
    def test_shapes_that_are_refused(self, storage: pa.DataType, reason: str) -> None:
        with pytest.raises(SchemaError) as caught:
            ShreddingSchema.from_storage(storage)
        assert caught.value.reason == reason

    def test_nullability_of_the_canonical_form(self) -> None:
        storage = DDL("a array<int>").storage_type()
        a = storage.field("typed_value").type.field("a")
        assert (storage.field("metadata").nullable, storage.field("value").nullable) == (False, True)
        assert (a.nullable, a.type.field("typed_value").nullable) == (False, True)
        element = a.type.field("typed_value").type.value_field
        assert (element.name, element.nullable, element.type.field("value").nullable) == ("element", False, True)
        assert not DDL("variant").storage_type().field("value").nullable


class TestDrafts:
    @given(schemas)
    def test_what_is_written_is_read_in_every_layout(self, schema: ShreddingSchema) -> None:
        assert ShreddingSchema.from_storage(object_storage_type(schema.type_tree())) == schema
        assert ShreddingSchema.from_storage(paths_storage_type(schema.type_tree())) == schema
        assert ShreddingSchema.from_storage(paths_storage_type(schema.type_tree(), whole_arrays=True)) == schema
        for storage in (
            schema.storage_type(),
            paths_storage_type(schema.type_tree()),
            object_storage_type(schema.type_tree()),
        ):
            assert ShreddingSchema.from_storage(storage) == schema

    @pytest.mark.parametrize(
        ("paths", "ddl"),
        [
            (pa.struct({"typed_value": pa.int64()}), "bigint"),
            (pa.struct({"untyped_value": BINARY}), "variant"),
            (pa.struct({"typed_value": pa.list_(pa.int8()), "untyped_value": BINARY}), "array<tinyint>"),
            (pa.struct({"typed_value": pa.struct({"x": pa.int8()}), "untyped_value": BINARY}), "x tinyint"),
            (pa.struct({"typed_value": pa.struct({"untyped_value": BINARY})}), "typed_value variant"),
            (
                pa.struct({"untyped_value": pa.list_(pa.struct({"untyped_value": BINARY}))}),
                "untyped_value array<variant>",
            ),
        ],
        ids=lambda given: given if isinstance(given, str) else "",
    )
    def test_leaves_of_paths_are_distinguished_from_objects(self, paths: pa.DataType, ddl: str) -> None:
        assert ShreddingSchema.from_storage(pa.struct({"value": BINARY, "metadata": BINARY, "paths": paths})) == DDL(
            ddl
        )

    @pytest.mark.parametrize(
        ("paths", "reason"),
        [
            (pa.int64(), "not-a-group"),
            (pa.struct([]), "empty-object"),
            (pa.struct({"a": BINARY}), "not-a-group"),
            (pa.struct({"typed_value": pa.uint8(), "untyped_value": BINARY}), "unsupported-type"),
            (pa.struct({"typed_value": pa.int8(), "other": BINARY}), "unknown-field"),
            (pa.struct({"typed_value": pa.list_(pa.uint8()), "untyped_value": BINARY}), "unsupported-type"),
        ],
        ids=lambda given: given if isinstance(given, str) else "",
    )
    def test_paths_that_are_refused(self, paths: pa.DataType, reason: str) -> None:
        with pytest.raises(SchemaError) as caught:
            ShreddingSchema.from_storage(pa.struct({"value": BINARY, "metadata": BINARY, "paths": paths}))
        assert caught.value.reason == reason

    @pytest.mark.parametrize(
        ("storage", "reason"),
        [
            (pa.struct({"untyped_value": BINARY, "extra": BINARY}), "unknown-field"),
            (pa.struct({"_spark": BINARY}), "no-value"),
            (pa.struct({"untyped_value": pa.string()}), "not-binary"),
            (pa.struct({"array": pa.struct({"a": BINARY})}), "not-a-list"),
            (pa.struct({"object": pa.struct([])}), "empty-object"),
            (pa.struct({"object": pa.struct({"a": pa.int8()})}), "not-a-group"),
            (pa.struct({"typed_value": pa.uint8()}), "unsupported-type"),
        ],
        ids=lambda given: given if isinstance(given, str) else "",
    )
    def test_groups_of_draft_object_that_are_refused(self, storage: pa.DataType, reason: str) -> None:
        with pytest.raises(SchemaError) as caught:
            read_storage(storage, "draft-object")
        assert caught.value.reason == reason


class TestDetection:
    @pytest.mark.parametrize(
        ("names", "layout"),
        [
            ("metadata value", "unshredded"),
            ("value metadata _extra", "unshredded"),
            ("metadata value typed_value", "final"),
            ("metadata typed_value", "final"),
            ("value metadata paths", "draft-paths"),
            ("paths", "draft-paths"),
            ("untyped_value", "draft-object"),
            ("untyped_value object array typed_value _metadata_key_paths", "draft-object"),
            ("typed_value", "draft-object"),
        ],
    )
    def test_the_names_tell_the_layout(self, names: str, layout: str) -> None:
        assert detect_layout(pa.struct(dict.fromkeys(names.split(), BINARY))) == layout

    @pytest.mark.parametrize("names", ["", "a b", "metadata", "value", "value typed_value", "untyped_value a"])
    def test_other_groups_are_not_variants(self, names: str) -> None:
        with pytest.raises(SchemaError) as caught:
            detect_layout(pa.struct(dict.fromkeys(names.split(), BINARY)))
        assert caught.value.reason == "not-a-variant"


class TestArrow:
    @given(schemas)
    def test_the_logical_type_is_read_back(self, schema: ShreddingSchema) -> None:
        assert ShreddingSchema.from_arrow(schema.to_arrow()) == schema

    @pytest.mark.parametrize(
        ("arrow", "ddl"),
        [
            (pa.uint8(), "smallint"), (pa.uint16(), "int"), (pa.uint32(), "bigint"), (pa.uint64(), "decimal(20,0)"),
            (pa.large_string(), "string"), (pa.string_view(), "string"),
            (pa.dictionary(pa.int8(), pa.int16()), "smallint"), (pa.decimal32(5, 2), "decimal(5,2)"),
            (pa.decimal128(5, -2), "decimal(7,0)"), (pa.float16(), "float"),
            (pa.timestamp("s"), "timestamp_ntz"), (pa.timestamp("ms", "Asia/Tokyo"), "timestamp"),
            (pa.time32("s"), "time"), (pa.date64(), "date"), (pa.binary(16), "binary"), (pa.null(), "variant"),
            (pa.map_(pa.string(), pa.int8()), "variant"), (pa.list_(pa.int8(), 3), "array<tinyint>"),
            (pa.large_list(pa.list_view(pa.int8())), "array<array<tinyint>>"), (pa.struct([]), "variant"),
            (pa.struct({"value": pa.binary(), "metadata": pa.binary()}), "variant"),
        ],
        ids=str,
    )  # fmt: skip
    def test_other_arrow_types_are_normalised(self, arrow: pa.DataType, ddl: str) -> None:
        assert ShreddingSchema.from_arrow(arrow) == DDL(ddl)
        assert ShreddingSchema.from_arrow(pa.schema({"x": arrow})) == ShreddingSchema.object({"x": DDL(ddl)})

    @pytest.mark.parametrize("arrow", [pa.duration("s"), pa.time64("ns"), pa.decimal256(50, 2)], ids=str)
    def test_types_that_no_variant_type_holds_are_refused(self, arrow: pa.DataType) -> None:
        with pytest.raises(SchemaError) as caught:
            ShreddingSchema.from_arrow(pa.schema({"x": pa.list_(arrow)}))
        assert (caught.value.reason, caught.value.path) == ("unsupported-type", "$['x'][*]")
