"""`Table.contract`: the data satisfies the contract that is inferred from it, at every level."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["a", "b", "2026-01-31", "https://x"]) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(_VALUES, min_size=1, max_size=6), st.sampled_from(["loose", "normal", "strict"]))
def test_data_satisfies_the_contract_that_is_inferred_from_it(rows, level) -> None:
    data = pv.parse_json([json.dumps(row) for row in rows])
    contract = pv.open(data).contract(level)
    assert pv.open(data).check(contract)
    assert pv.Contract.from_yaml(contract.to_yaml()) == contract


def test_each_level_has_its_rules() -> None:
    rows = [
        {"id": number, "code": f"AB-{number:04}", "tag": "xy"[number % 2],
         "at": f"2026-01-{number % 28 + 1:02}T00:00:00Z",
         "score": None if number % 3 else number / 7, **({"rare": [1, 2]} if number % 4 else {})}
        for number in range(1, 200)
    ]  # fmt: skip
    data = pv.VariantArray.from_pylist(rows)

    def rules(level: str) -> dict:
        return {path.shorthand: found.rules() for path, found in pv.open(data).contract(level).paths.items()}

    loose, normal, strict = rules("loose"), rules("normal"), rules("strict")
    assert loose["$.score"] == {"types": ("number",), "nullable": True}
    assert loose["$.tag"] == {"types": ("string",)}
    assert normal["$.id"] == {"types": ("integer",), "required": True, "min": 0}
    assert normal["$.tag"]["values"] == ("x", "y")
    assert normal["$.at"]["format"] == "timestamp"
    assert strict["$.id"] == {"types": ("integer",), "required": True, "min": 1, "max": 199}
    assert strict["$.code"]["pattern"] == r"^[A-Z]{2}\-[0-9]{4}$"
    assert strict["$.rare"] == {"types": ("array",), "presence": 0.75, "min_items": 2, "max_items": 2}
    assert strict["$"]["extra_fields"] is False


def test_the_fields_of_maps_have_no_rules() -> None:
    rows = [{"counts": {f"k{number}-{part}": 1 for part in range(3)}} for number in range(60)]
    contract = pv.open(pv.VariantArray.from_pylist(rows)).contract("strict")
    assert [path.shorthand for path in contract] == ["$", "$.counts"]
    assert contract.rules("$.counts").extra_fields


def test_every_format_satisfies_the_strict_contract_of_its_rows(tmp_path, usgs_sample) -> None:
    for form in ("delta", "iceberg", "vortex"):
        pv.ingest(usgs_sample, tmp_path / form, format=form)
        contract = pv.open(tmp_path / form).contract("strict")
        assert len(contract) == 34 and pv.open(tmp_path / form).check(contract)
