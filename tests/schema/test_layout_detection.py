"""One detector of layouts: the same answer for an Arrow type and for a group of a file; a Variant is never entered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.columns import find_variants
from parquet_variant.files.parquet.format.footer import footer_bytes, parse_schema
from parquet_variant.layouts.layout import find_layout
from parquet_variant.layouts.reference.rows import array_of_rows
from parquet_variant.layouts.storages import ArrowGroup

B = pa.binary()
LEAF = pa.struct({"typed_value": pa.int64(), "untyped_value": B})
RESERVED_LEAF = pa.struct({"typed_value": pa.int64(), "untyped_value": B, "_spark_x": pa.int8()})
PATHS = pa.struct({"a": LEAF})

SHAPES: list[tuple[dict[str, pa.DataType], str | None]] = [
    ({"metadata": B, "value": B}, "unshredded"),
    ({"value": B, "_x": pa.int8(), "metadata": B}, "unshredded"),
    ({"metadata": B, "value": B, "other": B}, None),
    ({"metadata": B, "value": pa.string()}, None),
    ({"metadata": B}, None),
    ({"metadata": B, "value": B, "typed_value": pa.int64()}, "final"),
    ({"metadata": B, "typed_value": pa.int64()}, "final"),
    ({"metadata": B, "value": B, "typed_value": pa.struct({"a": LEAF}), "other": B}, "final"),
    ({"value": B, "metadata": B, "paths": PATHS}, "draft-paths"),
    ({"metadata": B, "paths": PATHS}, "draft-paths"),
    ({"value": B, "metadata": B, "paths": pa.list_(pa.struct({"b": LEAF}))}, "draft-paths"),
    ({"value": B, "metadata": B, "paths": PATHS, "_y": B}, "draft-paths"),
    ({"value": B, "metadata": B, "paths": PATHS, "other": B}, "draft-paths"),
    ({"value": B, "metadata": B, "paths": pa.int64()}, None),
    ({"untyped_value": B}, "draft-object"),
    ({"untyped_value": B, "typed_value": pa.int64(), "_metadata_key_paths": B}, "draft-object"),
    ({"object": pa.struct({"a": RESERVED_LEAF}), "_spark": pa.int8()}, "draft-object"),
    ({"array": pa.list_(pa.struct({"untyped_value": B, "_z": B}))}, "draft-object"),
    ({"untyped_value": B, "object": PATHS, "other": B}, "draft-object"),
    ({"object": PATHS, "other": B}, "draft-object"),
    ({"untyped_value": B, "object": PATHS, "metadata": B}, "draft-object"),
    ({"object": pa.struct({"a": pa.int64()})}, None),
    ({"object": pa.struct({"a": pa.struct({"x": B})})}, None),
    ({"array": pa.list_(pa.int64())}, None),
    ({"untyped_value": pa.string()}, None),
    ({"untyped_value": B, "other": B}, None),
    ({"object": pa.struct({"a": pa.struct({"typed_value": pa.int64()})}), "other": B}, None),
]


def _ids(shape: Any) -> str:
    return " ".join(shape) if isinstance(shape, dict) else str(shape)


@pytest.mark.parametrize(("fields", "layout"), SHAPES, ids=_ids)
def test_files_and_memory_have_one_answer(fields: dict[str, pa.DataType], layout: str | None, tmp_path: Path) -> None:
    storage = pa.struct(fields)
    assert find_layout(ArrowGroup(storage)) == layout
    pq.write_table(pa.table({"s": pa.nulls(1, storage)}), tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as file:
        columns = find_variants(parse_schema(footer_bytes(file)))
    found = [(column.name, column.layout) for column in columns]
    if layout is not None:
        assert found == [("s", layout)]
    else:
        assert "s" not in dict(found)


def test_a_column_of_only_a_typed_value_is_a_variant_of_the_second_draft(tmp_path: Path) -> None:
    storage = pa.array([{"typed_value": 5}, {"typed_value": None}, None], pa.struct({"typed_value": pa.int64()}))
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"s": storage}), file)
    assert pv.open(file).read().to_pylist() == [5, None, None] == pv.VariantArray(storage).to_pylist()
    assert pv.open(file).scan({"a": "$:bigint"}).to_arrow()["a"].to_pylist() == [5, None, None]
    assert pv.ShreddingSchema.from_parquet(file).to_ddl() == "bigint"
    assert [violation.reason for violation in pv.open(file).validate().violations] == ["draft-layout"]
    inside = pa.StructArray.from_arrays([storage], ["inner"])
    pq.write_table(pa.table({"s": inside, "v": pv.from_python([1, 2, 3]).storage}), file)
    assert pv.open(file).read().to_pylist() == [1, 2, 3]


def test_typed_and_untyped_at_once_are_refused_even_if_untyped_is_null(tmp_path: Path) -> None:
    null = Variant.from_python(None).to_bytes()
    storage = pa.array(
        [{"untyped_value": null, "typed_value": 5}], pa.struct({"untyped_value": B, "typed_value": pa.int64()})
    )
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"s": storage}), file)
    for use in (lambda: pv.VariantArray(storage).to_pylist(), lambda: pv.open(file).read().to_pylist()):
        with pytest.raises(pv.ConflictError):
            use()
    report = pv.open(file).validate()
    assert [(violation.reason, violation.row) for violation in report.violations] == [
        ("draft-layout", None),
        ("both-set", 0),
    ]


@pytest.mark.parametrize("layout", ["draft-object", "draft-paths"])
def test_queries_of_drafts_read_their_columns_and_skip_row_groups(layout: Any, tmp_path: Path) -> None:
    rows = [
        {"id": n, "x": {"y": 2 * n, "z": [n, n + 1]}, **({"extra": n} if n % 7 == 0 else {}), "name": f"n{n}"}
        for n in range(3000)
    ]
    array = pv.from_python(rows)
    shredded = pv.shred_variant(array, "id bigint, name string, x struct<y: bigint, z: array<bigint>>", layout=layout)
    file = tmp_path / "a.parquet"
    with pv.VariantWriter(file, row_group_bytes=4000) as writer:
        for start in range(0, 3000, 100):
            writer.write_batch({"v": shredded[start : start + 100]})
    groups = pq.read_metadata(file).num_row_groups
    assert groups >= 30
    report = pv.open(file).scan({"id": "$.id:bigint"}, "id = 1500").explain()
    assert report.row_groups_read == 1
    assert len(report.columns) == 1
    columns = {"id": "$.id:bigint", "y": "$.x.y:int", "z": "$.x.z[1]:string", "e": "$.extra:bigint", "s": "$.id:string"}
    for where in (
        "id = 1500",
        "$.x.y:bigint > 5990",
        "name like 'n29%'",
        "$.extra:bigint = 700",
        "e is null and id < 9",
    ):
        query = {**columns, "name": "$.name:string"}
        found = pv.open(file).scan(query, where).to_arrow()
        assert found.equals(pv.open(file).scan(query, where, skipping=False).to_arrow())
        assert len(found)
    whole = pv.open(file).scan(columns).to_arrow()
    for name, path in columns.items():
        target, kind = path.split(":")
        assert whole[name].to_pylist() == pv.variant_get(array, target, kind).to_pylist()


def _value(value: Any) -> dict[str, bytes]:
    variant = Variant.from_python(value)
    return {"metadata": variant.metadata, "value": variant.value}


REFUSED: dict[str, tuple[dict[str, pa.DataType], dict[str, Any]]] = {
    "draft-paths": (
        {"value": B, "metadata": B, "paths": PATHS, "extra": pa.int64()},
        {**_value({"z": 9}), "paths": {"a": {"typed_value": 5}}, "extra": 1},
    ),
    "draft-object": (
        {"untyped_value": B, "object": PATHS, "extra": pa.int64()},
        {"object": {"a": {"typed_value": 5}}, "extra": 1},
    ),
    "inside draft-object": (
        {"object": pa.struct({"a": pa.struct({"typed_value": pa.int64(), "untyped_value": B, "extra": pa.int8()})})},
        {"object": {"a": {"typed_value": 5, "extra": 1}}},
    ),
    "final": (
        {"metadata": B, "value": B, "typed_value": pa.struct({"a": LEAF}), "extra": pa.int64()},
        {**_value({"z": 9}), "extra": 1},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unknown_fields_are_refused_in_memory_and_in_files(name: str, tmp_path: Path) -> None:
    fields, row = REFUSED[name]
    array = array_of_rows([row], pa.struct(fields))
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": array}), file)
    uses = [
        lambda: pv.VariantArray(array).to_pylist(),
        lambda: pv.to_json(pv.VariantArray(array)),
        lambda: pv.open(file).read().to_pylist(),
        lambda: pv.open(file).scan({"a": "$.a:bigint"}).to_arrow(),
        lambda: pv.open(file).to_arrow(),
        lambda: pv.ShreddingSchema.from_parquet(file),
        lambda: pv.open(file).rewrite(tmp_path / "b.parquet"),
        lambda: pv.variant_get(pv.VariantArray(array), "$.a", "bigint"),
        lambda: pv.sql(f"SELECT v:a::bigint FROM '{file}'").to_pylist(),
        lambda: pv.sql(f"SELECT v FROM '{file}'").to_pylist(),
    ]
    for number, use in enumerate(uses):
        with pytest.raises(VariantError) as caught:
            use()
        assert caught.value.reason == "unknown-field", number
    assert "unknown-field" in [violation.reason for violation in pv.open(file).validate().violations]


RESERVED: dict[str, tuple[dict[str, pa.DataType], dict[str, Any], Any]] = {
    "draft-paths": (
        {
            "value": B,
            "metadata": B,
            "_x": B,
            "paths": pa.struct({"a": pa.struct({"typed_value": pa.int64(), "untyped_value": B, "_y": pa.int8()})}),
        },
        {**_value({"z": 9}), "_x": b"?", "paths": {"a": {"typed_value": 5, "_y": 1}}},
        {"a": 5, "z": 9},
    ),
    "draft-object": (
        {"untyped_value": B, "_metadata_key_paths": B, "object": pa.struct({"a": RESERVED_LEAF})},
        {"_metadata_key_paths": b"?", "object": {"a": {"typed_value": 5, "_spark_x": 1}}},
        {"a": 5},
    ),
    "draft-object array": (
        {"_first": pa.int8(), "array": pa.list_(RESERVED_LEAF), "untyped_value": B},
        {"_first": 1, "array": [{"_spark_x": 3, "typed_value": 5}, {"typed_value": 6}]},
        [5, 6],
    ),
    "final": (
        {
            "_x": pa.int8(),
            "metadata": B,
            "value": B,
            "typed_value": pa.struct({"a": pa.struct({"_y": pa.int8(), "value": B, "typed_value": pa.int64()})}),
        },
        {**_value({"z": 9}), "_x": 1, "typed_value": {"a": {"typed_value": 5, "_y": 3}}},
        {"a": 5, "z": 9},
    ),
    "unshredded": ({"value": B, "_x": pa.int8(), "metadata": B}, {**_value({"z": 9}), "_x": 1}, {"z": 9}),
}


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_fields_are_ignored_in_memory_and_in_files(name: str, tmp_path: Path) -> None:
    fields, row, value = RESERVED[name]
    array = array_of_rows([row], pa.struct(fields))
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": array}), file)
    assert pv.VariantArray(array).to_pylist() == [value]
    assert pv.open(file).read().to_pylist() == [value]
    assert pv.VariantArray.from_arrow(pv.open(file).to_arrow(), "v").to_pylist() == [value]
    path, expected = ("$.a", 5) if isinstance(value, dict) and "a" in value else ("$[1]", 6)
    if name != "unshredded":
        assert pv.open(file).scan({"x": (path, "bigint")}).to_arrow()["x"].to_pylist() == [expected]
        assert pv.variant_get(pv.VariantArray(array), path, "bigint").to_pylist() == [expected]
    assert "unknown-field" not in [violation.reason for violation in pv.open(file).validate().violations]
    pv.open(file).rewrite(tmp_path / "b.parquet", layout="final")
    assert pv.open(tmp_path / "b.parquet").read().to_pylist() == [value]


NULL, VALUE, FIVE = pa.array([b"\x01\x00\x00"], B), pa.array([b"\x00"], B), pa.array([5], pa.int64())


def _group(*columns: tuple[str, pa.Array]) -> pa.StructArray:
    fields = [pa.field(name, column.type) for name, column in columns]
    return pa.StructArray.from_arrays([column for _, column in columns], fields=fields)


TYPED = ("typed_value", FIVE)
DUPLICATES = {
    "typed_value": _group(("metadata", NULL), TYPED, TYPED),
    "value": _group(("metadata", NULL), ("value", VALUE), ("value", VALUE)),
    "metadata": _group(("metadata", NULL), ("metadata", NULL), TYPED),
    "in a field": _group(
        ("metadata", NULL), ("typed_value", _group(("a", _group(("value", VALUE), ("value", VALUE)))))
    ),
    "two fields": _group(("metadata", NULL), ("typed_value", _group(("a", _group(TYPED)), ("a", _group(TYPED))))),
    "draft-object": _group(("untyped_value", NULL), ("object", _group(("a", _group(TYPED, TYPED))))),
    "two fields of draft-object": _group(
        ("untyped_value", NULL), ("object", _group(("a", _group(TYPED)), ("a", _group(TYPED))))
    ),
    "draft-paths": _group(("metadata", NULL), ("value", VALUE), ("paths", _group(("a", _group(TYPED, TYPED))))),
}
UNKNOWN = {
    "next to a group that would be a column": _group(
        ("object", _group(("a", _group(TYPED, ("x", FIVE))), ("q", _group(("untyped_value", NULL), TYPED))))
    ),
    "below untyped_value": _group(
        ("untyped_value", NULL),
        ("object", _group(("a", _group(TYPED, ("x", FIVE))), ("q", _group(("untyped_value", NULL), TYPED)))),
    ),
}
COLUMN = _group(("metadata", NULL), ("value", VALUE), ("typed_value", _group(("a", FIVE))))


@pytest.mark.parametrize(
    ("storage", "reason"),
    [(storage, "duplicate-field") for storage in DUPLICATES.values()]
    + [(storage, "unknown-field") for storage in UNKNOWN.values()]
    + [(COLUMN, "not-a-group")],
    ids=[*DUPLICATES, *UNKNOWN, "a column in place of a group"],
)
def test_every_reader_refuses_a_group_in_the_same_way(storage: pa.StructArray, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": storage}), file)
    uses = [
        lambda: pv.VariantArray(storage).to_pylist(),
        lambda: pv.variant_get(pv.VariantArray(storage), "$.a", "bigint"),
        lambda: pv.open(file).read().to_pylist(),
        lambda: pv.open(file).scan({"a": "$.a:bigint"}).to_arrow(),
        lambda: pv.open(file).to_arrow(),
        lambda: pv.ShreddingSchema.from_parquet(file),
        lambda: pv.sql(f"SELECT v:a::bigint FROM '{file}'").to_pylist(),
    ]
    for number, use in enumerate(uses):
        with pytest.raises(VariantError) as caught:
            use()
        assert caught.value.reason == reason, number
    assert reason in [violation.reason for violation in pv.open(file).validate().violations]
