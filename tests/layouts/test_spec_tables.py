"""Every line of the tables, and every example, of the three shredding documents.

The object table's field `event_ts` is INT64 TIMESTAMP(true, MICROS); its numbers are the micros.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from draft_schemas import object_storage_type, paths_storage_type
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import ConflictError
from parquet_variant.layouts.reference.rows import array_of_rows, draft_object, draft_paths, final, rows_of_array
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.types import VariantType

DDL = ShreddingSchema.from_ddl
V = Variant.from_python
NULL = b"\x00"


def instant(micros: int) -> Variant:
    return Variant(b"\x11\x00\x00", encode_scalar(VariantType.TIMESTAMP, micros))


class TestFinalMeasurementTable:
    """Spec: "Value Shredding", the series 34, null, "n/a", 100."""

    schema = DDL("bigint")

    # The document prints 13 for the header of "n/a"; by its own encoding a short string of 3 bytes has 3 << 2 | 1.
    @pytest.mark.parametrize(
        ("value", "stored", "typed"),
        [(34, None, 34), (None, NULL, None), ("n/a", b"\x0dn/a", None), (100, None, 100)],
        ids=["34", "null", "n/a", "100"],
    )
    def test_line(self, value: Any, stored: bytes | None, typed: int | None) -> None:
        row = final.shred_value(V(value), self.schema)

        assert row == {"metadata": V(value).metadata, "value": stored, "typed_value": typed}
        assert final.reconstruct(row, self.schema) == V(value)

    def test_both_null_reads_as_variant_null_where_a_variant_is_required(self) -> None:
        row = {"metadata": b"\x01\x00\x00", "value": None, "typed_value": None}

        assert final.reconstruct(row, self.schema) == V(None)

    def test_both_set_on_a_primitive_is_a_conflict(self) -> None:
        row = {"metadata": b"\x01\x00\x00", "value": NULL, "typed_value": 34}

        with pytest.raises(ConflictError) as caught:
            final.reconstruct(row, self.schema)
        assert (caught.value.reason, caught.value.path) == ("both-set", "$")
        assert final.reconstruct(row, self.schema, "typed") == V(34)


class TestFinalArrayTable:
    """Spec: "Arrays", the series of `tags`."""

    schema = DDL("array<string>")

    @pytest.mark.parametrize(
        ("value", "stored", "elements"),
        [
            (["comedy", "drama"], None, [(None, "comedy"), (None, "drama")]),
            (["horror", None], None, [(None, "horror"), (NULL, None)]),
            (["comedy", "drama", "romance"], None, [(None, "comedy"), (None, "drama"), (None, "romance")]),
            (None, NULL, None),
        ],
        ids=["all strings", "a null element", "three strings", "null"],
    )
    def test_line(self, value: Any, stored: bytes | None, elements: list[tuple[Any, Any]] | None) -> None:
        row = final.shred_value(V(value), self.schema)

        assert row is not None and row["value"] == stored
        typed = row["typed_value"]
        assert elements == (None if typed is None else [(one["value"], one["typed_value"]) for one in typed])
        assert final.reconstruct(row, self.schema) == V(value)

    def test_an_element_that_is_missing_reads_as_variant_null(self) -> None:
        row = {
            "metadata": b"\x01\x00\x00",
            "value": None,
            "typed_value": [{"value": None, "typed_value": None}, {"value": None, "typed_value": "a"}],
        }
        assert final.reconstruct(row, self.schema) == V([None, "a"])

    def test_an_array_in_value_is_a_conflict(self) -> None:
        array = V(["a"])
        row = {"metadata": array.metadata, "value": array.value, "typed_value": None}

        with pytest.raises(ConflictError, match="array") as caught:
            final.reconstruct(row, self.schema)
        assert caught.value.reason == "array-in-value"
        assert final.reconstruct(row, self.schema, "typed") == array


EVENT = DDL("event_type string, event_ts timestamp")
T = 1729794114937
MISSING = (None, None)


def event_row(metadata: bytes, value: bytes | None, groups: dict[str, tuple[Any, Any]] | None) -> dict[str, Any]:
    typed = groups and {
        name: {"value": value, "typed_value": typed_value} for name, (value, typed_value) in groups.items()
    }
    return {"metadata": metadata, "value": value, "typed_value": typed}


# name: the object, the residual as an object (or a value), the two columns of each field (None: typed_value is null)
OBJECT_TABLE: dict[str, tuple[Any, Any, dict[str, tuple[Any, Any]] | None]] = {
    "fully shredded object": (
        {"event_type": "noop", "event_ts": instant(T)},
        None,
        {"event_type": (None, "noop"), "event_ts": (None, T)},
    ),
    "partially shredded object": (
        {"event_type": "login", "event_ts": instant(T), "email": "user@example.com"},
        {"email": "user@example.com"},
        {"event_type": (None, "login"), "event_ts": (None, T)},
    ),
    "object with all shredded fields missing": (
        {"error_msg": "malformed: ..."},
        {"error_msg": "malformed: ..."},
        {"event_type": MISSING, "event_ts": MISSING},
    ),
    "not an object": ("malformed: not an object", "malformed: not an object", None),
    "field event_type is missing": (
        {"event_ts": instant(T), "click": "_button"},
        {"click": "_button"},
        {"event_type": MISSING, "event_ts": (None, T)},
    ),
    "field event_type is present and is null": (
        {"event_type": None, "event_ts": instant(T)},
        None,
        {"event_type": (NULL, None), "event_ts": (None, T)},
    ),
    "field event_ts is present but not a timestamp": (
        {"event_type": "noop", "event_ts": "2024-10-24"},
        None,
        {"event_type": (None, "noop"), "event_ts": (V("2024-10-24").value, None)},
    ),
    "object is present but empty": ({}, None, {"event_type": MISSING, "event_ts": MISSING}),
    "object/value is null": (None, None, None),
}


class TestFinalObjectTable:
    """Spec: "Objects", the table of events."""

    @pytest.mark.parametrize("line", OBJECT_TABLE)
    def test_valid_line(self, line: str) -> None:
        value, residual, groups = OBJECT_TABLE[line]
        variant = V(value)
        row = final.shred_value(variant, EVENT)
        assert row is not None

        assert row["metadata"] == variant.metadata
        if groups is None:
            assert (row["value"], row["typed_value"]) == (variant.value, None)
        else:
            assert row["typed_value"] == event_row(b"", None, groups)["typed_value"]
            kept = None if row["value"] is None else Variant(row["metadata"], row["value"])
            assert kept == (None if residual is None else V(residual))
        assert final.reconstruct(row, EVENT) == variant

    def test_object_value_is_missing(self) -> None:
        # As a field of an object: both columns null. As a column: SQL NULL, or Variant null where one is required.
        outer = ShreddingSchema.object({"event": EVENT})
        row = final.shred_value(V({}), outer)
        assert row is not None and row["typed_value"] == {"event": {"value": None, "typed_value": None}}
        assert final.reconstruct(row, outer) == V({})
        assert final.shred_value(None, EVENT) is None
        assert final.reconstruct(None, EVENT) is None
        assert final.reconstruct(event_row(b"\x01\x00\x00", None, None), EVENT) == V(None)

    def test_invalid_shredded_field_is_present_in_value(self) -> None:
        whole = V({"event_type": "login", "event_ts": instant(T)})
        residual = Variant(whole.metadata, final.shred_value(whole, DDL("event_ts timestamp"))["value"])  # type: ignore[index]
        assert residual == V({"event_type": "login"})
        row = event_row(whole.metadata, residual.value, {"event_type": (None, "changed"), "event_ts": (None, T)})

        with pytest.raises(ConflictError) as caught:
            final.reconstruct(row, EVENT)
        assert (caught.value.reason, caught.value.path) == ("shredded-field-in-value", "$['event_type']")
        assert final.reconstruct(row, EVENT, "typed") == V({"event_type": "changed", "event_ts": instant(T)})

    def test_invalid_shredded_field_is_present_in_value_and_its_columns_are_null(self) -> None:
        value = V({"event_type": "login"})
        row = event_row(value.metadata, value.value, {"event_type": MISSING, "event_ts": MISSING})

        with pytest.raises(ConflictError, match="shredded"):
            final.reconstruct(row, EVENT)
        assert final.reconstruct(row, EVENT, "typed") == V({})  # as a reader of the field's columns sees it

    def test_invalid_shredded_field_is_present_in_value_while_typed_value_is_null(self) -> None:
        value = V({"event_type": "login"})
        row = event_row(value.metadata, value.value, None)

        with pytest.raises(ConflictError) as caught:
            final.reconstruct(row, EVENT)
        assert (caught.value.reason, caught.value.path) == ("object-in-value", "$")
        assert final.reconstruct(row, EVENT, "typed") == value

    def test_invalid_typed_value_is_present_and_value_is_not_an_object(self) -> None:
        row = event_row(b"\x01\x00\x00", V("a").value, {"event_type": MISSING, "event_ts": MISSING})

        with pytest.raises(ConflictError) as caught:
            final.reconstruct(row, EVENT)
        assert (caught.value.reason, caught.value.path) == ("non-object-value", "$")
        assert final.reconstruct(row, EVENT, "typed") == V({})

    def test_invalid_typed_value_is_null_for_an_empty_object(self) -> None:
        row = event_row(b"\x01\x00\x00", bytes.fromhex("020000"), None)

        with pytest.raises(ConflictError) as caught:
            final.reconstruct(row, EVENT)
        assert (caught.value.reason, caught.value.path) == ("object-in-value", "$")
        assert final.reconstruct(row, EVENT, "typed") == V({})

    def test_both_columns_of_a_field_set_is_a_conflict_at_the_field(self) -> None:
        metadata = V({"event_type": 1, "event_ts": 1}).metadata
        row = event_row(metadata, None, {"event_type": (NULL, "noop"), "event_ts": (None, T)})

        with pytest.raises(ConflictError) as caught:
            final.reconstruct(row, EVENT)
        assert (caught.value.reason, caught.value.path) == ("both-set", "$['event_type']")
        assert final.reconstruct(row, EVENT, "typed") == V({"event_type": "noop", "event_ts": instant(T)})


NESTED = DDL(
    "event_type string, event_ts timestamp, location struct<latitude: double, longitude: double>, tags array<string>"
)


class TestFinalNestingExample:
    """Spec: "Nesting"."""

    def test_storage_type_is_the_printed_one(self) -> None:
        pair = "struct<value: binary, typed_value: {}> not null"
        string, double = pair.format("string"), pair.format("double")
        location = pair.format(f"struct<latitude: {double}, longitude: {double}>")
        tags = pair.format(f"list<element: {string}>")
        assert str(NESTED.storage_type()) == (
            "struct<metadata: binary not null, value: binary, typed_value: "
            f"struct<event_ts: {pair.format('timestamp[us, tz=UTC]')}, event_type: {string}, "
            f"location: {location}, tags: {tags}>>"
        )

    def test_an_event_goes_through_arrow_and_back(self) -> None:
        value = V(
            {
                "event_type": "login",
                "event_ts": instant(T),
                "location": {"latitude": 1.5, "longitude": "far", "height": 3},
                "tags": ["a", 7, None, ["b"]],
                "more": {"x": []},
            }
        )
        storage = NESTED.storage_type()
        [row] = rows_of_array(array_of_rows([final.shred_value(value, NESTED)], storage))

        location = row["typed_value"]["location"]
        assert Variant(row["metadata"], location["value"]) == V({"height": 3})
        assert location["typed_value"]["longitude"] == {"value": V("far").value, "typed_value": None}
        assert [one["typed_value"] for one in row["typed_value"]["tags"]["typed_value"]] == ["a", None, None, None]
        assert Variant(row["metadata"], row["value"]) == V({"more": {"x": []}})
        assert final.reconstruct(row, storage) == value
        assert final.reconstruct(row, storage).metadata == value.metadata  # type: ignore[union-attr]


def shown(combined: bytes | None) -> Any:
    return None if combined is None else Variant.from_bytes(combined).to_python()


class TestDraftPathsTable:
    """Draft 1: "Parquet Example". The document prints {c: 123} for what is left of {a: 123, c: 456}."""

    schema = DDL("a bigint, b string")

    @pytest.mark.parametrize(
        ("value", "top", "in_a", "in_b"),
        [
            ({"a": 123, "b": "hello"}, None, ("typed", 123), ("typed", "hello")),
            ({"a": V(1.23), "b": "123"}, None, ("untyped", 1.23), ("typed", "123")),
            ({"a": [1, 2, 3], "b": None}, None, ("untyped", [1, 2, 3]), ("untyped", None)),
            ({"a": 123, "c": 456}, {"c": 456}, ("typed", 123), None),
            ([{"a": 1, "b": 2}, {"a": 3, "b": 4}], [{"a": 1, "b": 2}, {"a": 3, "b": 4}], None, None),
        ],
        ids=["both typed", "a untyped", "both untyped", "c is left", "an array is left"],
    )
    def test_line(self, value: Any, top: Any, in_a: Any, in_b: Any) -> None:
        storage = paths_storage_type(self.schema.type_tree())
        [row] = rows_of_array(array_of_rows([draft_paths.shred_value(V(value), self.schema)], storage))

        assert (row["metadata"] is None) == (row["value"] is None) == (top is None)
        if top is not None:
            assert Variant(row["metadata"], row["value"]).to_python() == top
        for name, expected in (("a", in_a), ("b", in_b)):
            leaf = row["paths"] and row["paths"][name]
            if expected is None:
                assert leaf is None
            elif expected[0] == "typed":
                assert leaf == {"typed_value": expected[1], "untyped_value": None}
            else:
                assert leaf["typed_value"] is None
                assert shown(leaf["untyped_value"]) == expected[1]
        assert draft_paths.reconstruct(row, storage) == V(value)

    def test_top_level_metadata_has_only_the_names_of_the_residual(self) -> None:
        row = draft_paths.shred_value(V({"a": 123, "zebra": {"y": 1}, "b": {"q": 1}}), self.schema)
        assert row is not None
        assert row["metadata"] == V({"zebra": {"y": 0}}).metadata
        assert Variant.from_bytes(row["paths"]["b"]["untyped_value"]).metadata == V({"q": 0}).metadata


class TestDraftPathsLeafTable:
    """Draft 1: "Parquet Layout", the meaning of the two columns."""

    schema = DDL("a bigint")

    @staticmethod
    def row(typed: Any, untyped: bytes | None) -> dict[str, Any]:
        return {"value": None, "metadata": None, "paths": {"a": {"typed_value": typed, "untyped_value": untyped}}}

    def test_null_and_null_is_missing(self) -> None:
        assert draft_paths.reconstruct(self.row(None, None), self.schema) == V({})

    def test_null_and_non_null_is_any_type(self) -> None:
        assert draft_paths.reconstruct(self.row(None, V("x").to_bytes()), self.schema) == V({"a": "x"})

    def test_non_null_and_null_is_the_column_s_type(self) -> None:
        value = draft_paths.reconstruct(self.row(1, None), self.schema)
        assert value is not None and value["a"].type == VariantType.INT64

    def test_non_null_and_non_null_is_invalid(self) -> None:
        with pytest.raises(ConflictError) as caught:
            draft_paths.reconstruct(self.row(1, V("x").to_bytes()), self.schema)
        assert (caught.value.reason, caught.value.path) == ("both-set", "$['a']")
        assert draft_paths.reconstruct(self.row(1, V("x").to_bytes()), self.schema, "typed") == V({"a": 1})

    @pytest.mark.parametrize("value", [{"a": 1}, {"a": "x"}, {"a": None}, {}, {"a": "x", "b": 2}, None, [1]])
    @pytest.mark.parametrize("columns", [["typed_value"], ["untyped_value"], ["typed_value", "untyped_value"]])
    def test_a_leaf_may_have_one_column_only(self, value: Any, columns: list[str]) -> None:
        types = {"typed_value": pa.int64(), "untyped_value": pa.binary()}
        leaf = pa.struct({name: types[name] for name in columns})
        storage = pa.struct({"value": pa.binary(), "metadata": pa.binary(), "paths": pa.struct({"a": leaf})})
        [row] = rows_of_array(array_of_rows([draft_paths.shred_value(V(value), storage)], storage))

        assert draft_paths.reconstruct(row, storage) == V(value)
        if value == {"a": "x"} and columns == ["typed_value"]:
            assert Variant(row["metadata"], row["value"]) == V({"a": "x"})

    def test_the_combined_binary_of_the_document_is_read(self) -> None:
        # hdr 01, size 01, offsets 00 02, "hi", then the value: {hi: null}
        combined = bytes.fromhex("01010002") + b"hi" + bytes.fromhex("020100000100")
        row = self.row(None, combined)
        assert draft_paths.reconstruct(row, self.schema) == V({"a": {"hi": None}})

    def test_paths_may_be_a_leaf_itself(self) -> None:
        for value in (7, "x", None, {"a": 1}):
            row = draft_paths.shred_value(V(value), DDL("bigint"))
            assert row is not None and row["value"] is None
            assert (row["paths"]["typed_value"] is None) == (value != 7)
            assert draft_paths.reconstruct(row, DDL("bigint")) == V(value)


DRAFT_ARRAY = DDL("array<struct<a: array<bigint>, b: bigint>>")
FULLY = [{"a": [1, 2, 3], "b": 100}, {"a": [4, 5, 6], "b": 200}]
MIXED = [{"a": [1, 2, 3], "b": 100, "c": "unexpected"}, {"a": [4, 5, 6], "b": 200}, "not an object"]


class TestDraftPathsNestedExample:
    """Draft 1: "Nested Parquet Example"."""

    def test_storage_type_is_the_printed_one(self) -> None:
        leaf = "struct<typed_value: int64, untyped_value: binary>"
        assert str(paths_storage_type(DRAFT_ARRAY.type_tree())) == (
            f"struct<value: binary, metadata: binary, paths: "
            f"list<element: struct<a: list<element: {leaf}>, b: {leaf}>>>"
        )

    def test_the_first_sample_is_fully_shredded(self) -> None:
        row = draft_paths.shred_value(V(FULLY), DRAFT_ARRAY)
        assert row is not None
        assert (row["value"], row["metadata"]) == (None, None)
        assert [leaf["typed_value"] for leaf in row["paths"][1]["a"]] == [4, 5, 6]
        assert draft_paths.reconstruct(row, DRAFT_ARRAY) == V(FULLY)

    def test_fully_shredded_elements_stand_as_variant_null_in_the_residual(self) -> None:
        row = draft_paths.shred_value(V(MIXED), DRAFT_ARRAY)
        assert row is not None
        assert Variant(row["metadata"], row["value"]) == V([{"c": "unexpected"}, None, "not an object"])
        assert row["paths"][2] is None
        assert draft_paths.reconstruct(row, DRAFT_ARRAY) == V(MIXED)

    def test_null_elements_and_placeholders_are_distinguished(self) -> None:
        value = V([None, {}, {"b": None}, {"a": []}, {"x": 1}, [None], [[]]])
        storage = paths_storage_type(DRAFT_ARRAY.type_tree())
        [row] = rows_of_array(array_of_rows([draft_paths.shred_value(value, DRAFT_ARRAY)], storage))
        assert draft_paths.reconstruct(row, storage) == value

    def test_a_value_that_is_not_an_array_is_stored_at_the_top(self) -> None:
        row = draft_paths.shred_value(V({"a": 1}), DRAFT_ARRAY)
        assert row is not None and row["paths"] is None
        assert draft_paths.reconstruct(row, DRAFT_ARRAY) == V({"a": 1})

    def test_a_residual_of_another_size_is_a_conflict(self) -> None:
        row = draft_paths.shred_value(V(MIXED), DRAFT_ARRAY)
        assert row is not None
        row["paths"].pop()
        with pytest.raises(ConflictError) as caught:
            draft_paths.reconstruct(row, DRAFT_ARRAY)
        assert caught.value.reason == "array-size"

    def test_a_residual_that_is_not_an_object_next_to_shredded_fields_is_a_conflict(self) -> None:
        row = draft_paths.shred_value(V({"a": 1}), DDL("a bigint"))
        assert row is not None
        row |= {"metadata": V(7).metadata, "value": V(7).value}
        with pytest.raises(ConflictError) as caught:
            draft_paths.reconstruct(row, DDL("a bigint"))
        assert caught.value.reason == "non-object-value"
        assert draft_paths.reconstruct(row, DDL("a bigint"), "typed") == V({"a": 1})


class TestDraftPathsAlternativeSchema:
    """Draft 1: the last example, where `typed_value` is a list."""

    storage = paths_storage_type(DRAFT_ARRAY.type_tree(), whole_arrays=True)

    def test_storage_type_is_the_printed_one(self) -> None:
        assert str(self.storage) == (
            "struct<value: binary, metadata: binary, paths: list<element: struct<"
            "a: struct<typed_value: list<element: int64>, untyped_value: binary>, "
            "b: struct<typed_value: int64, untyped_value: binary>>>>"
        )

    @pytest.mark.parametrize(
        ("array", "typed"), [([1, 2, 3], [1, 2, 3]), ([1, "x"], None), ([1, None], None), ("x", None), ([], [])]
    )
    def test_one_element_of_another_type_sends_the_whole_array_to_untyped_value(self, array: Any, typed: Any) -> None:
        value = V([{"a": array}])
        [row] = rows_of_array(array_of_rows([draft_paths.shred_value(value, self.storage)], self.storage))

        leaf = row["paths"][0]["a"]
        assert leaf["typed_value"] == typed
        assert shown(leaf["untyped_value"]) == (array if typed is None else None)
        assert draft_paths.reconstruct(row, self.storage) == value

    def test_a_null_in_a_list_of_another_writer_is_variant_null(self) -> None:
        leaf = {"typed_value": [1, None], "untyped_value": None}
        row = {"value": None, "metadata": None, "paths": [{"a": leaf, "b": None}]}
        assert draft_paths.reconstruct(row, self.storage) == V([{"a": [1, None]}])

    def test_a_nested_typed_value_without_untyped_value_is_a_field_of_that_name(self) -> None:
        below = pa.struct({"untyped_value": pa.binary()})
        storage = pa.struct(
            {
                "value": pa.binary(),
                "metadata": pa.binary(),
                "paths": pa.struct({"typed_value": below, "untyped_value": below}),
            }
        )
        value = V({"typed_value": 1, "untyped_value": [2], "x": 3})
        row = draft_paths.shred_value(value, storage)
        assert row is not None
        assert shown(row["paths"]["untyped_value"]["untyped_value"]) == [2]
        assert draft_paths.reconstruct(row, storage) == value


class TestDraftObjectTable:
    """Draft 2: "Parquet Example"."""

    schema = DDL("a bigint, b struct<c: string>")

    def test_storage_type_is_the_printed_one(self) -> None:
        assert str(object_storage_type(self.schema.type_tree())) == (
            "struct<untyped_value: binary, object: struct<"
            "a: struct<untyped_value: binary, typed_value: int64>, "
            "b: struct<untyped_value: binary, object: struct<c: struct<untyped_value: binary, typed_value: string>>>>>"
        )

    @pytest.mark.parametrize(
        ("value", "top", "b_untyped", "in_a", "in_c"),
        [
            ({"a": 123, "b": {"c": "hello"}}, None, None, "typed_value", "typed_value"),
            ({"a": 1.23, "b": {"c": "123"}}, None, None, "untyped_value", "typed_value"),
            ({"a": [1, 2, 3], "b": {"c": None}}, None, None, "untyped_value", "untyped_value"),
            ({"a": 123, "c": 456}, {"c": 456}, None, "typed_value", None),
            ({"a": 123, "b": {"c": "hello", "d": 456}}, None, {"d": 456}, "typed_value", "typed_value"),
            (
                [{"a": 1, "b": {"c": 2}}, {"a": 3, "b": {"c": 4}}],
                [{"a": 1, "b": {"c": 2}}, {"a": 3, "b": {"c": 4}}],
                None,
                None,
                None,
            ),
        ],
        ids=["both typed", "a untyped", "both untyped", "c is left", "d is left in b", "an array is left"],
    )
    def test_line(self, value: Any, top: Any, b_untyped: Any, in_a: str | None, in_c: str | None) -> None:
        storage = object_storage_type(self.schema.type_tree())
        [row] = rows_of_array(array_of_rows([draft_object.shred_value(V(value), self.schema)], storage))

        assert shown(row["untyped_value"]) == top
        fields = row["object"] or {"a": None, "b": None}
        b = fields["b"] or {"untyped_value": None, "object": None}
        assert shown(b["untyped_value"]) == b_untyped
        for group, expected in ((fields["a"], in_a), ((b["object"] or {}).get("c"), in_c)):
            there = [name for name in ("typed_value", "untyped_value") if group and group[name] is not None]
            assert there == ([] if expected is None else [expected])
        assert draft_object.reconstruct(row, storage) == V(value)


class TestDraftObjectLeafTable:
    """Draft 2: "Parquet Layout", the meaning of the two columns."""

    schema = DDL("a bigint")

    @staticmethod
    def row(typed: Any, untyped: bytes | None) -> dict[str, Any]:
        return {"untyped_value": None, "object": {"a": {"typed_value": typed, "untyped_value": untyped}}}

    def test_null_and_null_is_missing(self) -> None:
        assert draft_object.reconstruct(self.row(None, None), self.schema) == V({})

    def test_null_and_non_null_is_any_type(self) -> None:
        assert draft_object.reconstruct(self.row(None, V([1]).to_bytes()), self.schema) == V({"a": [1]})

    def test_non_null_and_null_is_the_column_s_type(self) -> None:
        value = draft_object.reconstruct(self.row(1, None), self.schema)
        assert value is not None and value["a"].type == VariantType.INT64

    def test_non_null_and_non_null_is_invalid(self) -> None:
        with pytest.raises(ConflictError) as caught:
            draft_object.reconstruct(self.row(1, V("x").to_bytes()), self.schema)
        assert (caught.value.reason, caught.value.path) == ("both-set", "$['a']")
        assert draft_object.reconstruct(self.row(1, V("x").to_bytes()), self.schema, "typed") == V({"a": 1})

    def test_a_field_in_its_columns_and_in_the_residual_is_a_conflict(self) -> None:
        row = {**self.row(1, None), "untyped_value": V({"a": 2, "b": 3}).to_bytes()}
        with pytest.raises(ConflictError) as caught:
            draft_object.reconstruct(row, self.schema)
        assert caught.value.reason == "shredded-field-in-value"
        assert draft_object.reconstruct(row, self.schema, "typed") == V({"a": 1, "b": 3})

    def test_a_residual_that_is_not_an_object_next_to_object_is_a_conflict(self) -> None:
        row = {**self.row(1, None), "untyped_value": V(5).to_bytes()}
        with pytest.raises(ConflictError) as caught:
            draft_object.reconstruct(row, self.schema)
        assert caught.value.reason == "non-object-value"

    def test_a_group_may_have_object_array_and_typed_value(self) -> None:
        storage = pa.struct(
            {
                "untyped_value": pa.binary(),
                "object": pa.struct({"x": pa.struct({"typed_value": pa.int8(), "untyped_value": pa.binary()})}),
                "array": pa.list_(pa.struct({"typed_value": pa.string(), "untyped_value": pa.binary()})),
                "typed_value": pa.float64(),
            }
        )
        for value, column in (({"x": 1}, "object"), (["a", 1], "array"), (1.5, "typed_value"), ("s", "untyped_value")):
            row = draft_object.shred_value(V(value), storage)
            assert row is not None
            assert [name for name, slot in row.items() if slot is not None] == [column]
            assert draft_object.reconstruct(row, storage) == V(value)


class TestDraftObjectNestedExample:
    """Draft 2: "Nested Parquet Example"."""

    def test_storage_type_is_the_printed_one(self) -> None:
        leaf = "struct<untyped_value: binary, typed_value: int64>"
        assert str(object_storage_type(DRAFT_ARRAY.type_tree())) == (
            "struct<untyped_value: binary, array: list<element: struct<untyped_value: binary, object: struct<"
            f"a: struct<untyped_value: binary, array: list<element: {leaf}>>, b: {leaf}>>>>"
        )

    def test_the_first_sample_is_fully_shredded(self) -> None:
        row = draft_object.shred_value(V(FULLY), DRAFT_ARRAY)
        assert row is not None
        assert row["untyped_value"] is None
        assert [one["untyped_value"] for one in row["array"]] == [None, None]
        assert draft_object.reconstruct(row, DRAFT_ARRAY) == V(FULLY)

    def test_what_is_left_is_stored_with_each_element(self) -> None:
        row = draft_object.shred_value(V(MIXED), DRAFT_ARRAY)
        assert row is not None
        assert [shown(one["untyped_value"]) for one in row["array"]] == [{"c": "unexpected"}, None, "not an object"]
        assert draft_object.reconstruct(row, DRAFT_ARRAY) == V(MIXED)

    def test_a_that_is_not_an_array_is_stored_under_a(self) -> None:
        row = draft_object.shred_value(V([{"a": 5}]), DRAFT_ARRAY)
        assert row is not None
        assert shown(row["array"][0]["object"]["a"]["untyped_value"]) == 5
        assert draft_object.reconstruct(row, DRAFT_ARRAY) == V([{"a": 5}])
