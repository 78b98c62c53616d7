"""Shredding stops well below the depth that any supported reader refuses; deeper values stay in the residual."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.inference.infer import infer
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.explicit import ExplicitPolicy, HintsPolicy, WorkloadPolicy
from parquet_variant.inference.policies.spark import SparkPolicy
from parquet_variant.layouts.storage_shape import MAX_FILE_DEPTH, MAX_PHYSICAL_DEPTH


def comments(depth: int, row: int) -> dict[str, Any]:
    value: dict[str, Any] = {"id": row, "text": "leaf"}
    for level in range(depth):
        value = {"id": row + level, "children": [value]}
    return value


def objects(depth: int, row: int) -> Any:
    value: Any = row
    for _ in range(depth):
        value = {"a": value}
    return value


def arrays(depth: int, row: int) -> Any:
    value: Any = row
    for _ in range(depth):
        value = [value]
    return value


def mixed(depth: int, row: int) -> Any:
    value: Any = row
    steps = random.Random(depth)
    for _ in range(depth):
        value = steps.choice([lambda v: {"k": v, "n": 1}, lambda v: [v], lambda v: [{"e": v}]])(value)
    return value


DEEP = [(comments, 20), (comments, 60), (objects, 49), (objects, 150), (arrays, 33), (arrays, 150), (mixed, 80)]


def documents(make: Any, depth: int) -> list[str]:
    return [json.dumps(make(depth, row), separators=(",", ":"), sort_keys=True) for row in range(100)]


def levels(arrow: pa.DataType) -> int:
    """Count Parquet levels independently of the library: one for each group, and `list` in between."""
    if pa.types.is_struct(arrow):
        return 1 + max(levels(field.type) for field in arrow)
    if pa.types.is_list(arrow):
        return 2 + levels(arrow.value_type)
    return 1


@pytest.fixture(params=DEEP, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def texts(request: pytest.FixtureRequest) -> list[str]:
    return documents(*request.param)


POLICIES = [
    "auto",
    "spark",
    AutoPolicy(max_depth=1000, min_row_share=0, max_columns=10_000),
    AutoPolicy(readers="duckdb", max_depth=1000),
    SparkPolicy(max_depth=1000, max_width=100_000),
    HintsPolicy(max_columns=10_000),
    WorkloadPolicy({"$": 1.0}, fallback=None),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_every_policy_stays_within_the_limit(policy: Any, texts: list[str]) -> None:
    array = pv.parse_json(texts)
    result = infer(array, policy)
    assert levels(result.schema.storage_type()) <= MAX_PHYSICAL_DEPTH
    for decision in result.decisions:
        assert decision.shredded == (result.schema.get(decision.path) is not None)
    shredded = pv.shred_variant(array, result.schema)
    assert pv.to_json(shredded).to_pylist() == texts


def deep_schema(depth: int) -> pv.ShreddingSchema:
    schema = pv.ShreddingSchema.primitive(pa.int64())
    for _ in range(depth):
        schema = pv.ShreddingSchema.object({"a": schema})
    return schema


def test_the_levels_of_a_schema_are_those_of_its_storage() -> None:
    for make, depth in DEEP:
        array = pv.parse_json(documents(make, min(depth, 20)))
        schema = infer(array, AutoPolicy(max_depth=1000)).schema
        assert schema.physical_depth == levels(schema.storage_type())
    assert deep_schema(40).physical_depth == levels(deep_schema(40).storage_type()) == 82


def test_explicit_schemas_that_are_deeper_are_refused_wherever_one_is_taken(tmp_path: Any) -> None:
    schema = deep_schema(25)
    array = pv.parse_json(documents(objects, 49))
    (tmp_path / "a.ndjson").write_text("\n".join(documents(objects, 49)))
    path = "$" + ".a" * 25
    nested_arrow = pa.struct([pa.field("v", pa.int64())])
    for _ in range(30):
        nested_arrow = pa.struct([pa.field("v", nested_arrow)])
    calls = [
        lambda: pv.shred_variant(array, schema),
        lambda: pv.shred_variant(array, schema.to_ddl()),
        lambda: pv.parse_json(documents(objects, 49), schema=schema),
        lambda: infer(array, ExplicitPolicy(schema)),
        lambda: infer(array, ExplicitPolicy(schema.to_json())),
        lambda: infer(array, ExplicitPolicy(nested_arrow)),
        lambda: HintsPolicy({path: "bigint"}),
        lambda: HintsPolicy({"$.a": deep_schema(24).to_ddl()}),
        lambda: pv.write(tmp_path / "b.parquet", array, schema=schema),
        lambda: pv.ingest(tmp_path / "a.ndjson", tmp_path / "c.parquet", schema=schema),
        lambda: infer(array, ExplicitPolicy(pv.ShreddingSchema.from_ddl("b int").merge(schema))),
    ]
    for call in calls:
        with pytest.raises(pv.SchemaError) as refused:
            call()
        assert refused.value.reason == "too-deep"
        assert str(MAX_PHYSICAL_DEPTH) in str(refused.value)
    assert pv.to_json(pv.shred_variant(array, deep_schema(24))).to_pylist() == documents(objects, 49)


def existing_deep_column(texts: list[str], depth: int) -> pv.VariantArray:
    """Shred deeper than the limit, as files of earlier versions and of other writers are."""
    from parquet_variant.arrays.final_columns import shredded_final

    return pv.VariantArray(shredded_final(pv.parse_json(texts).storage, deep_schema(depth)))


def test_columns_that_are_shredded_deeper_are_written_within_the_limit(tmp_path: Any) -> None:
    texts = documents(objects, 45)
    array = existing_deep_column(texts, 44)
    assert pv.to_json(array).to_pylist() == texts
    pv.write(tmp_path / "a.parquet", array)
    pv.write(tmp_path / "b.parquet", {"id": pa.array(range(100)), "v": array})
    pv.write(tmp_path / "t", {"v": array}, format="delta")
    assert levels(pv.ShreddingSchema.from_parquet(tmp_path / "a.parquet").storage_type()) <= MAX_PHYSICAL_DEPTH
    for read in (pv.open(tmp_path / "a.parquet").read(), pv.open(tmp_path / "t").read()):
        assert pv.to_json(read).to_pylist() == texts
    assert pv.to_json(pv.VariantArray(pv.open(tmp_path / "b.parquet").to_arrow()["v"])).to_pylist() == texts


@pytest.mark.parametrize("above", [5, 20, 45])
def test_levels_above_a_nested_variant_count(above: int, tmp_path: Any) -> None:
    texts = documents(objects, 40)
    array = pv.shred_variant(pv.parse_json(texts), deep_schema(24))
    tag = {b"ARROW:extension:name": b"arrow.parquet.variant", b"ARROW:extension:metadata": b""}
    field, column = pa.field("v", array.storage.type, metadata=tag), array.storage
    for level in range(above):
        column = pa.StructArray.from_arrays([column], fields=[field])
        field = pa.field(f"s{level}", column.type)
    pv.write(tmp_path / "a.parquet", pa.table([column], schema=pa.schema([field])))
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert max(file.schema.column(i).path.count(".") + 1 for i in range(len(file.schema))) <= MAX_FILE_DEPTH
    name = ".".join(f"s{level}" for level in reversed(range(above))) + ".v"
    assert pv.to_json(pv.open(tmp_path / "a.parquet").read(name)).to_pylist() == texts


def test_deep_documents_go_through_every_operation(texts: list[str], tmp_path: Any) -> None:
    source, files = tmp_path / "a.ndjson", tmp_path / "a"
    source.write_text("\n".join(texts) + "\n")
    for mode in ("error", "append"):
        assert pv.ingest(source, files, mode=mode).rows == 100
    assert sum(pq.ParquetFile(file).metadata.num_rows for file in files.glob("*.parquet")) == 200
    assert not pv.open(files).validate().violations
    assert all(pv.open(file).inspect().rows == 100 for file in files.glob("*.parquet"))
    assert pv.open(files).scan({"a": "$.a"}).to_arrow().num_rows == 200
    pv.open(files).rewrite(tmp_path / "b", schema="infer")
    pv.open(files).rewrite(tmp_path / "c")
    table = tmp_path / "table"
    for mode in ("error", "append"):
        pv.ingest(source, table, format="delta", mode=mode)
    pv.open(table).optimize()
    reads = [pv.open(files).read(), pv.open(tmp_path / "b").read(), pv.open(tmp_path / "c").read()]
    for read in (*reads, pv.open(table).read()):
        assert pv.to_json(read).to_pylist() == texts * 2
