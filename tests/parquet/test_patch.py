"""Files rewritten with other values in some rows: what a reader sees, and what was copied."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.writing.conform import conform_table
from parquet_variant.files.parquet.writing.patch import plan_patch, plan_path_patch

SCHEMA = pv.ShreddingSchema.from_ddl("struct<a int, t string, list array<int>, o struct<x double>>")


def a_json(chance: random.Random) -> str | None:
    """A row of a variant column."""
    if chance.random() < 0.1:
        return None
    inner = {"o": {"x": chance.random(), "more": chance.randrange(3)}} if chance.random() < 0.8 else {}
    numbers = [chance.randrange(9) for _ in range(chance.randrange(3))]
    return json.dumps(
        {"a": chance.choice([1, 2.5, None, "x"]), "t": chance.choice("pqr") * 9, "list": numbers, **inner}
    )


def rows(chance: random.Random, count: int) -> pa.Table:
    """Rows with every kind of column: plain, nested, in lists, shredded and not."""
    structs = [
        None if chance.random() < 0.2 else {"i": chance.randrange(9), "d": chance.choice([1.5, None])}
        for _ in range(count)
    ]
    lists = [None if chance.random() < 0.2 else [chance.randrange(4)] * chance.randrange(3) for _ in range(count)]
    array = pv.parse_json(pa.array([a_json(chance) for _ in range(count)], pa.string()))
    columns = {
        "n": pa.array([chance.randrange(1 << 40) for _ in range(count)]),
        "f": pa.array([chance.choice([0.5, 1.0, None]) for _ in range(count)], pa.float64()),
        "s": pa.array(structs, pa.struct({"i": pa.int32(), "d": pa.float64()})),
        "l": pa.array(lists, pa.list_(pa.int16())),
        "v": pv.shred_variant(array, SCHEMA),
        "u": array,
    }
    return conform_table(columns, ())[0]


def replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), table.schema.field(name), column)


def patched(folder: Path, before: pa.Table, after: pa.Table, changed: Any, **options: Any) -> tuple[Path, Path, Any]:
    old, new = folder / "old.parquet", folder / "new.parquet"
    with pv.VariantWriter(old, **{"variants": ["v", "u"]} | options) as writer:
        writer.write_batch(before)
    with pa.OSFile(str(old)) as source:
        places = [(name,) for name in ("v", "u") if name in before.column_names]
        plan = plan_patch(source, before, after, changed, places)
        assert plan is not None
        return old, new, plan.write(new, "zstd")


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = pq.read_table(path, columns=["n", "f", "s", "l"]).to_pydict()
    return found | {name: pv.open(path).read(name).to_pylist() for name in ("v", "u")}


@pytest.mark.parametrize("seed", range(6))
def test_a_patched_file_has_the_rows_of_a_file_that_was_written_whole(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    before, other = rows(chance, 400), rows(chance, 20)
    changed = np.zeros(400, dtype=bool)
    changed[chance.sample(range(150 if seed % 2 else 400), 20)] = True
    after = before.filter(pa.array(changed))
    for name in chance.sample(before.column_names, 3):
        after = replaced(after, name, other[name])
    old, new, info = patched(tmp_path, before, after, changed, row_group_bytes=20_000, bloom_filters=["$.t"])
    order = np.where(changed, 399 + np.cumsum(changed), np.arange(400))
    with pv.VariantWriter(tmp_path / "whole.parquet", variants=["v", "u"], row_group_bytes=20_000) as writer:
        writer.write_batch(pa.concat_tables([before, after]).take(pa.array(order)))
    assert read(new) == read(tmp_path / "whole.parquet")
    assert pv.open(new).validate().ok
    assert writer.info is not None
    assert info.statistics == writer.info.statistics
    groups = pq.read_metadata(old).num_row_groups
    assert groups > 1
    assert pq.read_metadata(new).num_row_groups == groups


def chunks(path: Path, group: int) -> dict[str, bytes]:
    """The bytes of the column chunks of a row group."""
    data, found = path.read_bytes(), {}
    message = pq.read_metadata(path).row_group(group)
    for index in range(message.num_columns):
        chunk = message.column(index)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        found[chunk.path_in_schema] = data[start : start + chunk.total_compressed_size]
    return found


def test_what_does_not_change_is_copied_and_the_rest_is_not(tmp_path: Path) -> None:
    before = rows(random.Random(1), 400)
    changed = np.zeros(400, dtype=bool)
    changed[[3, 5]] = True
    after = before.filter(pa.array(changed))
    after = replaced(after, "f", pa.array([7, float("nan")]))
    after = replaced(after, "s", pa.array([{"i": 100, **after["s"][0].as_py()} | {"i": 100}, after["s"][1].as_py()],
                                          before.schema.field("s").type))  # fmt: skip
    old, new, info = patched(tmp_path, before, after, changed, row_group_bytes=20_000)
    assert info.may_hold_nan
    first, was = chunks(new, 0), chunks(old, 0)
    assert {name for name in was if first[name] != was[name]} == {"f", "s.i"}
    assert chunks(new, 1) == chunks(old, 1)
    for skipping in (True, False):
        answer = (
            pv.open(new).scan({"t": ("$.t", "string")}, "t = 'ppppppppp'", column="v", skipping=skipping).to_arrow()
        )
        assert answer.num_rows == [row.get("t") if row else None for row in read(old)["v"]].count("p" * 9)


def test_zeros_of_another_sign_are_other_values(tmp_path: Path) -> None:
    before = pa.table({"f": pa.array([0.0, 1.0]), "l": pa.array([[0.0], [1.0]])})
    after = pa.table({"f": pa.array([-0.0]), "l": pa.array([[-0.0]])})
    _, new, _ = patched(tmp_path, before, after, np.array([True, False]), variants=())
    assert str(pq.read_table(new).to_pydict()) == "{'f': [-0.0, 1.0], 'l': [[-0.0], [1.0]]}"


def test_a_file_of_others_or_of_another_schema_is_not_patched(tmp_path: Path) -> None:
    before = pa.table({"n": pa.array([1, 2, 3])})
    changed = np.array([True, False, False])
    pq.write_table(before, tmp_path / "other.parquet")
    with pv.VariantWriter(tmp_path / "ours.parquet") as writer:
        writer.write_batch(before)
    narrower = pa.table({"n": pa.array([1, 2, 3], pa.int32())})
    for path, given in (("other.parquet", before), ("ours.parquet", narrower)):
        with pa.OSFile(str(tmp_path / path)) as source:
            assert plan_patch(source, given, given.slice(0, 1), changed) is None


OBJECTS = [{"a": n, "o": {"x": n / 2, "more": n}, "t": "x" * n, "r": "u", "list": [n]} for n in range(60)]


def set_at(path: Path, place: tuple[str, ...], new: list[Any], changed: Any) -> Any:
    """What was written to ``patched.parquet``; None for nothing."""
    with pa.OSFile(str(path)) as source:
        plan = plan_path_patch(source, [place], lambda: [pv.VariantArray.from_pylist(new)], changed)
        return None if plan is None else plan.write(path.with_name("patched.parquet"), "zstd")


def written(folder: Path, values: list[Any], **options: Any) -> Path:
    array = pv.shred_variant(pv.VariantArray.from_pylist(values), SCHEMA)
    pv.write(folder / "old.parquet", {"v": array, "n": pa.array(range(len(values)))}, **options)
    return folder / "old.parquet"


@pytest.mark.parametrize(
    ("place", "new", "leaves"),
    [
        (("v", "a"), [1000, -7], {"v.typed_value.a.typed_value"}),
        (("v", "o", "x"), [0.25, float("nan")], {"v.typed_value.o.typed_value.x.typed_value"}),
        (("v", "t"), [pv.Variant.from_python(None), 5], {"v.typed_value.t.typed_value", "v.typed_value.t.value"}),
        (("v", "a"), [3, 44], set()),  # as they are
    ],
)
def test_values_at_a_path_are_written_and_nothing_else(
    tmp_path: Path, place: tuple[str, ...], new: list[Any], leaves: set[str]
) -> None:
    old = written(tmp_path, OBJECTS, row_group_bytes=3000)
    changed = np.zeros(60, dtype=bool)
    changed[[3, 44]] = True
    info = set_at(old, place, new, changed)
    patched_path = tmp_path / "patched.parquet"
    array = pv.open(old).read("v")
    values = pv.VariantArray.from_pylist([new[0] if n == 3 else new[1] for n in range(60)])
    there = pv.variant_set(array, "$." + ".".join(place[1:]), values).to_pylist()
    expected = [there[n] if changed[n] else each for n, each in enumerate(array.to_pylist())]
    assert str(pv.open(patched_path).read("v").to_pylist()) == str(expected)  # NaN equals no NaN
    assert pq.read_table(patched_path, columns=["n"])["n"].to_pylist() == list(range(60))
    assert pv.open(patched_path).validate().ok
    assert info.rows == 60
    groups = pq.read_metadata(old).num_row_groups
    assert groups > 1
    differ = {
        name
        for group in range(groups)
        for name, was in chunks(old, group).items()
        if chunks(patched_path, group)[name] != was
    }
    assert differ == leaves


@pytest.mark.parametrize(
    ("place", "new", "values"),
    [
        (("v", "a"), [None], OBJECTS),  # NULL in SQL, the whole row
        (("v", "a"), [{"name": 1}], OBJECTS),  # names that no dictionary has
        (("v", "a"), [[{"name": 1}]], OBJECTS),
        (("v", "r"), [1], OBJECTS),  # not shredded
        (("v", "o"), [1], OBJECTS),  # an object
        (("v", "list"), [1], OBJECTS),
        (("v", "list", "list"), [1], OBJECTS),
        (("v",), [1], OBJECTS),
        (("n",), [1], OBJECTS),
        (("w", "a"), [1], OBJECTS),
        (("v", "a"), [1], [{"t": "x"}] * 60),  # no row has it
        (("v", "o", "x"), [1], [{"o": 3}] * 60),
        (("v", "a"), [1], [None] * 60),
        (("v", "a"), [1], [4] * 60),
    ],
)
def test_what_is_more_than_a_leaf_is_not_patched_as_one(
    tmp_path: Path, place: tuple[str, ...], new: list[Any], values: list[Any]
) -> None:
    changed = np.arange(60) == 9
    assert set_at(written(tmp_path, values), place, new, changed) is None
