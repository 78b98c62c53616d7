"""The drafts by columns mean what they mean by values, and give way to the reference where they must."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variant_strategies as testing
from draft_schemas import paths_storage_type
from parquet_variant.arrays.final_columns import NeedsReference, shredded_final
from parquet_variant.arrays.storages import draft_of_final, final_of_draft, shredded_storage, unshredded_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import ConflictError, MalformedVariantError
from parquet_variant.layouts.reference import rows as reference
from parquet_variant.layouts.reference.rows import array_of_rows
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storages import storage_type
from shredded_corpus import MISSING, READABLE, path

DRAFTS = ("draft-paths", "draft-object")
DDL = ShreddingSchema.from_ddl
V = Variant.from_python


@st.composite
def columns(draw: Any, *, layouts: bool = True) -> tuple[list[Variant | None], ShreddingSchema]:
    values = draw(st.lists(testing.variants(max_leaves=12, layouts=layouts) | st.none(), min_size=1, max_size=4))
    return values, draw(testing.shredding_schemas(values))


def plain(values: list[Variant | None]) -> pa.StructArray:
    return VariantArray.from_variants(values).storage


@pytest.mark.parametrize("layout", DRAFTS)
@given(column=columns())
def test_any_array_survives(layout: Any, column: tuple[list[Variant | None], ShreddingSchema]) -> None:
    values, schema = column

    draft = shredded_storage(plain(values), schema, layout)

    assert draft.type == storage_type(schema.type_tree(), layout)
    assert reference.variants_of_storage(draft) == values
    if layout == "draft-object" or schema.kind != "variant":
        assert list(VariantArray(unshredded_storage(draft, layout))) == values


@pytest.mark.parametrize("layout", DRAFTS)
@given(column=columns(layouts=False))
def test_canonical_values_give_the_reference_s_very_bytes(
    layout: Any, column: tuple[list[Variant | None], ShreddingSchema]
) -> None:
    values, schema = column

    ours, theirs = shredded_storage(plain(values), schema, layout), reference.shredded_storage(values, schema, layout)
    assert ours.type == theirs.type
    # As text: to Arrow no NaN equals another.
    assert repr(reference.rows_of_array(ours)) == repr(reference.rows_of_array(theirs))


@pytest.mark.parametrize("layout", DRAFTS)
@given(column=columns(layouts=False))
def test_canonical_values_never_need_the_reference(
    layout: Any, column: tuple[list[Variant | None], ShreddingSchema]
) -> None:
    values, schema = column
    if schema.kind == "variant":
        return
    final = final_of_draft(draft_of_final(shredded_final(plain(values), schema), schema, layout), layout)

    assert reference.variants_of_storage(final) == values


@pytest.mark.parametrize("layout", DRAFTS)
@given(column=columns(), cut=st.integers(0, 3))
def test_slices_are_read(layout: Any, column: tuple[list[Variant | None], ShreddingSchema], cut: int) -> None:
    values, schema = column
    draft = reference.shredded_storage(values, schema, layout).slice(cut)

    if len(draft) and (layout == "draft-object" or schema.kind != "variant"):
        assert list(VariantArray(unshredded_storage(draft, layout))) == values[cut:]


@pytest.mark.parametrize("layout", DRAFTS)
def test_an_empty_array_survives(layout: Any) -> None:
    draft = shredded_storage(plain([]), DDL("a array<int>"), layout)
    assert draft.type == storage_type(DDL("a array<int>").type_tree(), layout)
    assert len(unshredded_storage(draft, layout)) == 0


PATHS = DDL("a struct<x: bigint>, l array<struct<y: bigint>>, v variant")


@pytest.mark.parametrize(
    "value",
    [
        {"a": {"x": 1, "z": 2}, "l": [{"y": 1}, None, {"y": 2, "q": 1}, 5, {}], "v": {"k": 1}, "more": [1]},
        {"a": 1, "l": {"y": 1}, "v": None},
        {"a": None, "l": None},
        {"a": {}, "l": []},
        {"a": {"z": {"x": 1}}, "l": [[], [1]]},
        {"l": [{"q": 1}]},
        [1],
        None,
    ],
    ids=str,
)
def test_what_is_left_of_paths_is_gathered_and_handed_out_again(value: Any) -> None:
    values = [V(value), V({"a": {"x": 1}}), None]
    draft = shredded_storage(plain(values), PATHS, "draft-paths")

    assert draft.equals(reference.shredded_storage(values, PATHS, "draft-paths"))
    assert reference.variants_of_storage(final_of_draft(draft, "draft-paths")) == values


CONFLICTS = [
    ("draft-object", "a bigint", {"untyped_value": V({"a": 2}).to_bytes(), "object": {"a": {"typed_value": 1}}}),
    ("draft-object", "a bigint", {"object": {"a": {"typed_value": 1, "untyped_value": V("x").to_bytes()}}}),
    ("draft-object", "array<int>", {"untyped_value": V(1).to_bytes(), "array": [{"typed_value": 1}]}),
    ("draft-paths", "a bigint", {"paths": {"a": {"typed_value": 1, "untyped_value": V("x").to_bytes()}}}),
    ("draft-paths", "a bigint", {"value": V(7).value, "metadata": V(7).metadata, "paths": {"a": {"typed_value": 1}}}),
    ("draft-paths", "a bigint", {"value": V(None).value, "metadata": V(None).metadata, "paths": {"a": None}}),
    (
        "draft-paths",
        "a bigint",
        {"value": V({"a": "x"}).value, "metadata": V({"a": 0}).metadata, "paths": {"a": {"typed_value": 1}}},
    ),
    ("draft-paths", "array<int>", {"value": V([5]).value, "metadata": V([5]).metadata, "paths": [None, None]}),
]


@pytest.mark.parametrize(("layout", "ddl", "row"), CONFLICTS)
def test_conflicts_are_the_reference_s_to_judge(layout: Any, ddl: str, row: dict[str, Any]) -> None:
    good = reference.shredded_storage([V({"a": 1})], DDL(ddl), layout)
    storage = pa.concat_arrays([good, array_of_rows([row], good.type)])

    with pytest.raises(ConflictError) as caught:
        unshredded_storage(storage, layout)
    with pytest.raises(ConflictError) as expected:
        reference.variants_of_storage(storage)
    assert (caught.value.reason, caught.value.path, caught.value.row) == (
        expected.value.reason, expected.value.path, 1,
    )  # fmt: skip
    typed = VariantArray(unshredded_storage(storage, layout, "typed"))
    assert list(typed) == reference.variants_of_storage(storage, "typed")


@pytest.mark.parametrize("layout", DRAFTS)
@pytest.mark.parametrize("broken", ["", "01", "02000000", "010000", "010000020107000100"])
def test_malformed_binaries_give_an_error_with_the_row(layout: Any, broken: str) -> None:
    leaf = {"untyped_value": bytes.fromhex(broken)}
    row = {"object": {"a": leaf}} if layout == "draft-object" else {"paths": {"a": leaf}}
    good = reference.shredded_storage([V({"a": 1})], DDL("a bigint"), layout)

    with pytest.raises(MalformedVariantError) as caught:
        list(VariantArray(unshredded_storage(pa.concat_arrays([good, array_of_rows([row], good.type)]), layout)))
    assert caught.value.row == 1


def test_nested_typed_values_and_several_shapes_go_to_the_reference() -> None:
    values = [V([{"a": [1, 2]}, {"a": "x"}])]
    nested = paths_storage_type(DDL("array<struct<a: array<int>>>").type_tree(), whole_arrays=True)
    draft = reference.shredded_storage(values, nested, "draft-paths")
    with pytest.raises(NeedsReference):
        final_of_draft(draft, "draft-paths")
    assert list(VariantArray(unshredded_storage(draft, "draft-paths"))) == values

    leaf = pa.struct({"typed_value": pa.int8(), "untyped_value": pa.binary()})
    shapes = pa.struct({"untyped_value": pa.binary(), "array": pa.list_(leaf), "typed_value": pa.string()})
    values = [V([1, "x"]), V("s"), V({"k": 1}), None]
    draft = reference.shredded_storage(values, shapes, "draft-object")
    with pytest.raises(NeedsReference):
        final_of_draft(draft, "draft-object")
    assert list(VariantArray(unshredded_storage(draft, "draft-object"))) == values


@pytest.mark.skipif(not READABLE, reason=MISSING)
@pytest.mark.parametrize("layout", DRAFTS)
def test_the_shredded_corpus_goes_through_the_drafts(layout: Any) -> None:
    for case in READABLE:
        storage = pq.read_table(path(case))["var"].combine_chunks()
        array = VariantArray(storage)
        values = reference.variants_of_storage(storage)
        if array.schema is not None:
            draft = shredded_storage(array.to_unshredded().storage, array.schema, layout)
            assert list(VariantArray(unshredded_storage(draft, layout))) == values, case["case_number"]
