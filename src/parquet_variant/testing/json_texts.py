"""The strategy `json_texts`: JSON in every spelling that RFC 8259 allows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from parquet_variant.testing.lazy import strategies

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_NUMBER = r"-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,3})?"


def json_texts(*, max_leaves: int = 20) -> SearchStrategy[str]:
    """Valid JSON texts: white space, escapes, duplicate keys, long numbers, scalars at the top.

    Parameters
    ----------
    max_leaves
        About the most scalars in one text.

    Examples
    --------
    >>> json_texts(max_leaves=1) is not None
    True
    """
    st = strategies()
    blank = st.text(" \t\n\r", max_size=2)
    character = st.one_of(
        st.characters(codec="utf-8").map(lambda one: json.dumps(one, ensure_ascii=False)[1:-1]),
        st.characters(codec="utf-8").map(lambda one: json.dumps(one)[1:-1]),
        st.sampled_from([r"\/", r"\"", r"\\", r"\b", r"\f", r"\n", r"\r", r"\t", r"\u0000", r"\uD83D\uDE00"]),
    )
    string = st.lists(character, max_size=8).map(lambda parts: f'"{"".join(parts)}"')
    key = string | st.sampled_from(['"a"', '"b"', r'"\u0061"', '""'])
    number = st.from_regex(_NUMBER, fullmatch=True) | st.integers(-(2**65), 2**65).map(str)
    scalar = st.sampled_from(["null", "true", "false"]) | number | string

    def containers(inner: SearchStrategy[str]) -> SearchStrategy[str]:
        item = st.tuples(blank, inner, blank).map("".join)
        field = st.tuples(blank, key, blank, st.just(":"), item).map("".join)
        arrays = st.one_of(blank, st.lists(item, min_size=1, max_size=5).map(",".join))
        objects = st.one_of(blank, st.lists(field, min_size=1, max_size=5).map(",".join))
        return arrays.map(lambda text: f"[{text}]") | objects.map(lambda text: f"{{{text}}}")

    texts: SearchStrategy[str] = st.tuples(blank, st.recursive(scalar, containers, max_leaves=max_leaves), blank).map(
        "".join
    )
    return texts
