"""`Variant`: navigation, equality by meaning, and its manners as a Python object."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import parquet_variant as pv
import variant_strategies as testing
from parquet_variant import Variant
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.errors import MalformedVariantError, PathError
from parquet_variant.types import VariantType

_DOC = Variant.from_python({"a": [1, {"b": "x", "c.d": None}], "e": {}, "": 5, "é": [[]]})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", _DOC.to_python()), ("$.a[0]", 1), ("$.a[1].b", "x"), ("$.a[1]['c.d']", None), ("$['']", 5),
        ("$.é[0]", []),
    ],
)  # fmt: skip
def test_get_follows_a_path(path: str, value: Any) -> None:
    found = _DOC.get(path)
    assert found is not None and found.to_python() == value
    assert _DOC.get(pv.VariantPath.parse(path)) == found
    assert Variant(found.metadata, found.value) == found  # its bytes stand alone


@pytest.mark.parametrize(
    "path", ["$.b", "$.a.b", "$.a[2]", "$[0]", "$.a[0].b", "$.a[0][0]", "$.e.x", "$.A", "$['\\u0000']"]
)
def test_get_gives_the_default_where_nothing_is(path: str) -> None:
    assert _DOC.get(path) is None
    assert _DOC.get(path, _DOC) is _DOC


def test_get_refuses_wildcards() -> None:
    with pytest.raises(PathError, match="wildcard"):
        _DOC.get("$.a[*]")


def test_subscripts() -> None:
    assert _DOC["a"][-1]["b"].to_python() == "x"
    assert _DOC["a"][0] == _DOC["a"][-2]
    with pytest.raises(KeyError, match="zz"):
        _DOC["zz"]
    with pytest.raises(KeyError):
        _DOC["\ud800"]
    for index in (2, -3, 10**30):
        with pytest.raises(IndexError, match="2 elements"):
            _DOC["a"][index]
    for wrong in (lambda: _DOC[0], lambda: _DOC["a"]["b"], lambda: _DOC[""]["x"], lambda: len(_DOC[""]),
                  lambda: iter(_DOC[""]), _DOC["a"].keys, lambda: 5 in _DOC[""]):  # fmt: skip
        with pytest.raises(TypeError, match="of type"):
            wrong()


def test_containers_behave_as_in_python() -> None:
    assert list(_DOC) == _DOC.keys() == ["", "a", "e", "é"]
    assert [value.type for value in _DOC.values()] == ["int8", "array", "object", "array"]
    assert dict(_DOC.items())["e"].to_python() == {}
    assert len(_DOC) == 4 and len(_DOC["a"]) == 2 and len(_DOC["e"]) == 0
    assert "a" in _DOC and "b" not in _DOC and 1 not in _DOC
    assert 1 in _DOC["a"] and Decimal("1.0") in _DOC["a"] and "1" not in _DOC["a"]
    assert [item.type for item in _DOC["a"]] == ["int8", "object"]
    assert _DOC["e"] and Variant.from_python(0)  # a value is there, whatever it is


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("0c01", "10 0100"), ("0c01", "2802 64000000000000000000000000000000"), ("0c00", "2005 00000000"),
        ("18 ffffffffffffffff", "0cff"), ("05 61", "40 01000000 61"),
        ("1c 0000000000000000", "1c 0000000000000080"), ("1c 000000000000f87f", "1c 010000000000f0ff"),
        ("38 0000c07f", "38 0000c0ff"), ("30 0100000000000000", "48 e803000000000000"),
        ("34 ffffffffffffffff", "4c 18fcffffffffffff"), ("03 00 00", "13 00000000 00"),
    ],
)  # fmt: skip
def test_equal_by_meaning(left: str, right: str) -> None:
    one, two = Variant(EMPTY_METADATA, bytes.fromhex(left)), Variant(b"\x01\x00\x00", bytes.fromhex(right))
    assert one == two and hash(one) == hash(two)
    assert len({one, two}) == 1
    assert Variant.from_python([one, {"k": one}]) == Variant.from_python([two, {"k": two}])


_DIFFERENT = [
    None, True, False, 1, 2, Decimal("1.5"), 1.0, 1.5, np.float32(1.0), "1", b"1", "", [], {}, [1], [[1]], [1, 1],
    {"a": 1}, {"a": 2}, {"b": 1}, {"a": [1]}, ["a", 1], np.datetime64(0, "ns"), np.datetime64(0, "D"),
]  # fmt: skip


def test_types_of_other_classes_differ() -> None:
    variants = [Variant.from_python(obj) for obj in _DIFFERENT]
    variants.append(Variant(EMPTY_METADATA, encode_scalar(VariantType.TIMESTAMP, 0)))
    variants.append(Variant(EMPTY_METADATA, encode_scalar(VariantType.TIME, 0)))
    variants.append(Variant(EMPTY_METADATA, encode_scalar(VariantType.UUID, b"1" * 16)))
    assert len(set(variants)) == len(variants)
    assert [left == right for left in variants for right in variants].count(True) == len(variants)
    assert Variant.from_python(1) != 1


@given(testing.variants(), testing.variants())
def test_equality_is_that_of_the_python_objects_or_finer(left: Variant, right: Variant) -> None:
    if left == right:
        assert hash(left) == hash(right)
        assert left.to_json() == right.to_json() or "0" in left.to_json()  # -0.0 equals 0.0


def test_copies_and_pickles_are_equal() -> None:
    inner = _DOC["a"][1]
    for again in (pickle.loads(pickle.dumps(inner)), copy.copy(inner), copy.deepcopy(inner)):
        assert again == inner and again.metadata == _DOC.metadata
    assert len(inner.value) < len(_DOC.value)


def test_concatenated_bytes() -> None:
    assert Variant.from_bytes(_DOC.to_bytes()) == _DOC
    assert Variant.from_bytes(memoryview(_DOC.to_bytes())).value == _DOC.value  # type: ignore[arg-type]
    for length in range(len(_DOC.metadata)):
        with pytest.raises(MalformedVariantError):
            Variant.from_bytes(_DOC.to_bytes()[:length])


def test_bytes_like_arguments() -> None:
    assert Variant(bytearray(_DOC.metadata), memoryview(_DOC.value)) == _DOC  # type: ignore[arg-type]
    for wrong in ("text", 5, None):
        with pytest.raises(TypeError):
            Variant(EMPTY_METADATA, wrong)  # type: ignore[arg-type]


def test_repr_is_short_and_never_fails() -> None:
    assert repr(Variant.from_python({"a": 1})) == '<Variant object: {"a":1}>'
    assert len(repr(Variant.from_python(["x" * 1000] * 10))) < 90
    assert "no bytes" in repr(Variant(EMPTY_METADATA, b""))
    assert repr(Variant(b"", b"\x03\x01\x00\x01\x0c")).startswith("<Variant malformed")


def test_validate_names_the_first_fault() -> None:
    with pytest.raises(MalformedVariantError, match=r"value: 2 bytes follow the value \(byte offset 1\)"):
        Variant(EMPTY_METADATA, b"\x00\x00\x00").validate()
    assert _DOC.validate() is _DOC
    with pytest.raises(MalformedVariantError, match="deeper than 1"):
        _DOC.validate(max_depth=1)
