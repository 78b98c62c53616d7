"""`extract_path` on storages of which only the needed columns were read."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
import variant_strategies as testing
from parquet_variant.layouts.reference.rows import final, rows_of_array
from parquet_variant.ops.columns.extract_path import columns_of_path, extract_path
from parquet_variant.types.targets import VARIANT_STORAGE

PATHS = ["$", "$.a", "$.a.b", "$.b[0]", "$.b[*]", "$.c", "$[*].a", "$[0]"]


def pruned(array: pa.Array, columns: list[tuple[str, ...]]) -> pa.Array:
    """The array with just some of its leaf columns, as a Parquet reader gives it."""
    if not pa.types.is_struct(array.type) and not pa.types.is_list(array.type):
        return array
    if pa.types.is_list(array.type):
        below = [column[1:] for column in columns]
        values = pruned(array.values, below)
        return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null() if array.null_count else None)
    kept = {}
    for index, field in enumerate(array.type):
        below = [column[1:] for column in columns if column[0] == field.name]
        if below:
            kept[field.name] = pruned(array.field(index), below)
    return pa.StructArray.from_arrays(list(kept.values()), names=list(kept), mask=array.is_null())


@given(
    data=st.data(),
    column=st.lists(st.none() | testing.variants(max_leaves=8), min_size=1, max_size=5),
    path=st.sampled_from(PATHS),
)
def test_the_needed_columns_are_enough(data: st.DataObject, column: list[pv.Variant | None], path: str) -> None:
    plain = pv.VariantArray.from_variants(column)
    storage = pv.shred_variant(plain, data.draw(testing.shredding_schemas())).storage
    columns = columns_of_path(storage.type, path)
    for target in (pa.string(), pa.float64(), pa.list_(pa.int64())):
        whole = extract_path(storage, path, target, safe=False)
        part = (
            extract_path(pruned(storage, columns), path, target, safe=False)
            if columns
            else whole.take(pa.nulls(len(whole), pa.int64()))
        )
        assert str(part.to_pylist()) == str(whole.to_pylist())


STORAGE = pv.ShreddingSchema.from_ddl("a struct<b: int>, c array<struct<d: string>>")


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("$.a.b", ["metadata", "typed_value.a.typed_value.b.value", "typed_value.a.typed_value.b.typed_value"]),
        ("$.a.x", ["metadata", "typed_value.a.value"]),
        ("$.x.y", ["metadata", "value"]),
        ("$.c[0].d", [
            "metadata",
            "typed_value.c.typed_value.element.typed_value.d.value",
            "typed_value.c.typed_value.element.typed_value.d.typed_value",
        ]),
        ("$.c[*].x", ["metadata", "typed_value.c.typed_value.element.value"]),
        ("$.c.x", ["metadata", "typed_value.c.value"]),
        ("$.a[0]", ["metadata", "typed_value.a.value"]),
    ],
)  # fmt: skip
def test_only_the_columns_at_the_path_are_needed(path: str, columns: list[str]) -> None:
    storage = pv.shred_variant(pv.VariantArray.from_pylist([{}]), STORAGE).storage.type
    assert [".".join(column) for column in columns_of_path(storage, path)] == columns


def test_a_shredded_leaf_is_given_back_without_a_copy() -> None:
    array = pv.VariantArray.from_pylist([{"a": number} for number in range(100)])
    storage = pv.shred_variant(array, pv.ShreddingSchema.from_ddl("a bigint")).storage
    leaf = storage.field("typed_value").field("a").field("typed_value")
    found = extract_path(storage, "$.a", pa.int64())
    assert found.buffers()[1].address == leaf.buffers()[1].address


def test_a_path_gives_the_same_result_each_time_it_is_read_from_an_array() -> None:
    lines = ['{"a": {"b": 1, "s": "x"}}', '{"a": {"b": "n/a", "s": null}}', '{"a": 5}', "{}"]
    array = pv.shred_variant(pv.parse_json(lines, dictionary="batch"), "a struct<b: int, s: string>")
    for _ in range(2):
        assert pv.variant_get(array, "$.a.b", "int", errors="null").to_pylist() == [1, None, None, None]
        assert pv.variant_get(array, "$.a.s", "string").to_pylist() == ["x", None, None, None]
        assert pv.variant_get(array, "$.a.b", "string").to_pylist() == ["1", "n/a", None, None]
        assert pv.get_variant_element(array, "$.a", "string", cast=True).to_pylist()[2] == "5"
        assert pv.variant_get(array[2:], "$.a.b", "int", errors="null").to_pylist() == [None, None]
        with pytest.raises(pv.CastError, match="row 1"):
            pv.variant_get(array, "$.a.b", "int")
    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff"]).buffers())
    damaged = array.storage.slice(0, 2).flatten()[0], pa.StructArray.from_arrays([text], names=["typed_value"])
    typed = pa.StructArray.from_arrays([damaged[1]], names=["s"])
    bad = pv.VariantArray(pa.StructArray.from_arrays([damaged[0], typed], names=["metadata", "typed_value"]))
    for _ in range(2):
        with pytest.raises(pv.MalformedVariantError) as caught:
            pv.variant_get(bad, "$.s", "string")
        assert (caught.value.reason, caught.value.row) == ("bad-utf8", 1)
        assert pv.variant_get(bad[:1], "$.s", "string").to_pylist() == ["ok"]


def test_a_residual_costs_only_its_own_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from parquet_variant.arrays import value_positions

    rows: list[Any] = [{"a": number} for number in range(1000)]
    rows[500] = {"a": "500"}
    storage = pv.shred_variant(pv.VariantArray.from_pylist(rows), pv.ShreddingSchema.from_ddl("a bigint")).storage
    read: list[int] = []
    read_slots = value_positions.get.read_slots
    monkeypatch.setattr(
        value_positions.get, "read_slots", lambda starts, *rest: read.append(len(starts)) or read_slots(starts, *rest)
    )
    assert extract_path(storage, "$.a", pa.int64()).to_pylist() == list(range(1000))
    assert read == [1]


def test_values_next_to_typed_ones_are_ignored_where_the_specification_forbids_them() -> None:
    metadata, null = b"\x11\x01\x00\x01a", None
    group = pa.struct({"value": pa.binary(), "typed_value": pa.int64()})
    storage = pa.array(
        [
            {"metadata": metadata, "value": b"\x02\x01\x00\x00\x02\x0c\x07", "typed_value": {"a": {"typed_value": 1}}},
            {"metadata": metadata, "value": null, "typed_value": {"a": {"value": b"\x0c\x05", "typed_value": 2}}},
        ],
        pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.struct({"a": group})}),
    )
    assert extract_path(storage, "$.a", pa.int64()).to_pylist() == [1, 2]


def test_columns_of_every_arrow_form_are_read() -> None:
    array = pv.shred_variant(
        pv.VariantArray.from_pylist([{"a": "x"}, {"a": 1}, {}, {"a": "x"}]), pv.ShreddingSchema.from_ddl("a string")
    ).storage
    group = array.field("typed_value").field("a")
    value, typed = group.field("value"), group.field("typed_value")
    forms = [
        (value.cast(pa.large_binary()), typed.cast(pa.large_string())),
        (value.cast(pa.binary_view()), typed.cast(pa.string_view())),
        (value.dictionary_encode(), typed.dictionary_encode()),
        (pc.run_end_encode(value), pc.run_end_encode(typed)),
    ]
    for columns in forms:
        child = pa.StructArray.from_arrays(list(columns), names=["value", "typed_value"])
        storage = pa.StructArray.from_arrays(
            [
                pc.run_end_encode(array.field("metadata").dictionary_decode()),
                pa.StructArray.from_arrays([child], ["a"]),
            ],
            names=["metadata", "typed_value"],
        )
        assert extract_path(storage, "$.a", pa.string()).to_pylist() == ["x", "1", None, "x"]
        assert extract_path(storage, "$.a", pa.int8(), safe=False).to_pylist() == [None, 1, None, None]


def test_a_column_that_is_null_throughout_may_have_no_type() -> None:
    storage = pa.array([{"metadata": b"\x11\0\0", "value": None, "typed_value": 1}])
    assert storage.type.field("value").type == pa.null()
    assert extract_path(storage, "$", pa.string()).to_pylist() == ["1"]


def test_a_value_that_is_not_a_variant_is_refused() -> None:
    with pytest.raises(pv.VariantError):
        extract_path(pa.array([{"x": 1}]), "$", pa.int64())


def _maybe(rng: random.Random, values: pa.Array) -> pa.Array:
    """The array with nulls under which its values still stand, as Arrow allows."""
    valid = pa.array([rng.random() < 0.7 for _ in range(len(values))])
    buffers = [pc.if_else(valid, True, False).buffers()[1], *values.buffers()[1:]]
    if pa.types.is_struct(values.type):
        children = [values.field(n) for n in range(values.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(values.type), mask=pc.invert(valid))
    if pa.types.is_list(values.type):
        return pa.ListArray.from_arrays(values.offsets, values.values, mask=pc.invert(valid))
    return pa.Array.from_buffers(values.type, len(values), buffers)


def _group(rng: random.Random, typed: pa.Array, *, has_value: bool) -> pa.StructArray:
    typed = _maybe(rng, typed)
    if not has_value:
        return pa.StructArray.from_arrays([typed], ["typed_value"])
    value = pa.array([b"\x00" if rng.random() < 0.2 else b"\x0c\x09" for _ in typed])
    value = pc.if_else(pc.and_(typed.is_null(), pa.array([rng.random() < 0.5 for _ in typed])), value, None)
    return pa.StructArray.from_arrays([value, typed], ["value", "typed_value"])


@pytest.mark.parametrize("seed", range(12))
def test_values_that_stand_under_nulls_are_not_there(seed: int) -> None:
    """What a shredded column holds below a null group, list or row is nobody's; a row without parts is Variant null."""
    rng = random.Random(seed)
    rows, has_value = 40, seed % 2 == 0
    leaf = _group(rng, pa.array([rng.randrange(5) for _ in range(rows)], pa.int32()), has_value=has_value)
    if seed % 3:
        elements = _group(rng, pa.array([rng.randrange(5) for _ in range(2 * rows)], pa.int32()), has_value=has_value)
        lists = pa.ListArray.from_arrays(pa.array(range(0, 2 * rows + 1, 2), pa.int32()), elements)
        listed = _group(rng, lists, has_value=has_value)
        leaf = _group(rng, pa.StructArray.from_arrays([leaf, listed], ["a", "l"]), has_value=has_value)
    columns = [pa.array([b"\x11\x02\x00\x01\x02al"] * rows), *(leaf.field(n) for n in range(leaf.type.num_fields))]
    storage = _maybe(rng, pa.StructArray.from_arrays(columns, ["metadata", *(field.name for field in leaf.type)]))

    whole = pv.VariantArray.from_pylist(
        [item and final.reconstruct(item, storage.type) for item in rows_of_array(storage)]
    )
    for path in ("$", "$.a", "$.l", "$.l[0]", "$.l[*]"):
        for target in (VARIANT_STORAGE, pa.string(), pa.int64(), pa.list_(pa.int32())):
            answer = extract_path(storage, path, target, safe=False)
            assert _comparable(answer) == _comparable(extract_path(whole.storage, path, target, safe=False)), path
        assert list(pv.variant_get(pv.VariantArray(storage), path.replace("[*]", ""))) == list(
            pv.variant_get(whole, path.replace("[*]", ""))
        )


def _comparable(answer: pa.Array) -> list[Any]:
    """Variants as values: their bytes may name keys in other ways."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return pv.Variant(value["metadata"], value["value"])
        return [plain(item) for item in value] if isinstance(value, list) else value

    return [plain(item) for item in answer.to_pylist()]


@pytest.mark.parametrize("path", ["$.a", "$.bc", "$.b", "$.x"])
@pytest.mark.parametrize("metadata", ["010200010361" + "62", "0100"])
def test_a_name_that_is_cut_off_is_the_name_of_no_field(metadata: str, path: str) -> None:
    """docs/reliability.md: metadata is checked only for the names that are needed."""
    value = pv.Variant(bytes.fromhex(metadata), bytes.fromhex("02010000020c01"))  # the first field is 1
    expected = pv.variant_get(value, path, "int")
    assert expected == (1 if path == "$.a" and len(metadata) > 4 else None)
    assert pv.variant_get(pv.VariantArray.from_variants([value, None]), path, "int").to_pylist() == [expected, None]
