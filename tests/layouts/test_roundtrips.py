"""Taking apart and putting together is the identity: any value, any schema, any layout, and chains of layouts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variant_strategies as testing
from draft_schemas import paths_storage_type
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import KEY, walk
from parquet_variant.layouts.layout import detect_layout
from parquet_variant.layouts.reference.rows import (
    array_of_rows,
    draft_object,
    draft_paths,
    final,
    rows_of_array,
    shredded_storage,
    variants_of_storage,
)
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storages import storage_type
from parquet_variant.types import VariantType

LAYOUTS = ("unshredded", "final", "draft-paths", "draft-object")


@st.composite
def columns(draw: Any) -> tuple[list[Variant | None], ShreddingSchema]:
    values = draw(st.lists(testing.variants(max_leaves=12) | st.none(), min_size=1, max_size=4))
    return values, draw(testing.shredding_schemas(values))


@pytest.mark.parametrize("layout", LAYOUTS)
@given(columns())
def test_every_value_survives_every_schema(layout: Any, column: tuple[list[Variant | None], ShreddingSchema]) -> None:
    values, schema = column

    storage = shredded_storage(values, schema, layout)

    assert variants_of_storage(storage) == values
    assert storage.type == storage_type(schema.type_tree(), layout)
    expected = "unshredded" if schema.kind == "variant" and layout in ("final", "draft-paths") else layout
    assert detect_layout(storage.type) == expected


@given(columns(), st.permutations(LAYOUTS))
def test_a_chain_through_all_layouts_returns_the_start(
    column: tuple[list[Variant | None], ShreddingSchema], chain: list[Any]
) -> None:
    values, schema = column
    storage = shredded_storage(values, schema, chain[0])
    for layout in chain[1:]:
        storage = shredded_storage(variants_of_storage(storage), schema, layout)

    assert variants_of_storage(shredded_storage(variants_of_storage(storage), schema, "unshredded")) == values


@given(columns())
def test_the_alternative_draft_schemas_lose_nothing(column: tuple[list[Variant | None], ShreddingSchema]) -> None:
    values, schema = column

    for storage in (
        paths_storage_type(schema.type_tree(), whole_arrays=True),
        paths_storage_type(schema.type_tree(), untyped=False),
        paths_storage_type(schema.type_tree(), whole_arrays=True, untyped=False),
    ):
        assert variants_of_storage(shredded_storage(values, storage, "draft-paths")) == values


@given(columns())
def test_the_final_layout_keeps_the_metadata_and_every_id(
    column: tuple[list[Variant | None], ShreddingSchema],
) -> None:
    values, schema = column
    for value in values:
        row = final.shred_value(value, schema)
        if value is not None:
            assert row is not None and row["metadata"] == value.metadata
            whole = final.reconstruct(row, schema)
            assert whole is not None and whole.metadata == value.metadata


@given(columns())
def test_a_residual_never_has_a_shredded_field(column: tuple[list[Variant | None], ShreddingSchema]) -> None:
    values, schema = column
    for value in values:
        row = final.shred_value(value, schema)
        if row is not None:
            _check_residuals(row, schema, row["metadata"])


def _check_residuals(group: dict[str, Any], schema: ShreddingSchema, metadata: bytes) -> None:
    value = group["value"]
    typed = group.get("typed_value")
    if schema.kind == "object":
        if value is not None:
            residual = Variant(metadata, value)
            if residual.type == VariantType.OBJECT:
                assert typed is not None
                assert not set(residual.keys()) & set(dict(schema.fields))
            else:
                assert typed is None
        for name, child in schema.fields if typed is not None else ():
            _check_residuals(typed[name], child, metadata)
    else:
        assert value is None or typed is None
        if schema.element is not None and typed is not None:
            for element in typed:
                _check_residuals(element, schema.element, metadata)


@given(columns())
def test_drafts_write_minimal_metadata(column: tuple[list[Variant | None], ShreddingSchema]) -> None:
    values, schema = column
    for value in values:
        row = draft_paths.shred_value(value, schema)
        if row is not None and row["value"] is not None:
            _check_minimal(Variant(row["metadata"], row["value"]))
        row = draft_object.shred_value(value, schema)
        if row is not None and row.get("untyped_value") is not None:
            _check_minimal(Variant.from_bytes(row["untyped_value"]))


def _check_minimal(variant: Variant) -> None:
    value = variant.value
    used = {event.raw for event in walk(variant.metadata, value, 0, len(value)) if event.kind == KEY}
    assert decode_metadata(variant.metadata) == sorted(used)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sql_null_variant_null_and_missing_stay_three_things(layout: Any, tmp_path: Any) -> None:
    schema = ShreddingSchema.from_ddl("a bigint, o struct<x: int>, l array<struct<y: string>>, v variant")
    values = [
        None,
        Variant.from_python(None),
        Variant.from_python({}),
        *(Variant.from_python({name: None}) for name in "aolv"),
        Variant.from_python({"o": {"x": None}, "l": [None, {}, {"y": None}, []]}),
        Variant.from_python({"o": {}, "l": []}),
        Variant.from_python([None]),
    ]
    pq.write_table(pa.table({"v": shredded_storage(values, schema, layout)}), tmp_path / "v.parquet")

    back = variants_of_storage(pq.read_table(tmp_path / "v.parquet")["v"].combine_chunks())

    assert [v if v is None else v.to_json() for v in back] == [v if v is None else v.to_json() for v in values]


@pytest.mark.parametrize("layout", LAYOUTS)
@given(column=columns())
def test_rows_survive_arrow(layout: Any, column: tuple[list[Variant | None], ShreddingSchema]) -> None:
    values, schema = column
    storage = shredded_storage(values, schema, layout)

    assert array_of_rows(rows_of_array(storage), storage.type).equals(storage)


def test_a_schema_of_the_greatest_depth_is_shredded_and_put_together() -> None:
    schema, value = ShreddingSchema.primitive(pa.int64()), Variant.from_python(1)
    for _ in range(199):
        schema, value = ShreddingSchema.object({"a": schema}), Variant.from_python({"a": value, "b": 1})
    for layout in (final, draft_paths, draft_object):
        assert layout.reconstruct(layout.shred_value(value, schema), schema) == value
