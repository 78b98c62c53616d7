"""Contracts over tapes: bad rows are those that the JSON Schema of the contract rejects, with exact counts."""

from __future__ import annotations

import json
from decimal import Decimal

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.inference.contracts.contract_check import ContractCheck
from parquet_variant.inference.contracts.report import ContractCounts

_SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 300)
    | st.sampled_from([0.5, -0.0, 2.0, 1.25, 1e300, 12345678901234567890])
    | st.sampled_from(["", "a", "aa", "üü", "b1", "x" * 70])
)  # fmt: skip
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_PATHS = ("$", "$.a", "$.b", "$.a.b", "$.a[*]", "$.b[*].c", "$[*]", "$.c")


@st.composite
def _rules(draw: st.DrawFn) -> dict[str, object]:
    choices = {
        "type": st.lists(
            st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"]), min_size=1
        ),
        "min": st.sampled_from([0, -1, Decimal("0.5"), Decimal("1.1")]),
        "max": st.sampled_from([2, 100, Decimal("1.25"), 10**19]),
        "min_length": st.sampled_from([1, 2]),
        "max_length": st.sampled_from([2, 3, 69]),
        "min_items": st.just(1),
        "max_items": st.sampled_from([1, 2]),
        "pattern": st.sampled_from(["^a", "[0-9]$", "ü"]),
        "values": st.lists(_SCALARS.filter(lambda value: value is not None), min_size=1, max_size=3),
        "extra_fields": st.just(False),
    }
    names = draw(st.sets(st.sampled_from(sorted(choices)), max_size=3))
    return {name: draw(choices[name]) for name in sorted(names)}


@st.composite
def _contracts(draw: st.DrawFn) -> pv.Contract:
    paths = draw(st.dictionaries(st.sampled_from(_PATHS), _rules(), min_size=1, max_size=4))
    for path, rules in paths.items():
        if path != "$" and not path.endswith("]") and draw(st.booleans()):
            rules["required"] = True
    return pv.Contract(paths)


def _counts(rows: list[str | None], contract: pv.Contract) -> ContractCounts:
    total = ContractCounts()
    for tape in array_tapes(pv.parse_json(rows), 0):
        total = total.merge(ContractCheck(contract).violations(tape).counts())
    return total


@settings(max_examples=100, deadline=None)
@given(st.lists(_VALUES, min_size=1, max_size=6), _contracts())
def test_the_rows_that_break_a_contract_are_those_that_its_json_schema_rejects(rows, contract) -> None:
    texts = [json.dumps(row) for row in rows]
    validator = jsonschema.Draft202012Validator(json.loads(json.dumps(contract.to_json_schema())))
    rejected = [not validator.is_valid(json.loads(text)) for text in texts]
    (tape,) = array_tapes(pv.parse_json(texts), 0)
    violations = ContractCheck(contract).violations(tape)
    assert violations.bad_rows.tolist() == [row for row, is_bad in enumerate(rejected) if is_bad]
    assert sorted(violations.reasons()) == violations.bad_rows.tolist()


def test_each_violation_has_its_count_rows_share_and_examples() -> None:
    contract = pv.Contract(
        {
            "$": {"type": "object", "required": True, "extra_fields": False},
            "$.id": {"type": "integer", "required": True, "min": 0},
            "$.tags[*]": {"type": "string", "values": ["x", "y"]},
            "$.p": {"presence": 0.75},
            "$.at": {"format": "timestamp"},
        }
    )
    rows = [
        '{"id": 1, "tags": ["x", "z", "z"], "p": null}',
        '{"id": -1, "id": -2, "p": 1, "at": "2026-01-31T00:00:00Z"}',
        '{"id": 1.5, "tags": ["x", 3], "p": 1, "at": "2026-01-31"}',
        '{"q": {"id": -1}}',
        None,
    ]
    found = {(v.path.shorthand, v.rule): v for v in _counts(rows, contract).violations(contract)}
    summary = {key: (v.count, v.rows, [(e.row, e.value) for e in v.examples]) for key, v in found.items()}
    assert summary == {
        ("$", "required"): (1, 1, [(4, None)]),
        ("$", "extra_fields"): (1, 1, [(3, "q")]),
        ("$.id", "type"): (1, 1, [(2, Decimal("1.5"))]),
        ("$.id", "required"): (1, 1, [(3, None)]),
        ("$.id", "min"): (1, 1, [(1, -2)]),
        ("$.tags[*]", "type"): (1, 1, [(2, 3)]),
        ("$.tags[*]", "values"): (2, 1, [(0, "z"), (0, "z")]),
        ("$.at", "format"): (1, 1, [(2, "2026-01-31")]),
    }
    assert found["$.tags[*]", "values"].share == 0.2
    assert _counts(rows, contract).bad_rows == 5
    without = _counts([*rows, '{"id": 1}'], contract)
    assert [v.rule for v in without.violations(contract) if v.path.shorthand == "$.p"] == ["presence"], "3 of 5 objects"


def test_dates_timestamps_and_wide_decimals_have_exact_bounds() -> None:
    import datetime as dt

    contract = pv.Contract(
        {
            "$.d": {"type": "date", "min": "2020-01-02", "max": dt.date(2020, 12, 31)},
            "$.t": {"type": "timestamp", "max": "2020-01-01T00:00:00.000001Z"},
            "$.n": {"type": "number", "max": Decimal("99999999999999999999999999.5")},
        }
    )
    utc = dt.UTC
    rows = [
        {"d": dt.date(2020, 1, 1)},
        {"d": dt.date(2020, 1, 2), "t": dt.datetime(2020, 1, 1, tzinfo=utc)},
        {"t": dt.datetime(2020, 1, 1, 0, 0, 0, 2, tzinfo=utc)},
        {"t": dt.datetime(2020, 1, 1)},
        {"n": Decimal("99999999999999999999999999.6")},
        {"n": Decimal("99999999999999999999999999.5")},
        {"n": float("nan")},
    ]
    (tape,) = array_tapes(pv.VariantArray.from_pylist(rows), 0)
    assert ContractCheck(contract).violations(tape).bad_rows.tolist() == [0, 2, 3, 4, 6]
