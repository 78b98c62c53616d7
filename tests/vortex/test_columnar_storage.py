"""The struct that a columnar column is in a file: when something is there, and as what."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.files.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.files.vortex.columnar.storage import from_storage, to_storage, whole_rows

MIXED = [1, 300, 2**40, True, None, "x", 1.5, [1, "x"], {"b": 1}, []]


def rows(count=300):
    rng = random.Random(5)
    made = [{name: rng.choice(MIXED) for name in "abc" if rng.random() < 0.7} for _ in range(count)]
    return [{**row, "one": "text"} if rng.random() < 0.5 else row for row in made]


def storage_of(values):
    return to_storage(ColumnarVariant.from_variant(pv.VariantArray.from_pylist(values)))


def test_a_field_of_one_kind_has_one_code_in_all_rows():
    values = rows()
    group = storage_of(values).field("object").field("one")
    assert group.field("discriminator").null_count == 0
    assert len(group.field("discriminator").unique()) == 1
    assert group.field("string").null_count == sum("one" not in row for row in values)


@pytest.mark.parametrize("with_nulls", [False, True])
def test_there_and_back(with_nulls):
    values = rows()
    if with_nulls:
        values = [None if number % 7 == 0 else value for number, value in enumerate(values)]
    found = from_storage(storage_of(values)).to_variant()
    assert json.dumps(found.to_pylist()) == json.dumps(
        [row if row is None else dict(sorted(row.items())) for row in values]
    )


def test_nulls_in_discriminators_are_read_as_files_of_before_have_them():
    values = rows()

    def with_nulls(group):
        fields = [group.field(index) for index in range(group.type.num_fields)]
        names = [field.name for field in group.type]
        there = pa.array([code is not None for code in group.field("discriminator").to_pylist()])
        scalars = [each.is_valid() for name, each in zip(names, fields, strict=True) if name in ("string", "integer")]
        if len(scalars) == 1 and len(names) == 2:
            there = scalars[0]
        fields[0] = fields[0].filter(there).take(ranks(there))
        if "object" in names:
            below = fields[names.index("object")]
            children = [with_nulls(below.field(index)) for index in range(below.type.num_fields)]
            fields[names.index("object")] = pa.StructArray.from_arrays(children, fields=list(below.type))
        return pa.StructArray.from_arrays(fields, names=names)

    def ranks(there):
        kept, at = [], 0
        for value in there.to_pylist():
            kept.append(at if value else None)
            at += value
        return pa.array(kept, pa.int64())

    old = with_nulls(storage_of(values))
    assert old.field("object").field("one").field("discriminator").null_count
    assert from_storage(old).to_variant().to_pylist() == pv.VariantArray.from_pylist(values).to_pylist()


def nested(depth, value):
    return [nested(depth - 1, value)] if depth else value


@pytest.mark.parametrize("seed", range(4))
def test_whole_rows_are_those_of_the_columns(seed):
    rng = random.Random(seed)
    values = [
        None if rng.random() < 0.1 else {
            **row,
            f"rare{rng.randrange(40)}": rng.choice([*MIXED, {"rare1": {"é": [1]}, "a": 2}]),
            "deep": nested(rng.randrange(14), {"x": rng.randrange(5)}),
            "o": {f"n{rng.randrange(30)}": {"a": rng.random()}, "a": 1},
        }
        for row in rows(200)
    ]  # fmt: skip
    storage = storage_of(values)
    found = whole_rows(storage)
    assert not len(pv.validate(found))
    assert found.equals(pv.VariantArray.from_pylist(values))
    assert found.equals(from_storage(storage).to_variant())
    for part in (storage.slice(7, 50), storage.filter(pa.array([rng.random() < 0.3 for _ in values]))):
        assert whole_rows(part).equals(from_storage(part).to_variant())


def test_bytes_that_cannot_be_given_other_names_become_columns():
    rest = pv.VariantArray.from_pylist([{"a": 1}] * 3).storage
    metadata = bytes.fromhex("0102000101") + b"a"  # twice the same name
    broken = pa.StructArray.from_arrays([pa.array([metadata] * 3), rest.field("value")], names=["metadata", "value"])
    storage = pa.StructArray.from_arrays([pa.array([22] * 3, pa.uint16()), broken], names=["discriminator", "rest"])
    try:
        expected = from_storage(storage).to_variant().to_pylist()
    except pv.VariantError as error:
        with pytest.raises(type(error)):
            whole_rows(storage)
    else:
        assert whole_rows(storage).to_pylist() == expected
