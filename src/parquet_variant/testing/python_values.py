"""The strategy `python_values`: objects that `Variant.from_python` takes and `to_python` gives back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from parquet_variant.encoding.scalars import MAX_DIGITS, MAX_SCALE
from parquet_variant.testing.lazy import strategies

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def python_values(*, max_leaves: int = 20) -> SearchStrategy[Any]:
    """Nested Python objects of every type that has a Variant type.

    Parameters
    ----------
    max_leaves
        About the most scalars in one object.

    Examples
    --------
    >>> python_values(max_leaves=1) is not None
    True
    """
    st = strategies()
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.integers(-(10**MAX_DIGITS) + 1, 10**MAX_DIGITS - 1),
        st.floats(),
        decimals(),
        st.text(max_size=80),
        st.binary(max_size=80),
        st.uuids(),
        st.dates(),
        st.times(),
        st.datetimes(),
        st.datetimes(timezones=st.just(dt.UTC)),
        st.integers(-(2**63) + 1, 2**63 - 1).map(lambda count: np.datetime64(count, "ns")),
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
        max_leaves=max_leaves,
    )


def decimals() -> SearchStrategy[Decimal]:
    """Decimals of up to 38 digits and of scale 0 to 38."""
    st = strategies()
    unscaled = st.integers(0, 10**MAX_DIGITS - 1) | st.integers(0, 99_999)
    return st.builds(
        lambda sign, number, scale: Decimal((sign if number else 0, tuple(map(int, str(number))), -scale)),
        st.integers(0, 1),
        unscaled,
        st.integers(0, MAX_SCALE),
    )
