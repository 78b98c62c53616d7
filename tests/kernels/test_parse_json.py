"""The parser kernel means what the reference reader means: same bytes, same refusals."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.encoding.json_reader import JsonOptions
from parquet_variant.encoding.json_reader import parse_json as parse_one
from parquet_variant.errors import JsonError
from variant_strategies import json_texts

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "floats": st.sampled_from(["decimal", "double"]),
        "on_duplicate_key": st.sampled_from(["last", "error"]),
        "on_lone_surrogate": st.sampled_from(["error", "replace"]),
        "max_depth": st.integers(0, 6),
        "max_size": st.integers(1, 40),
    },
)


@given(
    st.lists(json_texts() | st.just("[tru") | st.none(), max_size=6),
    st.data(),
    OPTIONS,
    st.sampled_from(["row", "batch"]),
    st.sampled_from(["raise", "null"]),
)
def test_texts_in_one_call_give_the_arrays_of_several_calls(
    texts: list[str | None], data: st.DataObject, options: dict[str, Any], dictionary: str, errors: str
) -> None:
    start = data.draw(st.integers(0, len(texts)))
    column = pa.array(texts, data.draw(st.sampled_from([pa.string(), pa.large_binary(), pa.string_view()])))[start:]
    options |= {"dictionary": dictionary, "errors": errors}
    results = []
    # Numbers of threads are for long texts, which take several calls.
    for threads in (None, 1):
        try:
            results.append(pv.parse_json(column, threads=threads, **options).storage)
        except JsonError as error:
            results.append((error.reason, error.row, error.offset, error.message))
    assert results[0] == results[1]
    if isinstance(results[0], pa.StructArray):
        results[0].validate(full=True)
        assert results[0].type == results[1].type
        assert results[0].field("metadata").dictionary.equals(results[1].field("metadata").dictionary)


def outcome(parse: Any, text: bytes, options: dict[str, Any]) -> Any:
    try:
        return parse(text, options)
    except JsonError as error:
        return error.reason, error.offset, error.message


def by_kernel(text: bytes, options: dict[str, Any]) -> bytes:
    value = pv.parse_json(pa.array([text], pa.binary()), **options)[0]
    assert value is not None
    return value.to_bytes()


def by_reference(text: bytes, options: dict[str, Any]) -> bytes:
    return parse_one(text, JsonOptions(**options)).to_bytes()


def assert_same(text: bytes, options: dict[str, Any]) -> None:
    assert outcome(by_kernel, text, options) == outcome(by_reference, text, options)


@given(json_texts(), OPTIONS)
def test_generated_texts(text: str, options: dict[str, Any]) -> None:
    assert_same(text.encode(), options)


@given(json_texts(), st.data())
def test_damaged_texts(text: str, data: st.DataObject) -> None:
    damaged = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged)))
        if data.draw(st.booleans()) and at < len(damaged):
            del damaged[at]
        else:
            damaged.insert(at, data.draw(st.sampled_from(b'{}[]",:\\u019eE+-. \n\x00\x1f\x7f\x80\xc3\xe2\xed\xf0\xff')))
    assert_same(bytes(damaged), {})


NUMBERS = [
    "0", "-0", "127", "128", "-128", "-129", "32767", "32768", "2147483647", "2147483648", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "9" * 38, "-" + "9" * 38, "9" * 39,
    "1.5", "1.50", "-0.0", "0.00", "123456.789", "0.1234567890123456789012345678901234567", "0." + "0" * 37 + "1",
    "0." + "0" * 38 + "1", "1" + "0" * 37 + ".5", "999999999.9", "1e0", "1E+5", "-1.5e-3", "1e308", "1e400", "1e-400",
    "4.9e-324", "2.2250738585072011e-308", "9007199254740993e0", "1.7976931348623158e308", "0e1", "1e00000000000000005",
    "123456789012345678901234567890.12345678e10", "9" * 400, "0." + "3" * 400,
]  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS, ids=lambda text: text[:24])
def test_numbers(text: str) -> None:
    for options in ({}, {"floats": "double"}):
        assert_same(text.encode(), options)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_with_exponent_is_the_float_of_python(number: float) -> None:
    text = f"{number:.17e}"
    value = pv.parse_json([text])[0]
    assert value is not None
    assert value.to_python() == float(text)


@given(st.lists(st.none() | json_texts(max_leaves=6), max_size=8))
def test_rows_do_not_depend_on_their_neighbours(texts: list[str | None]) -> None:
    together = pv.parse_json(pa.array(texts, pa.string()))
    for text, value in zip(texts, together, strict=True):
        assert (value is None) == (text is None)
        if text is not None and value is not None:
            assert value.to_bytes() == parse_one(text).to_bytes()


@given(st.lists(json_texts(max_leaves=6), max_size=6))
def test_one_dictionary_for_a_batch(texts: list[str]) -> None:
    array = pv.parse_json(pa.array(texts, pa.string()), dictionary="batch")
    assert len(array.storage.field("metadata").dictionary) == 1
    assert list(array) == [parse_one(text) for text in texts]


def test_rows_with_equal_keys_share_their_metadata() -> None:
    array = pv.parse_json(['{"a": 1, "b": {"c": 2}}', '{"b": {"c": [1]}, "a": null}', '{"a": 1}'])
    assert array.storage.field("metadata").indices.to_pylist() == [0, 0, 1]


def test_any_form_of_text_is_read() -> None:
    texts = ['{"a": 1}', None, "[2]", '"é"']
    expected = pv.parse_json(texts)
    plain = pa.array(texts)
    for other in (
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        plain.cast(pa.binary()),
        plain.dictionary_encode(),
        pa.chunked_array([plain[:2], plain[2:]]),
        pa.concat_arrays([pa.array(["x"]), plain]).slice(1),
    ):
        assert pv.parse_json(other) == expected


def test_an_error_names_the_row() -> None:
    with pytest.raises(JsonError, match=r"unexpected '}': expected a value \(row 2, byte offset 5\)"):
        pv.parse_json(["1", None, '{"a":}'])


def test_parse_json_gives_null_for_bad_rows_only() -> None:
    texts = ['{"a": 1, "a": 2}', '{"a": {"a": 1, "b": [', '{"a": {"a": 1}, "b": 2}', "nul", '{"a": {"a": 3}}']
    assert pv.parse_json(texts, errors="null").to_pylist() == [
        {"a": 2},
        None,
        {"a": {"a": 1}, "b": 2},
        None,
        {"a": {"a": 3}},
    ]


@pytest.mark.parametrize(
    "bad",
    ['{"a": 1, "b" 2}', '{"a": 1, "b": 2, "c": 3, "a": 4}', '{"a": 1, "b": 2 "c"', '{"a": 1, 2}', '{"a": [nul'],
)
@pytest.mark.parametrize("options", [{}, {"on_duplicate_key": "error"}])
def test_a_bad_row_leaves_nothing_behind(bad: str, options: dict[str, Any]) -> None:
    texts = [bad, '{"a": 1}', bad, '{"c": {"a": 2}, "b": 1, "a": 1}']
    values = pv.parse_json(texts, **options, errors="null")
    assert list(values)[1::2] == [parse_one(text) for text in texts[1::2]]


@given(st.lists(json_texts(max_leaves=6), min_size=2, max_size=6), OPTIONS, st.data())
def test_rows_do_not_depend_on_bad_neighbours(texts: list[str], options: dict[str, Any], data: st.DataObject) -> None:
    for row, text in enumerate(texts):
        if data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(text)))
            texts[row] = text[:at] + data.draw(st.sampled_from(["", *'{}[]",: 1'])) + text[at + 1 :]
    for text, value in zip(texts, pv.parse_json(texts, **options, errors="null"), strict=True):
        alone = outcome(by_reference, text.encode(), options)
        assert (None if value is None else value.to_bytes()) == (alone if isinstance(alone, bytes) else None)


SPACES = st.sampled_from(["", "", "", " ", "\n\t", " " * 40])
# Keys, of which some are longer than the text that the parser predicts, and spellings of one key.
KEYS = st.sampled_from(["a", "b", "\\u0061", "é", "name", "k" * 27, "k" * 28, "k" * 29, "long" * 20])


@st.composite
def similar_objects(draw: st.DrawFn, depth: int = 2) -> str:
    """Objects whose fields often follow each other in the same order, with the same white space or other."""
    values = st.sampled_from(["1", "-2.50", '"x"', '"' + "y" * 31 + '"', '"' + "z" * 32 + '"', "[1, {}]", "null"])
    if depth:
        values |= similar_objects(depth - 1)
    keys = draw(st.lists(KEYS, min_size=1, max_size=5))
    fields = [f'{draw(SPACES)}"{key}"{draw(SPACES)}:{draw(SPACES)}{draw(values)}{draw(SPACES)}' for key in sorted(keys)]
    return "{" + ",".join(fields) + "}"


@given(st.lists(similar_objects(), min_size=1, max_size=3), st.sampled_from(["last", "error"]), st.data())
def test_fields_that_follow_as_before(objects: list[str], on_duplicate_key: Any, data: st.DataObject) -> None:
    texts = []
    for text in data.draw(st.lists(st.sampled_from(objects), min_size=4, max_size=12)):
        at = data.draw(st.integers(0, len(text)))
        # Rows are next to each other: a row that is cut off goes on in the next one, which must not be read.
        damage = [[text], [text[:at], text[at:]], [text[:at] + text[at + 1 :]], [text[:at] + '"' + text[at:]]]
        texts += data.draw(st.sampled_from(damage))
    options = {"on_duplicate_key": on_duplicate_key}
    values = pv.parse_json(pa.array([*texts, " " * 32]), **options, errors="null")
    for text, value in zip(texts, values, strict=False):
        alone = outcome(by_reference, text.encode(), options)
        assert (None if value is None else value.to_bytes()) == (alone if isinstance(alone, bytes) else None)


@pytest.mark.parametrize(
    "text", ['{"a":-2.50,"name":{"b":17,"c":[]},"d":"x"}', '{ "a" : 1 , "name": -3,\n"b" :{"c" : "x"}}']
)
def test_a_damaged_field_is_not_the_usual_one(text: str) -> None:
    changes = [("", 1), ('"', 0), (" ", 0), *((byte, 1) for byte in '"7-:, x\\')]
    damaged = [text[:at] + byte + text[at + removed :] for at in range(len(text)) for byte, removed in changes]
    rows = [row for bad in damaged for row in (text, bad)]
    for row, value in zip(rows, pv.parse_json(rows, errors="null"), strict=True):
        alone = outcome(by_reference, row.encode(), {})
        assert (None if value is None else value.to_bytes()) == (alone if isinstance(alone, bytes) else None), row


def test_duplicates_at_any_depth_keep_the_last_value() -> None:
    text = '{"a": {"x": 1, "y": {"z": 1}, "x": [{"k": 1, "k": 2}]}, "b": 1, "a": {"y": 1, "x": 2, "y": 3}, "c": {}}'
    assert pv.parse_json([text])[0] == parse_one(text)
    assert by_kernel(text.encode(), {}) == by_reference(text.encode(), {})


@pytest.mark.machine_code
def test_many_keys_and_wide_ids() -> None:
    wide = "{" + ",".join(f'"k{i}": {i}' for i in range(70_000)) + "}"
    value = pv.parse_json(pa.array([wide, '{"k69999": 1}']))
    assert value[0] is not None
    assert value[0].to_bytes() == parse_one(wide).to_bytes()
    assert value[1] is not None
    assert value[1].to_python() == {"k69999": 1}


def test_depth_up_to_the_limit() -> None:
    assert_same(b"[" * 1000 + b"]" * 1000, {})
    assert_same(b"[" * 1001 + b"]" * 1001, {})
    assert_same(b'{"a":' * 100_000, {})


@pytest.mark.parametrize("texts", [[], [None], [None, None]])
def test_no_values_at_all(texts: list[None]) -> None:
    array = pv.parse_json(pa.array(texts, pa.string()))
    assert array.to_pylist() == texts
    assert pv.to_json(array).to_pylist() == texts


def test_other_values_are_refused() -> None:
    with pytest.raises(pv.VariantError, match="not int64"):
        pv.parse_json(pa.array([1]))
    with pytest.raises(pv.VariantError, match="floats is 'exact': use decimal or double"):
        pv.parse_json(["1"], floats="exact")


def test_bytes_among_python_objects_are_judged_by_the_parser() -> None:
    with pytest.raises(JsonError) as caught:
        pv.parse_json([b"[1]", b'["\xff"]'])
    assert (caught.value.row, caught.value.offset) == (1, 2)
    assert pv.parse_json(iter(["1", b"\xff", "\ud800", b"2"]), errors="null").to_pylist() == [1, None, None, 2]
    assert pv.parse_json(bytearray(b"[1]")) == pv.parse_json(memoryview(b"[1]")) == pv.Variant.from_python([1])


def test_dictionaries_of_views_and_dictionaries_with_a_null_are_read() -> None:
    indices = pa.array([1, None, 0, 2], pa.int32())
    for values in (pa.array(["1", "[2]", None], pa.string_view()), pa.array([b"1", b"[2]", None], pa.binary_view())):
        assert pv.parse_json(pa.DictionaryArray.from_arrays(indices, values)).to_pylist() == [[2], None, 1, None]


@pytest.mark.parametrize("depth", [1, 500, 1000, pytest.param(20_000, marks=pytest.mark.machine_code)])
@pytest.mark.parametrize("opener", ["[", '{"a":', '[0,{"b":['])
def test_containers_that_are_never_closed_stay_in_their_memory(opener: str, depth: int) -> None:
    texts = [opener * depth, "[1]"]
    for limit in (1000, 100_000):
        found = pv.parse_json(texts, max_depth=limit, errors="null")
        assert found[0] is None and found[1] is not None and found[1].to_json() == "[1]"
    with pytest.raises(pv.JsonError) as caught:
        pv.parse_json(texts, max_depth=100_000)
    assert (caught.value.reason, caught.value.offset) == ("unexpected-end", len(texts[0]))


@pytest.mark.machine_code
def test_a_deep_text_takes_time_in_proportion_to_its_length() -> None:
    depth = 300_000
    array = pv.parse_json(["[" * depth + "]" * depth], max_depth=1_000_000)
    assert array.storage.field("value").nbytes < 12 * depth
    with pytest.raises(pv.JsonError, match="expected a value"):
        pv.parse_json(["[" * depth], max_depth=1_000_000)


@pytest.mark.parametrize("name", ["max_depth", "max_size"])
@pytest.mark.parametrize("value", [-1, 2**58, 2**62 + 1, 2**70, 1.5, True, "9", None])
def test_options_have_bounds(name: str, value: Any) -> None:
    if (name, value) == ("max_size", 2**58):
        return
    for text in ("[1]", ["[1]"]):
        with pytest.raises(pv.VariantError) as caught:
            pv.parse_json(text, **{name: value})
        assert caught.value.reason == "bad-option" and name in str(caught.value)
