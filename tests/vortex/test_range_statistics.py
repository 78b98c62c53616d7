"""Statistics of shredded children leave out ranges of rows, and never one that holds an answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.files.vortex import RangeStatistics, collect_statistics, encode, get_variant_element
from parquet_variant.query.predicate import Compare, bind, evaluate
from parquet_variant.testing import variants

ROWS = [
    *(f'{{"id": {n}, "o": {{"f": {n}.5}}}}' for n in range(10)),
    *(f'{{"id": "text {n}"}}' for n in range(10)),
    *(['{"other": 1}'] * 10),
    *(f'{{"id": {n}}}' for n in range(100, 110)),
    *(['{"id": null}'] * 5),
    *([None] * 5),
]
SCHEMA = "id bigint, o struct<f: decimal(4,1)>"


def statistics(encoding):
    return collect_statistics(encode(pv.parse_json(ROWS), encoding, SCHEMA), range_rows=10)


def test_columnar_skips_ranges_with_another_type_only():
    found = statistics("columnar")
    assert found.ranges("$.id", "bigint") == [(0, 10), (30, 40)]
    assert found.ranges("$.id", "string") == [(10, 20)]
    assert found.ranges("$.id", "date") == []
    assert found.ranges("$.id", "bigint", ">", 50) == [(30, 40)]
    assert found.ranges("$.id", "string", "=", "x") == []
    assert found.ranges("$.o.f", "decimal(10,2)", "<", 3) == [(0, 10)]
    assert found.ranges("$.nowhere", "bigint") == []


def test_final_layout_skips_what_no_residual_can_hold():
    found = statistics("final")
    # In the second range texts are in the residual, which has no statistics.
    assert found.ranges("$.id", "bigint") == [(0, 10), (10, 20), (30, 40)]
    assert found.ranges("$.id", "bigint", ">", 50) == [(10, 20), (30, 40)]
    # A range that has the path as bigint only, and is asked for another type.
    assert found.ranges("$.id", "string") == [(10, 20)]
    assert found.ranges("$.o.f", "bigint", ">", 10) == []
    # Not shredded: nothing is known.
    assert len(found.ranges("$.other", "bigint")) == 5


def test_only_shredded_children_have_statistics():
    assert statistics("unshredded").paths == {}
    assert len(statistics("unshredded").ranges("$.id", "bigint", ">", 50)) == 5


@pytest.mark.parametrize("encoding", ["final", "columnar"])
def test_statistics_are_written_and_read(encoding):
    found = statistics(encoding)
    again = RangeStatistics.from_bytes(found.to_bytes())
    for path, dtype in (("$.id", "bigint"), ("$.id", "string"), ("$.o.f", "decimal(10,2)"), ("$.o", "string")):
        for op, literal in ((None, None), (">", "5"), ("=", "7"), ("<", "200")):
            literal = literal if op is None or dtype == "string" else int(literal)
            assert again.ranges(path, dtype, op, literal) == found.ranges(path, dtype, op, literal)


def test_bounds_of_long_texts_and_nanoseconds_are_kept_sound():
    values = ["a" * 100 + "z", "b" * 200, np.datetime64(1_234_567_890_123_456_789, "ns")]
    found = collect_statistics(encode(pv.VariantArray.from_pylist(values), "columnar"))
    again = RangeStatistics.from_bytes(found.to_bytes())
    assert again.ranges("$", "string", "=", "b" * 200) == [(0, 3)]
    assert again.ranges("$", "string", ">", "c") == []
    child = next(child for child in again.paths[pv.VariantPath()].children if pv_is_nanos(child.type))
    assert child.lower[0].value == 1_234_567_890_123_456_789


def pv_is_nanos(kind):
    return str(kind) == "timestamp[ns]"


@given(st.data())
def test_a_skipped_range_holds_no_answer(data):
    values = data.draw(st.lists(st.none() | variants(max_leaves=5), min_size=1, max_size=9))
    array = pv.VariantArray.from_variants(values)
    keys = sorted({key for value in values if value is not None and value.type == "object" for key in value})
    path = pv.VariantPath(tuple(data.draw(st.lists(st.sampled_from(keys), max_size=1))) if keys else ())
    target = data.draw(
        st.sampled_from(["bigint", "decimal(38,3)", "double", "float", "string", "date", "uuid", "binary"])
    )
    for encoding in ("final", "columnar"):
        encoded = encode(array, encoding, None)
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


@pytest.mark.parametrize("schema", [None, "id bigint"])
def test_the_variant_layout_skips_ranges_of_values_in_bytes(schema, tmp_path):
    pytest.importorskip("vortex.expr", reason="vortex-data is not installed")
    rows = [f'{{"id": {n}, "t": "s{n}", "o": {{"f": {n}.5}}}}' for n in range(40_960)]
    rows[10_000], rows[20_000], rows[30_000] = '{"id": "text"}', "[1]", '{"id": 1e300, "t": 5}'
    path = tmp_path / "a.vortex"
    pv.vortex.write(path, pv.parse_json(rows), layout="variant", schema=schema)
    assert pv.vortex.inspect(path).columns[0].ranges == 5
    columns = {"id": "$.id:bigint", "t": "$.t:string", "f": "$.o.f:decimal(10,1)", "g": "$.no:string"}
    for where, cast, read in (
        ("id = 3", False, 1), ("id > 40000", False, 1), ("t = 's100'", False, 1), ("t = '5'", False, 0),
        ("f < 10", False, 1), ("f < 10", True, 1), ("g is not null", True, 0), ("id = 3", True, 3),
    ):  # fmt: skip
        scan = pv.vortex.scan_files(path, columns, where, cast=cast)
        assert (scan.explain().ranges, scan.explain().ranges_read) == (5, read), where
        everything = pv.vortex.scan(path, columns, where, pushdown=False, cast=cast)
        assert scan.to_table().equals(everything.to_table())
    # The unexpected types are known.
    scan = pv.vortex.scan_files(path, {"id": "$.id:string"}, "id = 'text'", cast=False)
    assert (scan.explain().ranges_read, scan.to_table()["id"].to_pylist()) == (1, ["text"])


def test_many_paths_have_statistics_of_the_frequent_ones():
    from parquet_variant.files.vortex.logical import range_statistics

    rows = [f'{{"id": {n}, "k{n}": 1}}' for n in range(range_statistics.MAX_DESCRIBED_PATHS + 10)]
    described = range_statistics.with_columns_to_describe(pv.parse_json(rows))
    found = collect_statistics(described, range_rows=1000)
    assert found.ranges("$.id", "bigint", "<", 5) == [(0, 1000)]
    assert len(found.ranges("$.k1", "bigint")) == found.count
