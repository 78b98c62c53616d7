"""`Table.check`: footers, columns and values give the same violations, for every format."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import parquet_variant as pv

_VALUES = st.one_of(
    st.integers(-3, 300),
    st.sampled_from([None, True, 0.5, 2.5, 2.0, "", "a", "bb", "2026-01-31", [], [1, "a"], {"c": 1}, {"c": None}]),
)
_ROWS = st.lists(
    st.none()
    | st.integers(0, 3)
    | st.fixed_dictionaries(
        {},
        optional={
            "a": _VALUES | st.integers(0, 9),
            "b": st.fixed_dictionaries({}, optional={"c": _VALUES, "d": st.integers(0, 5)}) | _VALUES,
            "l": st.lists(st.integers(0, 4) | st.fixed_dictionaries({}, optional={"x": _VALUES}), max_size=3) | _VALUES,
            "r": _VALUES,
        },
    ),
    min_size=1,
    max_size=8,
)
_RULES = {
    "type": st.lists(st.sampled_from(["object", "array", "string", "integer", "number", "null"]), min_size=1),
    "nullable": st.booleans(),
    "min": st.sampled_from([0, 0.5]),
    "max": st.sampled_from([4, 2.5, 300]),
    "max_length": st.sampled_from([1, 2]),
    "min_items": st.just(1),
    "max_items": st.just(2),
    "values": st.just([0, 1, 2, 3, "a", True]),
    "pattern": st.just("^[a-z]*$"),
    "format": st.just("date"),
    "extra_fields": st.just(False),
}
_SCHEMA = "a bigint, b struct<c decimal(9,2), d bigint>, l array<struct<x bigint>>, e string"
_PATHS = ("$", "$.a", "$.b", "$.b.c", "$.b.d", "$.l", "$.l[*]", "$.l[*].x", "$.r")


@st.composite
def _contracts(draw: st.DrawFn) -> pv.Contract:
    paths = {}
    for path in draw(st.sets(st.sampled_from(_PATHS), min_size=1, max_size=4)):
        rules = {
            name: draw(_RULES[name]) for name in sorted(draw(st.sets(st.sampled_from(sorted(_RULES)), max_size=3)))
        }
        if "null" in rules.get("type", ()):
            rules.pop("nullable", None)
        if not path.endswith("]"):
            rules |= draw(st.sampled_from([{}, {"required": True}, {"presence": 0.5}]))
        paths[path] = rules
    return pv.Contract(paths)


def _summary(report):
    return (
        report.rows,
        report.bad_rows,
        [
            (v.path.shorthand, v.rule, v.count, v.rows, [(e.row, e.value) for e in v.examples])
            for v in report.violations
        ],
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_ROWS, st.none() | st.integers(0, 9), _contracts(), st.sampled_from(["all", "auto", None]))
def test_footers_columns_and_values_give_the_same_violations(tmp_path, rows, typed, contract, shredding) -> None:
    rows = [*rows, *[{"a": typed}] * 4] if typed is not None else rows
    array = pv.parse_json([json.dumps(row) for row in rows])
    schema = "infer" if shredding == "auto" else _SCHEMA if shredding == "all" else None
    file = tmp_path / "a.parquet"
    file.unlink(missing_ok=True)
    pv.write(file, array, schema=schema)
    assert _summary(pv.open(file).check(contract)) == _summary(pv.open(array).check(contract))


def test_rules_that_footers_prove_read_no_values_and_others_only_their_columns(tmp_path) -> None:
    rows = [{"id": number, "t": {"name": f"n{number % 7}", "ok": True}, "text": "x" * 200} for number in range(5000)]
    array = pv.VariantArray.from_pylist(rows)
    schema = "id bigint, t struct<name string, ok boolean>, text string"
    for part in range(2):
        pv.write(tmp_path / f"data/{part}.parquet", array, schema=schema)
    proved = {
        "$": {"type": "object", "required": True, "extra_fields": False},
        "$.id": {"type": "integer", "required": True, "min": 0, "max": 4999},
        "$.t": {"type": "object", "required": True},
        "$.t.name": {"type": "string", "required": True},
        "$.t.ok": {"values": [True]},
        "$.text": {"presence": 0.99, "pattern": None},
        "$.none": {"type": "string"},
    }
    report = pv.open(tmp_path / "data").check(proved)
    assert report and report.rows == 10_000
    assert report.evidence == {"footers": 19, "columns": 0, "values": 0}
    assert report.bytes_read < sum(file.stat().st_size for file in (tmp_path / "data").iterdir())
    report = pv.open(tmp_path / "data").check(proved | {"$.id": {"max": 4997}, "$.t.name": {"pattern": "^n"}})
    assert report.evidence == {"footers": 11, "columns": 2, "values": 0}
    (found,) = report.violations
    assert (found.count, found.share, [(e.row, e.value) for e in found.examples]) == (
        4,
        0.0004,
        [(4998, 4998), (4999, 4999)] * 2,
    )
    assert [e.file.rpartition("/")[2] for e in found.examples] == ["0.parquet"] * 2 + ["1.parquet"] * 2
    hidden = pv.open(tmp_path / "data").check({"$.id": {"max": 4997}}, values=False, examples=1)
    assert [(e.row, e.value) for e in hidden.violations[0].examples] == [(4998, None)]


def test_every_format_has_the_same_violations(tmp_path) -> None:
    lines = [json.dumps({"id": number, "tag": "ab"[number % 2]}) for number in range(20)]
    lines[7] = '{"tag": 5}'
    source = tmp_path / "a.ndjson"
    source.write_text("\n".join(lines))
    contract = {"$.id": {"type": "integer", "required": True}, "$.tag": {"values": ["a", "b"]}}
    places = {"json": source}
    for form in ("parquet", "delta", "iceberg", "vortex"):
        places[form] = tmp_path / form
        pv.ingest(source, places[form], format=form)
    for form, place in places.items():
        report = pv.open(place).check(contract)
        found = [(v.path.shorthand, v.rule, v.count, v.share, v.examples[0].row) for v in report.violations]
        row = 8 if form == "json" else 7
        assert found == [("$.id", "required", 1, 0.05, row), ("$.tag", "values", 1, 0.05, row)], form
        assert (report.rows, report.bad_rows) == (20, 1)
    pv.open(places["delta"]).delete("v:id::int IS NULL")
    report = pv.open(places["delta"]).check(contract)
    assert report and report.rows == 19
    assert not pv.open(places["delta"], version=0).check(contract)
