"""The strategy `variants`: values of all 21 primitive types, in canonical and in other legal bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parquet_variant.encoding.builder import encode_value
from parquet_variant.encoding.scalars import MAX_SCALE, MICROS_PER_DAY, encode_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.testing.layouts import Layout, lay_out
from parquet_variant.testing.lazy import strategies
from parquet_variant.types import DECIMAL_TYPES, TYPES, VariantType

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def variants(*, max_leaves: int = 20, layouts: bool = True, types: set[VariantType] | None = None) -> Any:
    """Variants of every type.

    Parameters
    ----------
    max_leaves
        About the most scalars in one value.
    layouts
        Whether other legal layouts than the canonical one come up.
    types
        Which scalar types come up; all by default.

    Examples
    --------
    >>> variants(types={VariantType.INT8}) is not None
    True
    """
    st = strategies()
    nodes = st.recursive(
        variant_scalars(types),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
        max_leaves=max_leaves,
    )
    canonical = nodes.map(lambda node: Variant(*encode_value(node)))
    if not layouts:
        return canonical
    width = st.integers(1, 4)
    flag = st.booleans()
    layout = st.builds(
        Layout,
        name_width=width,
        id_width=width,
        offset_width=width,
        large_counts=flag,
        reverse_values=flag,
        reverse_names=flag,
        extra_names=st.lists(st.text(max_size=3), max_size=3).map(tuple),
        long_strings=flag,
    )
    return canonical | st.builds(lay_out, canonical, layout)


def variant_scalars(types: set[VariantType] | None = None) -> SearchStrategy[bytes]:
    """The bytes of scalars of the given types, all by default; payloads use their whole range."""
    st = strategies()
    choices = []
    for kind, info in TYPES.items():
        if not info.ids or (types is not None and kind not in types):
            continue
        raw: Any
        if kind in DECIMAL_TYPES:
            assert info.precision is not None
            limit = 10**info.precision - 1
            raw = st.tuples(st.integers(-limit, limit), st.integers(0, MAX_SCALE))
        elif info.width is None:
            raw = st.text(max_size=80) if kind == VariantType.STRING else st.binary(max_size=80)
        elif kind == VariantType.TIME:
            raw = st.integers(0, MICROS_PER_DAY - 1)
        elif kind == VariantType.UUID:
            raw = st.binary(min_size=16, max_size=16)
        elif kind in (VariantType.DOUBLE, VariantType.FLOAT):
            raw = st.floats(width=8 * info.width)
        elif kind == VariantType.BOOLEAN:
            raw = st.booleans()
        elif kind == VariantType.NULL:
            raw = st.none()
        else:
            bound = 1 << (8 * info.width - 1)
            raw = st.integers(-bound, bound - 1)
        choices.append(st.builds(encode_scalar, st.just(kind), raw))
    scalars: SearchStrategy[bytes] = st.one_of(choices)
    return scalars
