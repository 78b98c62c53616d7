"""Statistics of shredded children leave out ranges of rows, and never one that holds an answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.files.vortex import RangeStatistics, collect_statistics
from parquet_variant.ops.variant_get import get_variant_element
from parquet_variant.query.predicate import Compare, bind, evaluate
from variant_strategies import shredding_schemas, variants

ROWS = [
    *(f'{{"id": {n}, "o": {{"f": {n}.5}}}}' for n in range(10)),
    *(f'{{"id": "text {n}"}}' for n in range(10)),
    *(['{"other": 1}'] * 10),
    *(f'{{"id": {n}}}' for n in range(100, 110)),
    *(['{"id": null}'] * 5),
    *([None] * 5),
]
SCHEMA = "id bigint, o struct<f: decimal(4,1)>"


def statistics(layout="final"):
    return collect_statistics(pv.shred_variant(pv.parse_json(ROWS), SCHEMA, layout=layout), range_rows=10)


def test_ranges_that_cannot_hold_a_value_of_the_type_are_skipped():
    found = statistics()
    # In the second range the path exists with another type only, whose values are in the residual.
    assert found.ranges("$.id", "bigint") == [(0, 10), (30, 40)]
    assert found.ranges("$.id", "string") == [(10, 20)]
    assert found.ranges("$.id", "date") == []
    assert found.ranges("$.id", "bigint", ">", 50) == [(30, 40)]
    assert found.ranges("$.o.f", "bigint", ">", 10) == []
    assert found.ranges("$.o.f", "decimal(10,2)", "<", 3) == [(0, 10)]
    # A residual has no bounds, and a cast can make any value of it.
    assert found.ranges("$.id", "string", "=", "x") == [(10, 20)]
    # Not shredded: nothing is known.
    assert len(found.ranges("$.other", "bigint")) == 5


def test_values_of_unknown_types_are_never_skipped():
    array = pv.shred_variant(pv.parse_json(ROWS[:20]), SCHEMA)
    damaged = pa.array([b"\xfc"] * 20, pa.binary())  # a primitive type that does not exist
    storage = array.storage
    group = pa.StructArray.from_arrays([damaged, pa.nulls(20, pa.int64())], names=["value", "typed_value"])
    typed = pa.StructArray.from_arrays([group, storage.field("typed_value").field("o")], names=["id", "o"])
    fields = [storage.field("metadata"), storage.field("value"), typed]
    found = collect_statistics(
        pv.VariantArray(pa.StructArray.from_arrays(fields, names=["metadata", "value", "typed_value"])), range_rows=10
    )
    for kind in ("bigint", "decimal(5,1)", "double"):
        assert found.ranges("$.id", kind, "=", 1) == [(0, 10), (10, 20)]
    assert found.ranges("$.id", "date") == [(0, 10), (10, 20)]


def test_only_shredded_children_have_statistics():
    assert statistics("unshredded").paths == {}
    assert len(statistics("unshredded").ranges("$.id", "bigint", ">", 50)) == 5


def test_statistics_are_written_and_read():
    found = statistics()
    again = RangeStatistics.from_bytes(found.to_bytes())
    for path, dtype in (("$.id", "bigint"), ("$.id", "string"), ("$.o.f", "decimal(10,2)"), ("$.o", "string")):
        for op, literal in ((None, None), (">", "5"), ("=", "7"), ("<", "200")):
            literal = literal if op is None or dtype == "string" else int(literal)
            assert again.ranges(path, dtype, op, literal) == found.ranges(path, dtype, op, literal)


def test_bounds_of_long_texts_and_nanoseconds_are_kept_sound():
    texts = pv.VariantArray.from_pylist(["a" * 100 + "z", "b" * 200])
    found = collect_statistics(pv.shred_variant(texts, "string"))
    again = RangeStatistics.from_bytes(found.to_bytes())
    assert again.ranges("$", "string", "=", "b" * 200) == [(0, 2)]
    assert again.ranges("$", "string", ">", "c") == []
    times = pv.VariantArray.from_pylist([np.datetime64(1_234_567_890_123_456_789, "ns")])
    found = collect_statistics(pv.shred_variant(times, "timestamp_ntz_nanos"))
    lower = RangeStatistics.from_bytes(found.to_bytes()).paths[pv.VariantPath()].field("lower")
    assert (str(lower.type), lower[0].value) == ("timestamp[ns]", 1_234_567_890_123_456_789)


@given(st.data())
def test_a_skipped_range_holds_no_answer(data):
    values = data.draw(st.lists(st.none() | variants(max_leaves=5), min_size=1, max_size=9))
    array = pv.VariantArray.from_variants(values)
    keys = sorted({key for value in values if value is not None and value.type == "object" for key in value})
    path = pv.VariantPath(tuple(data.draw(st.lists(st.sampled_from(keys), max_size=1))) if keys else ())
    target = data.draw(
        st.sampled_from(["bigint", "decimal(38,3)", "double", "float", "string", "date", "uuid", "binary"])
    )
    for schema in (data.draw(shredding_schemas(values)), pv.infer_shredding_schema(array)):
        encoded = pv.shred_variant(array, schema)
        found = collect_statistics(encoded, range_rows=2)
        kept = np.zeros(len(values), np.bool_)
        for start, stop in found.ranges(path, target):
            kept[start:stop] = True
        valid = get_variant_element(encoded, path, target).is_valid().to_numpy(zero_copy_only=False)
        assert not (valid & ~kept).any()
        model = get_variant_element(encoded, path, target).drop_null()
        if len(model) and target in ("bigint", "decimal(38,3)", "double", "string"):
            literal = data.draw(st.sampled_from(model.to_pylist()))
            op = data.draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
            kept[:] = False
            for start, stop in RangeStatistics.from_bytes(found.to_bytes()).ranges(path, target, op, literal):
                kept[start:stop] = True
            values_at = get_variant_element(encoded, path, target)
            hits = evaluate(bind(Compare("x", op, literal), {"x": values_at.type}), {"x": values_at})
            assert not (hits.fill_null(False).to_numpy(zero_copy_only=False) & ~kept).any()


# ---- the layout of Vortex's own type, whose values are in bytes


@pytest.mark.parametrize("schema", [None, "infer", "id bigint, t string, o struct<f: decimal(10,1)>"])
def test_the_variant_layout_skips_ranges_of_values_in_bytes(schema, tmp_path):
    pytest.importorskip("vortex.expr", reason="vortex-data is not installed")
    rows = [f'{{"id": {n}, "t": "s{n}", "o": {{"f": {n}.5}}}}' for n in range(40_960)]
    rows[10_000], rows[20_000], rows[30_000] = '{"id": "text"}', "[1]", '{"id": 1e300, "t": 5}'
    path = tmp_path / "a.vortex"
    pv.write(path, pv.parse_json(rows), format="vortex", schema=schema)
    assert pv.open(path).inspect().columns[0].layouts == {"variant": 1}
    assert pv.open(path).inspect().columns[0].ranges == 5
    columns = {"id": "$.id:bigint", "t": "$.t:string", "f": "$.o.f:decimal(10,1)"}
    for where, cast, read in (
        ("id = 3", False, 1), ("id > 40000", False, 1), ("t = 's100'", False, 1), ("t = '5'", False, 0),
        ("f < 10", False, 1), ("f < 10", True, 1), ("id = 3", True, 3),
    ):  # fmt: skip
        scan = pv.open(path).scan(columns, where, cast=cast)
        assert (scan.explain().row_groups_total, scan.explain().row_groups_read) == (5, read), where
        everything = pv.open(path).scan(columns, where, skipping=False, cast=cast)
        assert scan.to_arrow().equals(everything.to_arrow())
    # The unexpected types are known.
    scan = pv.open(path).scan({"id": "$.id:string"}, "id = 'text'", cast=False)
    assert (scan.explain().row_groups_read, scan.to_arrow()["id"].to_pylist()) == (1, ["text"])
