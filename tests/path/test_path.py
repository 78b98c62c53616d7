"""Paths: what is read, what is written, and where a bad one is wrong."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant import VariantPath
from parquet_variant.errors import PathError
from parquet_variant.types.path import WILDCARD, split_type

_SEGMENTS = st.lists(st.text(max_size=6) | st.integers(0, 2**53 - 1) | st.just(WILDCARD), max_size=5)


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$.a.b[0]['x.y'][\"q\"][*]", ("a", "b", 0, "x.y", "q", WILDCARD)),
        ("$[0][1]", (0, 1)),
        ("$.größe.😀", ("größe", "😀")),
        ("$.two words.with-dash", ("two words", "with-dash")),
        ("$['']", ("",)),
        ("$[ 'a' ][ 3 ][ * ]", ("a", 3, WILDCARD)),
        ("$['*']", ("*",)),
        (r"$['it\'s']", ("it's",)),
        (r"""$["say \"hi\""]""", ('say "hi"',)),
        ("$['\"']", ('"',)),
        (r"$['\u0041\n\t\b\f\r\/\\']", ("A\n\t\b\f\r/\\",)),
        (r"$['\uD83D\ude00']", ("😀",)),
        (r"$['\u0000']", ("\0",)),
        ("$[007]", (7,)),
        ("$.a$", ("a$",)),
        ("$.a'b", ("a'b",)),
    ],
)
def test_reads(text: str, segments: tuple[object, ...]) -> None:
    assert VariantPath.parse(text).segments == segments


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("a", 0),
        ("$a", 1),
        (" $", 0),
        ("$.", 2),
        ("$..a", 2),
        ("$.a.", 4),
        ("$.[0]", 2),
        ("$.*", 2),
        ("$[", 2),
        ("$[]", 2),
        ("$[a]", 2),
        ("$[0", 3),
        ("$['a]", 2),
        ("$['a'", 5),
        ("$['a'x]", 5),
        ("$[-1]", 2),
        ("$[9007199254740992]", 2),
        ("$[" + "9" * 5000 + "]", 2),
        (r"$['\x']", 3),
        (r'$["\'"]', 3),
        (r"$['\u12']", 3),
        (r"$['\ud800']", 3),
        (r"$['\udc00']", 3),
        (r"$['\ud800\u0041']", 3),
        ("$['\n']", 3),
        ("$[0,1]", 3),
        ("$[0:1]", 3),
        ("$[?(@.a)]", 2),
        ("$.😀['", 7),
    ],
)
def test_refuses_with_the_byte_offset(text: str, offset: int) -> None:
    with pytest.raises(PathError) as caught:
        VariantPath.parse(text)
    assert caught.value.offset == offset
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("segments", [[-1], [2**53], [1.5], [None], [True]])
def test_refuses_segments_of_other_kinds(segments: list[object]) -> None:
    with pytest.raises(PathError):
        VariantPath.parse(segments)  # type: ignore[arg-type]


def test_a_plain_name_is_refused_with_the_path_to_write() -> None:
    with pytest.raises(PathError, match=r"write '\$\.a\.b'"):
        VariantPath.parse("a.b")


def test_writes_the_normalized_path_of_rfc_9535() -> None:
    path = VariantPath(("a", 0, "it's", "back\\slash", "\0\x1f\n", '"', "é", WILDCARD))
    assert str(path) == r"""$['a'][0]['it\'s']['back\\slash']['\u0000\u001f\n']['"']['é'][*]"""


@given(_SEGMENTS)
def test_what_is_written_is_read_back(segments: list[str | int]) -> None:
    path = VariantPath.parse(segments)
    assert VariantPath.parse(str(path)) == path
    assert hash(VariantPath.parse(str(path))) == hash(path)
    assert pickle.loads(pickle.dumps(path)) == path


@given(st.text("$.[]'\"*0a\\u \n-", max_size=12))
def test_any_text_is_a_path_or_a_path_error(text: str) -> None:
    try:
        path = VariantPath.parse("$" + text)
    except PathError as err:
        assert err.offset is not None and 0 <= err.offset <= len(text) + 1
    else:
        assert VariantPath.parse(str(path)) == path


def test_child_parent_and_wildcards() -> None:
    path = VariantPath.parse("$.a") / 0 / WILDCARD
    assert path == VariantPath.parse("$.a[0][*]") == VariantPath.parse(path)
    assert path.parent == VariantPath.parse("$.a").child(0)
    assert VariantPath().parent == VariantPath()
    assert path.has_wildcard and not path.parent.has_wildcard
    assert len(path) == 3 and bool(VariantPath())


def test_a_key_with_a_colon_needs_quotes() -> None:
    assert split_type("$.a['eo:cover']:double") == ("$.a['eo:cover']", "double")
    assert split_type("$.a:struct<x: int>") == ("$.a", "struct<x: int>")
    with pytest.raises(PathError, match="two colons"):
        split_type("$.a.eo:cover:double")
