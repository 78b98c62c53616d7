"""Skipping is never wrong: a scan that skips answers as one that does not, and as the values in memory do."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.query.predicate import And, Compare, IsNull, Like, Not, Or, bind, columns_of, evaluate, is_in

pytestmark = pytest.mark.filterwarnings("ignore:no row has the path")

D = Decimal
SCALARS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**40, -(2**62), D("1.50"), D("-2"), D("123456789012.5"), 0.5, -1.5, math.nan, math.inf, 1e300]),
    st.sampled_from(["", "a", "ab", "abc", "2", "2024-01-31", "true", "é", "\U0001f600"]),
    st.sampled_from([True, False, b"\x00\xff", dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)]),
    st.sampled_from([dt.datetime(1999, 1, 1), dt.time(1, 2, 3)]),
    st.just(pv.Variant.from_python(None)),
)
NESTED = st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from(["c", "d.e"]), SCALARS, max_size=2)
VALUES = st.dictionaries(st.sampled_from(["a", "b", "n"]), SCALARS | NESTED, max_size=3)
ROWS = st.lists(VALUES | SCALARS | st.none(), min_size=1, max_size=24)
# Runs of like values make row groups that can be skipped.
SORTED_ROWS = st.lists(st.integers(-4, 4), min_size=4, max_size=24).map(lambda found: [{"a": n} for n in sorted(found)])

SCHEMAS = [
    None,
    "a bigint",
    "a int, b string",
    "a decimal(9,2), b double",
    "a double, n struct<c: int, `d.e`: string>",
    "a string, b array<int>, n array<string>",
    "a timestamp, b date, n binary",
    "a boolean, b timestamp_ntz, n float",
    "bigint",
    "array<struct<c: int>>",
]
LAYOUTS = ["final", "draft-paths", "draft-object"]
TARGETS = {
    "tinyint": st.integers(-3, 3),
    "bigint": st.integers(-3, 3) | st.just(D("1.5")),
    "decimal(10,2)": st.sampled_from([D("1.5"), D("1.505"), 2, -2]),
    "double": st.sampled_from([0.5, 1, -2, D("1.50"), math.nan, math.inf]),
    "float": st.sampled_from([0.5, 1, -2]),
    "string": st.sampled_from(["", "a", "ab", "2", "é"]),
    "boolean": st.booleans(),
    "date": st.just(dt.date(2024, 1, 31)),
    "timestamp": st.just(dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)),
    "timestamp_ntz": st.just(dt.datetime(1999, 1, 1)),
    "binary": st.just(b"\x00\xff"),
}
NESTED_TARGETS = [
    "array<int>",
    "array<string>",
    "struct<c: int>",
    "struct<`d.e`: string, c: double>",
    "struct<zzz: int>",
    "struct<n: struct<c: variant>, a: string>",
    "array<struct<c: int>>",
]
PATHS = ["$", "$.a", "$.b", "$.n.c", "$.n['d.e']", "$.n[0]", "$.b[1]", "$.zzz", "$[0].c"]


@st.composite
def cases(draw):
    selection, atoms = {}, []
    for name in ("x", "y"):
        kind = draw(st.sampled_from(sorted(TARGETS)))
        selection[name] = (draw(st.sampled_from(PATHS)), kind)
        literal = TARGETS[kind]
        atoms.append(st.builds(Compare, st.just(name), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), literal))
        atoms.append(st.builds(IsNull, st.just(name)))
        atoms.append(st.builds(is_in, st.just(name), st.lists(literal | st.none(), min_size=1, max_size=3)))
        if kind == "string":
            atoms.append(st.builds(Like, st.just(name), st.sampled_from(["a%", "ab%", "%", "a_", "2"])))
    predicate = st.recursive(
        st.one_of(atoms),
        lambda inner: (
            st.builds(Not, inner)
            | st.builds(lambda a, b: And((a, b)), inner, inner)
            | st.builds(lambda a, b: Or((a, b)), inner, inner)
        ),
        max_leaves=3,
    )
    return {
        "rows": draw(ROWS | SORTED_ROWS),
        "schema": draw(st.sampled_from(SCHEMAS)),
        "layout": draw(st.sampled_from(LAYOUTS)),
        "group_bytes": draw(st.sampled_from([1, 200, 1 << 20])),
        "selection": {
            **selection,
            "z": ("$.a", draw(st.sampled_from(["string", "variant", "bigint"]))),
            "w": (draw(st.sampled_from(["$", "$.n", "$.b", "$.n[*]"])), draw(st.sampled_from(NESTED_TARGETS))),
        },
        "where": draw(predicate),
    }


def comparable(table):
    """Rows that can be compared: NaN equal to itself, Variants by their bytes, instants also beyond Python's years."""
    columns = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in table.columns]
    return [repr(row) for row in pa.table(columns, names=table.column_names).to_pylist()]


@given(cases())
def test_skipping_changes_nothing(case):
    array = pv.VariantArray.from_pylist(case["rows"])
    schema = None if case["layout"] != "final" and case["schema"] is None else case["schema"]
    with tempfile.TemporaryDirectory() as folder:
        pv.write(
            f"{folder}/a.parquet", array, schema=schema, layout=case["layout"], row_group_bytes=case["group_bytes"]
        )
        skipping = pv.open(folder).scan(case["selection"], [case["where"]]).to_arrow()
        whole = pv.open(folder).scan(case["selection"], [case["where"]], skipping=False).to_arrow()
    assert comparable(skipping) == comparable(whole)
    wanted = {name: variant_get(array, *each, errors="null") for name, each in case["selection"].items() if name != "z"}
    names = columns_of(case["where"])
    bound = bind(case["where"], {name: wanted[name].type for name in names})
    mask = evaluate(bound, wanted)
    expected = pa.table(wanted).filter(mask)
    assert comparable(skipping.select(["x", "y", "w"])) == comparable(expected)


@given(st.lists(cases(), min_size=2, max_size=3))
def test_files_of_conflicting_schemas_answer_together(many):
    selection, where = many[0]["selection"], many[0]["where"]
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for number, case in enumerate(many):
            array = pv.VariantArray.from_pylist(case["rows"])
            pv.write(f"{folder}/{number}.parquet", array, schema=case["schema"], row_group_bytes=200)
            parts.append(array)
        answer = pv.open(folder).scan(selection, [where]).to_arrow()
        together = pv.open(folder).read()
        single = pv.write(f"{folder}/_all.parquet", pv.VariantArray.concat(parts))
        expected = pv.open(single.path).scan(selection, [where], skipping=False).to_arrow()
    assert comparable(answer.drop_columns("z")) == comparable(expected.drop_columns("z"))
    assert list(together) == [value for part in parts for value in part]


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_statistics_agree_with_the_casts(target, tmp_path):
    """For every pair of stored and target type: one value a row group, looked for by equality, is always found."""
    samples = {
        "tinyint": [1, -2], "smallint": [1, 300], "int": [1, 70_000], "bigint": [1, 2**33],
        "decimal(4,2)": [D("1.00"), D("1.50")], "decimal(20,4)": [D("1.0000"), D("12345678.4567")],
        "double": [1.0, 1.5, 0.1], "float": [1.0, 0.1], "string": ["1", "true", "2024-01-31", "x"],
        "boolean": [True, False], "date": [dt.date(2024, 1, 31)],
        "timestamp": [dt.datetime(2024, 1, 31, tzinfo=dt.UTC)], "timestamp_ntz": [dt.datetime(2024, 1, 31)],
        "time": [dt.time(1, 2, 3)], "binary": [b"1", b"\xff"],
    }  # fmt: skip
    for stored, values in samples.items():
        array = pv.VariantArray.from_pylist(values)
        path = tmp_path / f"{abs(hash(stored))}.parquet"
        pv.write(path, array, schema=stored, row_group_bytes=1)
        answers = variant_get(array, "$", target, errors="null")
        for answer in answers.drop_null().to_pylist():
            found = pv.open(path).scan({"x": ("$", target)}, ("x", "=", answer)).to_arrow()
            assert answer in found["x"].to_pylist() or answer != answer, (stored, target, answer)
        nulls = pv.open(path).scan({"x": ("$", target)}, "x is null").to_arrow()
        assert len(nulls) == answers.null_count, (stored, target)
