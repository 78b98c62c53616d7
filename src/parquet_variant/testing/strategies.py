"""The strategies: Variants, valid and malformed, Python values, JSON texts, shredding schemas.

Hypothesis is imported when a strategy is called; if it is missing, the error names the package to install. Leaves other
layouts of a value to `layouts`.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.builder import encode_value
from parquet_variant.encoding.scalars import MAX_DIGITS, MAX_SCALE, MICROS_PER_DAY, encode_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.layouts.primitive_types import DDL_NAMES
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.testing.layouts import Layout, lay_out
from parquet_variant.types import DECIMAL_TYPES, EXACT_NUMERIC, TYPES, VariantType

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def strategies() -> ModuleType:
    """Return ``hypothesis.strategies``. Raises `VariantError` if Hypothesis is not installed."""
    try:
        from hypothesis import strategies as st
    except ImportError:
        raise VariantError(
            "parquet_variant.testing needs Hypothesis: run: pip install hypothesis", reason="not-installed"
        ) from None
    return st


_NUMBER = r"-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,3})?"


def json_texts(*, max_leaves: int = 20) -> SearchStrategy[str]:
    """Generate valid JSON texts: whitespace, escapes, duplicate keys, long numbers, scalars at the top.

    Parameters
    ----------
    max_leaves
        The approximate maximum number of scalars in one text.

    Examples
    --------
    >>> json_texts(max_leaves=1) is not None
    True
    """
    st = strategies()
    blank = st.text(" \t\n\r", max_size=2)
    character = st.one_of(
        st.characters(codec="utf-8").map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1]),
        st.characters(codec="utf-8").map(lambda text: json.dumps(text)[1:-1]),
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


def python_values(*, max_leaves: int = 20) -> SearchStrategy[Any]:
    """Generate nested Python objects of every type that has a Variant type.

    Parameters
    ----------
    max_leaves
        The approximate maximum number of scalars in one object.

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
    return nested(scalars, max_leaves)


def nested(scalars: SearchStrategy[Any], max_leaves: int) -> SearchStrategy[Any]:
    """Generate scalars, and lists and dictionaries of them."""
    st = strategies()
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
        max_leaves=max_leaves,
    )


def decimals() -> SearchStrategy[Decimal]:
    """Generate decimals of up to 38 digits, and of scale 0 to 38."""
    st = strategies()
    unscaled = st.integers(0, 10**MAX_DIGITS - 1) | st.integers(0, 99_999)
    signed = st.tuples(st.integers(0, 1), unscaled, st.integers(0, MAX_SCALE))
    return signed.map(lambda one: Decimal((one[0] if one[1] else 0, tuple(map(int, str(one[1]))), -one[2])))


def shredding_schemas(variants: Sequence[Variant | None] = (), *, max_depth: int = 4) -> Any:
    """Generate schemas, most of whose nodes match the types of the values.

    Parameters
    ----------
    variants
        The values that will be shredded.
    max_depth
        The maximum number of levels of a schema.

    Examples
    --------
    >>> shredding_schemas([Variant.from_python({"a": 1})]) is not None
    True
    """
    st = strategies()

    values = [variant for variant in variants if variant is not None]
    return st.composite(lambda draw: _schema(draw, st, values, max_depth))()


def _schema(draw: Callable[[Any], Any], st: Any, values: list[Variant], depth: int) -> ShreddingSchema:
    wild = draw(st.integers(0, 11))
    if wild == 0 or (depth == 1 and wild < 4):
        return ShreddingSchema.variant()
    if wild == 1 or depth == 1 or not values:
        return ShreddingSchema.primitive(
            draw(st.sampled_from(sorted(set(DDL_NAMES.values()), key=str)) | _numeric_types(st))
        )
    model = draw(st.sampled_from(values))
    if model.type == VariantType.OBJECT:
        names = draw(st.sets(st.sampled_from([*model.keys(), "absent"]), min_size=1, max_size=5))
        objects = [dict(value.items()) for value in values if value.type == VariantType.OBJECT]
        return ShreddingSchema.object(
            {
                name: _schema(draw, st, [fields[name] for fields in objects if name in fields], depth - 1)
                for name in sorted(names)
            }
        )
    if model.type == VariantType.ARRAY:
        arrays = [value for value in values if value.type == VariantType.ARRAY]
        return ShreddingSchema.array(_schema(draw, st, [element for array in arrays for element in array], depth - 1))
    if model.type in EXACT_NUMERIC:
        return ShreddingSchema.primitive(draw(_numeric_types(st)))
    arrow = TYPES[model.type].arrow
    return ShreddingSchema.variant() if arrow is None else ShreddingSchema.primitive(arrow)


def _numeric_types(st: Any) -> Any:
    decimals = st.integers(1, 38).flatmap(
        lambda precision: st.integers(0, precision).map(lambda scale: pa.decimal128(precision, scale))
    )
    return st.sampled_from([pa.int8(), pa.int16(), pa.int32(), pa.int64()]) | decimals


def variants(*, max_leaves: int = 20, layouts: bool = True, types: set[VariantType] | None = None) -> Any:
    """Generate Variants of every type.

    Parameters
    ----------
    max_leaves
        The approximate maximum number of scalars in one value.
    layouts
        Generate layouts other than the canonical one, too.
    types
        The scalar types to generate; all by default.

    Examples
    --------
    >>> variants(types={VariantType.INT8}) is not None
    True
    """
    st = strategies()
    canonical = nested(variant_scalars(types), max_leaves).map(lambda node: Variant(*encode_value(node)))
    if not layouts:
        return canonical
    width = st.integers(1, 4)
    flag = st.booleans()
    widths = dict.fromkeys(("name_width", "id_width", "offset_width"), width)
    flags = dict.fromkeys(("large_counts", "reverse_values", "reverse_names", "long_strings"), flag)
    layout = st.builds(Layout, extra_names=st.lists(st.text(max_size=3), max_size=3).map(tuple), **widths, **flags)
    return canonical | st.builds(lay_out, canonical, layout)


def variant_scalars(types: set[VariantType] | None = None) -> SearchStrategy[bytes]:
    """Generate the bytes of scalars of the given types (default: all), over the full range of their payloads."""
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


def mutated_variants(*, max_leaves: int = 20, max_changes: int = 4) -> Any:
    """Generate Variants with bytes flipped, overwritten, truncated, repeated or appended; a few are still valid.

    Parameters
    ----------
    max_leaves
        The approximate maximum number of scalars in one value before the change.
    max_changes
        The maximum number of changes to one value.

    Examples
    --------
    >>> mutated_variants() is not None
    True
    """
    st = strategies()
    action = st.sampled_from(["flip", "set", "cut", "repeat", "append"])
    change = st.tuples(st.booleans(), action, st.integers(0, 1 << 16), st.integers(0, 255))
    return st.builds(_changed, variants(max_leaves=max_leaves), st.lists(change, min_size=1, max_size=max_changes))


def _changed(variant: Variant, changes: list[tuple[bool, str, int, int]]) -> Variant:
    parts = [bytearray(variant.metadata), bytearray(variant.value)]
    for in_value, action, position, byte in changes:
        part = parts[in_value]
        at = position % len(part) if part else 0
        if action == "append":
            part.append(byte)
        elif not part:
            continue
        elif action == "flip":
            part[at] ^= 1 << byte % 8
        elif action == "set":
            part[at] = byte
        elif action == "cut":
            del part[at:]
        else:
            part[at:at] = part[at:]
    return Variant(bytes(parts[0]), bytes(parts[1]))
