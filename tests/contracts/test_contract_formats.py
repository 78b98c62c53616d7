"""Contracts as YAML, JSON Schema and ODCS: what is written is read back, and faults are named with their place."""

from __future__ import annotations

import datetime as dt
import itertools
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv

_NAMES = st.sampled_from(["a", "b c", "d.e", "ü", "'", "x"])
_SEGMENTS = st.lists(_NAMES | st.just("[*]"), min_size=1, max_size=3)
_NUMBERS = st.integers(-(10**20), 10**20) | st.decimals(-1000, 1000, places=3)
_DATES = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)) | st.datetimes(
    dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC) | st.none()
)


@st.composite
def _rules(draw: st.DrawFn) -> pv.PathRules:
    types = draw(st.sets(st.sampled_from(["object", "array", "string", "integer", "number", "date", "uuid", "null"])))
    rules: dict[str, object] = {"types": tuple(types)}
    if types and draw(st.booleans()):
        rules["nullable"] = "null" in types or draw(st.booleans())
    bounds = draw(st.none() | st.lists(_NUMBERS, min_size=2, max_size=2).map(sorted) | st.tuples(_DATES, st.none()))
    if bounds is not None:
        rules["min"], rules["max"] = bounds
    lengths = draw(st.none() | st.lists(st.integers(0, 99), min_size=2, max_size=2).map(sorted))
    if lengths is not None:
        rules["min_length"], rules["max_items"] = lengths
    rules["values"] = draw(
        st.none() | st.lists(st.text() | st.booleans() | st.integers(-5, 5), min_size=1, max_size=3).map(tuple)
    )
    rules["pattern"] = draw(st.sampled_from([None, "^a+$", "[0-9]"]))
    rules["format"] = draw(st.sampled_from([None, "uuid", "date", "number", "timestamp_ntz"]))
    rules["extra_fields"] = draw(st.booleans())
    rules["description"] = draw(st.none() | st.text(min_size=1))
    return pv.PathRules(**rules)


@st.composite
def _contracts(draw: st.DrawFn) -> pv.Contract:
    paths = {}
    for names in draw(st.lists(_SEGMENTS, max_size=4)):
        path = pv.VariantPath()
        for name in names:
            path = pv.VariantPath.parse(f"{path}[*]") if name == "[*]" else path / name
        rules = draw(_rules())
        if names[-1] != "[*]" and draw(st.booleans()):
            presence = {"required": True} if draw(st.booleans()) else {"presence": 0.25}
            rules = replace(rules, **presence)
        paths[path] = rules
    if draw(st.booleans()):
        paths[pv.VariantPath()] = draw(_rules())
    return pv.Contract(paths, name=draw(st.none() | st.sampled_from(["orders", "x: y"])))


@settings(max_examples=30, deadline=None)
@given(_contracts())
def test_every_form_of_a_contract_is_read_back_as_the_same_contract(contract: pv.Contract) -> None:
    assert pv.Contract.from_yaml(contract.to_yaml()) == contract
    assert pv.Contract.from_json_schema(contract.to_json_schema()) == contract
    name = contract.name or "variant"
    if any(str(path).startswith("$[*]") for path in contract):
        with pytest.raises(pv.VariantError, match="no arrays at the top level"):
            contract.to_odcs()
        return
    assert pv.Contract.from_odcs(contract.to_odcs()) == pv.Contract(contract.paths, name=name)


def test_decimal_bounds_keep_all_digits() -> None:
    contract = pv.Contract({"$.p": {"type": "number", "min": Decimal("0.1234567890123456789"), "max": 10**30}})
    assert pv.Contract.from_yaml(contract.to_yaml()).rules("$.p").min == Decimal("0.1234567890123456789")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the contract is empty"),
        ("version: 2\npaths: {}", "line 1: version is 2"),
        ("version: 1\npath: {}", "line 2: unknown key 'path': did you mean 'paths'"),
        ("version: 1\npaths:\n  $.a: {type: strin}", r"line 3: unknown type 'strin': did you mean 'string'\? \(path"),
        ("version: 1\npaths:\n  $.a:\n    type: string\n    mn: 3", "line 5: unknown rule 'mn': did you mean 'min'"),
        ("version: 1\npaths:\n  $.a[0]: {}", r"line 3: a contract has one rule for all elements: write \[\*\]"),
        ("version: 1\npaths:\n  $.a: 5", "line 3: the rules of a path must be a mapping"),
        ("version: 1\npaths:\n  $.a: {}\n  $['a']: {}", "line 4: the path occurs twice"),
        ("version: 1\npaths:\n  $.a:\n    min: 3\n    max: 2", "line 5: min is 3 and max is 2"),
        ("version: 1\npaths:\n  $.a: {pattern: '('}", "line 3: pattern '\\(' is not a regular expression of RE2"),
        ("version: 1\npaths:\n  $.a[*]: {required: true}", "line 3: elements cannot be required"),
        ("version: 1\npaths:\n  $.a: {presence: 2}", "line 3: presence is 2: write a share above 0"),
        ("version: 1\npaths: [", "line 2: the text is not YAML"),
    ],
)
def test_a_fault_in_a_file_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(pv.VariantError, match=message) as error:
        pv.Contract.from_yaml(text)
    assert error.value.reason == "bad-contract"


def test_what_a_contract_cannot_express_is_refused_by_name() -> None:
    with pytest.raises(pv.VariantError, match="#/properties/a: a contract cannot express the keyword 'oneOf'"):
        pv.Contract.from_json_schema({"properties": {"a": {"oneOf": []}}})
    with pytest.raises(pv.VariantError, match="'additionalProperties' with a schema"):
        pv.Contract.from_json_schema({"additionalProperties": {"type": "string"}})
    with pytest.raises(pv.VariantError, match="the format 'email': use pattern"):
        pv.Contract.from_json_schema({"format": "email"})
    document = """
    apiVersion: v3.1.0
    kind: DataContract
    id: x
    name: orders
    version: 1.0.0
    status: active
    schema:
      - name: orders
        properties:
          - {name: id, logicalType: integer, required: true, logicalTypeOptions: {minimum: 1}}
          - {name: tag, logicalType: string%s}
    """
    contract = pv.Contract.from_odcs(document % "")
    assert contract.rules("$.id") == pv.PathRules(types=("integer",), required=True, min=1)
    assert contract.rules("$.tag").allows_null, "in the standard, a field that is not required may be null"
    with pytest.raises(pv.VariantError, match="schema orders/tag: a contract cannot express 'unique'"):
        pv.Contract.from_odcs(document % ", unique: true")
    with pytest.raises(pv.VariantError, match="cannot express the option 'exclusiveMinimum'"):
        pv.Contract.from_odcs(document % ", logicalTypeOptions: {exclusiveMinimum: 1}")


def test_a_file_of_any_format_is_recognized(tmp_path) -> None:
    import json

    contract = pv.Contract({"$.id": {"type": "integer", "required": True}}, name="orders")
    contract.save(tmp_path / "c.yaml")
    (tmp_path / "c.json").write_text(json.dumps(contract.to_json_schema()))
    (tmp_path / "odcs.yaml").write_text(contract.to_odcs())
    for name in ("c.yaml", "c.json", "odcs.yaml"):
        assert pv.Contract.load(tmp_path / name) == contract
    (tmp_path / "bad.yaml").write_text("version: 1\npaths: 3")
    with pytest.raises(pv.VariantError, match=r"line 2: paths must be a mapping.*bad\.yaml"):
        pv.Contract.load(tmp_path / "bad.yaml")
    with pytest.raises(pv.VariantFileError, match=r"cannot read the contract .*none\.yaml: it does not exist"):
        pv.Contract.load(tmp_path / "none.yaml")


_NESTED_ALIASES = "version: 1\npaths:\n  $.a: {values: &a [x, x, x, x, x, x, x, x, x]}\n" + "".join(
    f"  $.{name}: {{values: &{name} [{', '.join([f'*{before}'] * 9)}]}}\n"
    for before, name in itertools.pairwise("abcdefghijkl")
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_NESTED_ALIASES, "line [0-9]+: the document has more than 100,000 values"),
        ("version: 1\npaths: &x [*x]", "line 2: values are nested more than"),
        ("version: 1\npaths: *y", "line 2: the text is not YAML: found undefined alias 'y'"),
        ("version: 1\npaths:\n  $.a: {values: " + "[" * 3000 + "]" * 3000 + "}", "values are nested more than"),
        ("version: 1\npaths:\n  $.a: {required: !!bool abc}", "line 3: 'abc' is not a value of type !!bool"),
        ("version: 1\npaths:\n  $.a: {min: !!int 1.5}", "line 3: '1.5' is not a value of type !!int"),
        ("version: 1\npaths:\n  $.a: {values: [!foo 1]}", "line 3: unknown tag !foo"),
        ("version: 1\npaths:\n  $.a: {values: [!!binary a]}", "line 3: unknown tag !!binary"),
        ("version: 1\npaths: !!set {$.a}", "line 2: unknown tag !!set"),
        ("version: 1\npaths:\n  $.a: {values: [2026-13-01]}", "line 3: '2026-13-01' is not valid"),
        ("version: 1\npaths:\n  $.a: {min: " + "9" * 5000 + "}", "line 3: '9+' is not valid"),
        ("version: 1\npaths:\n  $.a: {min: 1e999999999}", "line 3: min is .*write a finite number in the range"),
        ("version: 1\npaths:\n  [1]: {}", "line 3: a key is not a string"),
        ("version: 1\npaths:\n  $.a: {<<: {min: 1}}", "line 3: YAML 1.2 has no merge key"),
        ("version: 1\npaths: {}\n---\nversion: 1", "line 3: the text is not YAML: expected a single document"),
    ],
)
def test_yaml_of_every_kind_ends_in_a_contract_error(text: str, message: str) -> None:
    for read in (pv.Contract.from_yaml, pv.Contract.from_odcs):
        with pytest.raises(pv.VariantError) as error:
            read(text)
        assert error.value.reason == "bad-contract"
    with pytest.raises(pv.VariantError, match=message):
        pv.Contract.from_yaml(text)


def test_yaml_is_read_by_the_core_schema_of_version_1_2() -> None:
    text = "[010, 0o17, 0x1F, +1, 1:30, no, yes, on, Off, 1_000, true, .5, 1e3, 2026-01-31, '010', !!str 5, 0b1]"
    contract = pv.Contract.from_yaml(f"version: 1\npaths:\n  $.a: {{values: {text}}}")
    assert contract.rules("$.a").values == (
        10, 15, 31, 1, "1:30", "no", "yes", "on", "Off", "1_000", True, Decimal("0.5"), 1000, dt.date(2026, 1, 31),
        "010", "5", "0b1",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", ["no", "010", "0o17", "1:30", "1e3", "~", "null", "2026-01-31", "<<", "a: b", "", "=", ".inf"]
)
def test_strings_that_look_like_other_values_are_written_as_strings(text: str) -> None:
    contract = pv.Contract({"$.a": {"values": [text]}}, name=text)
    for copy in (pv.Contract.from_yaml(contract.to_yaml()), pv.Contract.from_odcs(contract.to_odcs())):
        assert copy.rules("$.a").values == (text,)
        assert copy.name == text or not text


def test_an_anchor_in_a_contract_stands_for_its_value() -> None:
    contract = pv.Contract.from_yaml("version: 1\npaths:\n  $.a: &text {type: string, max_length: 5}\n  $.b: *text")
    assert contract.rules("$.a") == contract.rules("$.b") != contract.rules("$.c")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 3000 + "]" * 3000, '{"x-variant": 5}', '{"type": 5}', '{"required": [[1]]}', '{"format": [1]}',
        '{"x-variant": {"values": 5}}', '{"title": 5}', '{"description": []}', '{"maximum": 1e999999999}',
        '{"enum": [1e400]}',
    ],
)  # fmt: skip
def test_a_json_schema_of_every_kind_ends_in_a_contract_error(text: str) -> None:
    with pytest.raises(pv.VariantError) as error:
        pv.Contract.from_json_schema(text)
    assert error.value.reason == "bad-contract"


@pytest.mark.parametrize("rules", [{"values": 5}, {"values": {"a": 1}}, {"description": 5}, {"type": 5}])
def test_rules_of_another_form_are_refused(rules: dict[str, object]) -> None:
    with pytest.raises(pv.VariantError) as error:
        pv.Contract({"$.a": rules})
    assert error.value.reason == "bad-contract"


_KEYS = ["type", "nullable", "required", "presence", "min", "max", "values", "pattern", "format", "min_length", "nope"]
_VALUES = [
    "[a]",
    "{a: 1}",
    "[[a]]",
    "{[a]: b}",
    "5",
    "~",
    "true",
    "2026-01-01",
    "[]",
    "*x",
    "!!binary aGk=",
    ".nan",
    "a",
]


@pytest.mark.parametrize("key", _KEYS)
def test_values_of_any_kind_are_read_or_refused(tmp_path: Path, key: str) -> None:
    data = pv.open(pv.parse_json(['{"a": "x"}']))
    for value in _VALUES:
        (tmp_path / "c.yaml").write_text(f"version: 1\npaths:\n  $.a:\n    {key}: {value}\n")
        with suppress(pv.VariantError):
            data.check(str(tmp_path / "c.yaml"))
