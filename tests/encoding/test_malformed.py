"""Nothing that malformed bytes can do: our own corpus of attacks, and mutated values."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import variant_strategies as testing
from parquet_variant import Variant
from parquet_variant.encoding.validate import find_faults
from parquet_variant.errors import CastError, MalformedVariantError

CORPUS = Path(__file__).parent.parent / "data" / "malformed"
EXPECTED: dict[str, str] = json.loads((CORPUS / "expected.json").read_text())

READS: dict[str, Callable[[Variant], Any]] = {
    "type": lambda v: v.type,
    "value": lambda v: v.value,
    "to_python": lambda v: v.to_python(),
    "to_json": lambda v: v.to_json(),
    "hash": hash,
    "equals": lambda v: v == Variant.from_python(0),
    "from_python": lambda v: Variant.from_python([v]),
    "from_bytes": lambda v: Variant.from_bytes(v.to_bytes()),
    "get": lambda v: v.get("$.a"),
    "get element": lambda v: v.get("$[1]"),
    "iterate": lambda v: [list(item) for item in v],
    "keys": lambda v: v.keys(),
    "items": lambda v: v.items(),
    "contains": lambda v: "a" in v,
}


def _attack(name: str) -> Variant:
    return Variant((CORPUS / f"{name}.metadata").read_bytes(), (CORPUS / f"{name}.value").read_bytes())


def test_the_corpus_is_whole() -> None:
    assert len(EXPECTED) > 70
    assert {file.stem for file in CORPUS.glob("*.value")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_attack_is_named_with_an_offset(name: str) -> None:
    attack = _attack(name)
    faults = find_faults(attack.metadata, attack.value)
    assert faults[0].reason == EXPECTED[name]
    for fault in faults:
        assert 0 <= fault.offset <= len(attack.metadata if fault.part == "metadata" else attack.value)
        assert "\n" not in fault.message
    with pytest.raises(MalformedVariantError) as caught:
        attack.validate()
    assert (caught.value.reason, caught.value.offset) == (faults[0].reason, faults[0].offset)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_access_ends_in_a_value_or_a_clear_error(name: str) -> None:
    attack = _attack(name)
    for what, read in READS.items():
        try:
            read(attack)
        except (MalformedVariantError, CastError) as err:
            assert "\n" not in str(err), what
        except TypeError as err:
            assert "Variant" in str(err), what
    assert repr(attack)


def _readable(variant: Variant) -> bool:
    """Whether the whole value can be read; any other error than ours fails the test."""
    repr(variant)
    try:
        variant.to_json()
        hash(variant)
        assert variant == Variant(variant.metadata, variant.value)
    except MalformedVariantError:
        return False
    with contextlib.suppress(CastError):
        variant.to_python()
        Variant.from_python([variant])
    return True


@given(testing.mutated_variants())
def test_mutated_values_are_read_or_refused(variant: Variant) -> None:
    faults = find_faults(variant.metadata, variant.value)
    assert _readable(variant) or faults, "a value without a fault can be read"
    if not faults:
        assert Variant.from_python([variant])[0] == variant
    for read in READS.values():
        with contextlib.suppress(MalformedVariantError, CastError, TypeError):
            read(variant)


@given(st.binary(max_size=40), st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(metadata: bytes, value: bytes) -> None:
    variant = Variant(metadata, value)
    assert _readable(variant) or find_faults(metadata, value)


@given(testing.variants())
def test_every_cut_of_a_valid_value_is_a_fault(variant: Variant) -> None:
    for length in range(0, len(variant.value), 1 + len(variant.value) // 20):
        assert find_faults(variant.metadata, variant.value[:length])
    for length in range(0, len(variant.metadata), 1 + len(variant.metadata) // 20):
        assert find_faults(variant.metadata[:length], variant.value)


def test_all_faults_are_reported_not_only_the_first() -> None:
    # An array of an unknown type, a string that is not UTF-8 and a decimal of scale 39.
    value = bytes.fromhex("0303 00010309fc05ff2027000000 00")
    faults = find_faults(b"\x11\x00\x00\xff", value)
    assert [(fault.part, fault.offset, fault.reason) for fault in faults] == [
        ("metadata", 3, "trailing-bytes"),
        ("value", 6, "unknown-type"),
        ("value", 8, "bad-utf8"),
        ("value", 10, "bad-decimal"),
    ]
