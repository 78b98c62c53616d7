"""JSON → Variant: the number rules, strings, options, and errors with the offset of the fault."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import variant_strategies as testing
from parquet_variant import Variant
from parquet_variant.encoding.json_reader import JsonOptions, parse_json
from parquet_variant.encoding.validate import find_faults
from parquet_variant.errors import JsonError, VariantError

# Text, type, Python object. The types are what Spark 4.3 gives (tests/parity/test_json_spark.py).
NUMBERS: list[tuple[str, str, Any]] = [
    ("0", "int8", 0),
    ("-0", "int8", 0),
    ("127", "int8", 127),
    ("128", "int16", 128),
    ("-32769", "int32", -32769),
    ("2147483648", "int64", 2**31),
    ("9223372036854775807", "int64", 2**63 - 1),
    ("9223372036854775808", "decimal16", Decimal(2**63)),
    ("-9223372036854775808", "int64", -(2**63)),
    ("-9223372036854775809", "decimal16", Decimal(-(2**63) - 1)),
    ("9" * 38, "decimal16", Decimal("9" * 38)),
    ("1" + "0" * 38, "double", 1e38),
    ("9" * 400, "double", math.inf),
    ("1.50", "decimal4", Decimal("1.50")),
    ("1.0", "decimal4", Decimal("1.0")),
    ("-0.00", "decimal4", Decimal("0.00")),
    ("123456789.1", "decimal8", Decimal("123456789.1")),
    ("0.0000000001", "decimal8", Decimal("1E-10")),
    ("0.0000000000000000001", "decimal16", Decimal("1E-19")),
    ("0." + "0" * 37 + "1", "decimal16", Decimal("1E-38")),
    ("0." + "0" * 38 + "1", "double", 1e-39),
    ("1." + "0" * 38, "double", 1.0),
    ("0." + "1" * 38, "decimal16", Decimal("0." + "1" * 38)),
    ("1." + "1" * 38, "double", float("1." + "1" * 38)),
    ("9" * 37 + ".5", "decimal16", Decimal("9" * 37 + ".5")),
    ("9" * 38 + ".5", "double", float("9" * 38 + ".5")),
    ("1e0", "double", 1.0),
    ("1E+2", "double", 100.0),
    ("-1.5e-7", "double", -1.5e-7),
    ("1e400", "double", math.inf),
    ("-1e400", "double", -math.inf),
    ("1e-400", "double", 0.0),
    ("5e-324", "double", 5e-324),
    ("2.4703282292062328e-324", "double", 5e-324),
    ("2.4703282292062327e-324", "double", 0.0),
    ("9007199254740993e0", "double", 9007199254740992.0),
    ("1.7976931348623158e308", "double", 1.7976931348623157e308),
]


@pytest.mark.parametrize(("text", "kind", "python"), NUMBERS)
def test_numbers(text: str, kind: str, python: Any) -> None:
    variant = parse_json(text)
    assert variant.type == kind
    actual = variant.to_python()
    assert actual == python
    if isinstance(python, Decimal):
        assert actual.as_tuple() == python.as_tuple()


@pytest.mark.parametrize(("text", "kind", "python"), NUMBERS)
def test_floats_as_double(text: str, kind: str, python: Any) -> None:
    variant = parse_json(text, JsonOptions(floats="double"))
    if "." in text:
        assert variant.type == "double" and variant.to_python() == float(text)
        assert math.copysign(1, variant.to_python()) == math.copysign(1, float(text))
    else:
        assert variant == parse_json(text)


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,320})(\.[0-9]{1,330})?[eE][+-]?[0-9]{1,3}", fullmatch=True))
def test_doubles_are_those_of_python(text: str) -> None:
    assert parse_json(text).to_python() == float(text)


def _number(text: str) -> Decimal | float:
    """A number as the rules have it: exact without exponent up to 38 digits and scale 38, else the nearest double."""
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = len((whole + fraction).lstrip("0"))
    return Decimal(text) if text.lower() == text.upper() and digits <= 38 and len(fraction) <= 38 else float(text)


def _same_numbers(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same_numbers(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same_numbers, left, right))
    if isinstance(left, Decimal):
        return left == right
    # A double that overflowed is a string in JSON, as in Spark.
    return float(left) == float(right) if isinstance(left, float) else left == right


@given(testing.json_texts())
def test_json_in_and_out_with_exact_numbers_or_the_nearest_doubles(text: str) -> None:
    variant = parse_json(text)
    assert find_faults(variant.metadata, variant.value) == []
    assert parse_json(text.encode()).to_bytes() == variant.to_bytes()
    before = json.loads(text, parse_float=_number, parse_int=_number)
    for _ in range(2):  # in and out, twice
        assert _same_numbers(before, json.loads(variant.to_json(), parse_float=Decimal, parse_int=Decimal))
        variant = parse_json(variant.to_json())


@pytest.mark.parametrize(
    ("text", "reason", "offset", "expected"),
    [
        ("", "unexpected-end", 0, "a value"),
        ("  ", "unexpected-end", 2, "a value"),
        ("[1,]", "unexpected-byte", 3, "a value"),
        ("[1 2]", "unexpected-byte", 3, "',' or ']'"),
        ('{"a" 1}', "unexpected-byte", 5, "':'"),
        ('{"a":1,}', "unexpected-byte", 7, "a key"),
        ('{"a":1', "unexpected-end", 6, "',' or '}'"),
        ("{1:2}", "unexpected-byte", 1, "a key or '}'"),
        ("]", "unexpected-byte", 0, "a value"),
        ("1 2", "trailing-data", 2, "the end"),
        ("null x", "trailing-data", 5, "the end"),
        ("nul", "unexpected-byte", 0, "a value"),
        ("NaN", "unexpected-byte", 0, "a value"),
        ("-Infinity", "bad-number", 1, "a digit"),
        ("[Infinity]", "unexpected-byte", 1, "a value"),
        ("01", "bad-number", 1, "leading zero"),
        ("-", "unexpected-end", 1, "a digit"),
        ("1.", "unexpected-end", 2, "a digit"),
        ("1.e5", "bad-number", 2, "a digit"),
        ("1e", "unexpected-end", 2, "a digit"),
        ("1e+x", "bad-number", 3, "a digit"),
        ('"a', "unexpected-end", 2, "closing"),
        ('"a\tb"', "control-character", 2, r"\\u0009"),
        ('"\x00"', "control-character", 1, r"\\u0000"),
        ('"a\n', "control-character", 2, "the line ends inside a string: it is cut off"),
        (r'"\a"', "bad-escape", 1, "one of"),
        (r'"\u12g4"', "bad-escape", 1, "four hexadecimal"),
        (r'"\u12', "unexpected-end", 5, "four hexadecimal"),
        ('"\\', "unexpected-end", 2, "one of"),
        (r'"\ud800"', "lone-surrogate", 1, "pair"),
        (r'"x\udc00"', "lone-surrogate", 2, "pair"),
        (r'"\ud800\u0041"', "lone-surrogate", 1, "pair"),
        (r'"\ud800\ud800\udc00"', "lone-surrogate", 1, "pair"),
        ('"é', "unexpected-end", 3, "closing"),
        ("\ufeff1", "byte-order-mark", 0, "remove"),
        ("\u00a01", "unexpected-byte", 0, "a value"),
        ("[\x0b1]", "unexpected-byte", 1, "a value"),
        (b'"a\xff"', "bad-utf8", 2, "UTF-8"),
        (b'"\xed\xa0\x80"', "bad-utf8", 1, "UTF-8"),
        (b'"\xc0\xaf"', "bad-utf8", 1, "UTF-8"),
        (b'"\xe2\x82', "bad-utf8", 1, "UTF-8"),
        (b'{"\xff":1}', "bad-utf8", 2, "UTF-8"),
        (b"\xff\xfe1\x00", "unexpected-byte", 0, "a value"),
        ("// c\n1", "unexpected-byte", 0, "a value"),
    ],
)
def test_errors(text: str | bytes, reason: str, offset: int, expected: str) -> None:
    with pytest.raises(JsonError, match=expected) as caught:
        parse_json(text)
    assert (caught.value.reason, caught.value.offset) == (reason, offset)
    assert "\n" not in str(caught.value)


@given(testing.json_texts(), st.integers(0, 1 << 16), st.sampled_from(["cut", "byte", "twice"]), st.integers(0, 255))
def test_damaged_texts_are_read_or_refused_as_python_does(text: str, where: int, what: str, byte: int) -> None:
    data = text.encode()
    at = where % (len(data) + 1)
    damaged = data[:at] if what == "cut" else data[:at] + bytes([byte]) + data[at + 1 :] if what == "byte" else data * 2
    try:
        variant = parse_json(damaged, JsonOptions(on_lone_surrogate="replace", max_depth=10_000))
    except JsonError as err:
        assert err.offset is not None and 0 <= err.offset <= len(damaged)
        with pytest.raises(ValueError):
            json.loads(damaged.decode("utf-8"), parse_constant=_refuse)
    else:
        wanted = json.loads(damaged.decode(), parse_constant=_refuse)
        assert type(variant.to_python()) is type(wanted) or isinstance(wanted, (int, float))


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def test_duplicate_keys() -> None:
    text = r'{"a":1,"b":[{"x":1}],"\u0061":2,"b":3}'
    assert parse_json(text).to_json() == '{"a":2,"b":3}'
    assert parse_json(text).to_bytes() == parse_json('{"b":3,"a":2}').to_bytes()  # no "x" in the dictionary
    with pytest.raises(JsonError, match="key 'a'") as caught:
        parse_json(text, JsonOptions(on_duplicate_key="error"))
    assert (caught.value.reason, caught.value.offset) == ("duplicate-key", 21)
    assert parse_json('[{"a":1},{"a":{"a":2}}]', JsonOptions(on_duplicate_key="error"))


def test_lone_surrogates_replaced() -> None:
    text = r'{"\ud800":"\udc00\ud83d\ude00\ud800\u0041\ud800"}'
    options = JsonOptions(on_lone_surrogate="replace")
    assert parse_json(text, options).to_python() == {"\ufffd": "\ufffd\U0001f600\ufffdA\ufffd"}
    raw = '"a\ud800\udc00"'  # halves that stand in the text itself
    assert parse_json(raw, options).to_python() == "a\ufffd\ufffd"
    with pytest.raises(JsonError) as caught:
        parse_json(raw)
    assert (caught.value.reason, caught.value.offset) == ("lone-surrogate", 2)


def test_depth_and_size() -> None:
    assert parse_json("[" * 1000 + "]" * 1000).validate()
    with pytest.raises(JsonError, match="max_depth=1000") as caught:
        parse_json("[" * 1001 + "]" * 1001)
    assert (caught.value.reason, caught.value.offset) == ("depth", 1000)
    assert parse_json("[1]", JsonOptions(max_depth=1)) and parse_json("1", JsonOptions(max_depth=0))
    with pytest.raises(JsonError):
        parse_json("[[1]]", JsonOptions(max_depth=1))
    assert parse_json("[1]", JsonOptions(max_size=3))
    with pytest.raises(JsonError, match="max_size=2") as caught:
        parse_json("[1]", JsonOptions(max_size=2))
    assert caught.value.reason == "too-large"


def test_bad_options_are_named() -> None:
    for option in ({"floats": "float"}, {"on_duplicate_key": "first"}, {"on_lone_surrogate": "keep"}):
        with pytest.raises(VariantError, match=f"{next(iter(option))} is .*: use "):
            JsonOptions(**option)  # type: ignore[arg-type]


def test_equal_texts_have_equal_bytes() -> None:
    one = parse_json('{"z": [1, {"y": "\\u00e9"}], "é": 1e2, "a": null}')
    two = parse_json('{"a":null,"\\u00e9":100.0e0,"z":[1,{"y":"é"}]}')
    assert one.to_bytes() == two.to_bytes()
    assert list(one) == ["a", "z", "é"]
    assert Variant.from_python(one.to_python()).to_bytes() == one.to_bytes()


def test_a_long_text_is_read_in_linear_time() -> None:
    text = "[" + ",".join(f'{{"key{index % 50}":"{"x" * 50}\\n{index}"}}' for index in range(20_000)) + "]"
    assert len(parse_json(text)) == 20_000
    assert parse_json('"' + "\\u00e9" * 200_000 + '"').to_python() == "é" * 200_000
    assert parse_json("1" + "0" * 100_000).to_python() == math.inf
