"""`get_variant_element` and `get_variant_scalar`: the values at a path that are of a type, by Vortex's RFC for Variant.

Owns the public operations, and `VariantScalar`, which tells every kind of null apart. Leaves the walk to `extract_path`
and what counts as the same value to `slot_casts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.compute.arrow_input import as_variant_array
from parquet_variant.compute.extract_path import extract_path
from parquet_variant.compute.target_type import as_target, value_target
from parquet_variant.encoding.cast.forms import in_target_form
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import bad_option
from parquet_variant.path import AnyPath, VariantPath
from parquet_variant.types import VariantType


def get_variant_element(array: Any, path: AnyPath, dtype: str | pa.DataType) -> pa.Array:
    """Get the values at a path that are of a type; null for everything else.

    Missing, of another type, and Variant null all become null, and nothing is cast: a string is no number here. What
    `variant_get` would give unchanged is of the type: exact numbers in any integer or decimal type that holds them
    exactly (1.00 is 1), float in double, timestamps in a unit that holds them exactly, a list or struct element by
    element.

    Parameters
    ----------
    array
        A `VariantArray` of any layout.
    path
        Where the values are; every ``[*]`` gives a list.
    dtype
        The type, by name or as a pyarrow type.

    Returns
    -------
    pyarrow.Array
        Always nullable, whether the column is or not.

    Raises
    ------
    CastError
        For a type that no Variant can be given as.
    MalformedVariantError
        If bytes that are read are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.parse_json(['{"a": 1.0}', '{"a": "1"}', '{"a": null}', "{}", None])
    >>> pv.get_variant_element(array, "$.a", "bigint").to_pylist()
    [1, None, None, None, None]
    """
    storage = as_variant_array(array).storage
    parsed, target = VariantPath.parse(path), as_target(dtype)
    values_type = value_target(target, parsed)
    result = extract_path(storage, parsed, values_type, safe=False, lossless=True)
    return result if values_type == target else in_target_form(result, target)


@dataclass(frozen=True, slots=True)
class VariantScalar:
    """One value at a path, or why there is none.

    Parameters
    ----------
    state
        ``"null"``: the row is SQL NULL (the RFC's outer null); ``"missing"``: nothing is at the path;
        ``"variantnull"``: a value is there and says null; ``"other-type"``: a value is there, of another type than
        asked for; ``"value"``.
    value
        The value as a scalar of the type asked for; a null scalar in every state but ``"value"``. For ``variant`` a
        `Variant` (Variant null for ``"variantnull"``), or None.

    Examples
    --------
    >>> VariantScalar("variantnull", pa.scalar(None, pa.int64())).is_variant_null
    True
    """

    state: Literal["null", "missing", "variantnull", "other-type", "value"]
    value: pa.Scalar | Variant | None

    @property
    def is_null(self) -> bool:
        """Whether there is no Variant at all: the row is SQL NULL or nothing is at the path."""
        return self.state in ("null", "missing")

    @property
    def is_variant_null(self) -> bool:
        """Whether a Variant is there whose payload is null."""
        return self.state == "variantnull"

    def as_py(self) -> Any:
        """The value as a Python object; None for every null."""
        if self.value is None:
            return None
        return self.value.to_python() if isinstance(self.value, Variant) else self.value.as_py()


def get_variant_scalar(
    array: Any, index: int, path: AnyPath = "$", dtype: str | pa.DataType = "variant"
) -> VariantScalar:
    """Get one row's value at a path, as a type, without casts (the rules of `get_variant_element`).

    Parameters
    ----------
    array
        A `VariantArray` of any layout.
    index
        The row; negative ones count from the end.
    path
        Where the value is, without wildcards.
    dtype
        The type, by name or as a pyarrow type.

    Raises
    ------
    IndexError
        If there is no such row.
    CastError
        For a type that no Variant can be given as.
    MalformedVariantError
        If bytes that are read are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.parse_json(['{"a": 1}', '{"a": null}', "{}", None])
    >>> [pv.get_variant_scalar(array, row, "$.a", "bigint").state for row in range(4)]
    ['value', 'variantnull', 'missing', 'null']
    >>> pv.get_variant_scalar(array, 0, "$.a", "bigint").as_py()
    1
    """
    as_variant = isinstance(dtype, str) and dtype.strip().lower() == "variant"
    none = None if as_variant else pa.scalar(None, as_target(dtype))
    row = as_variant_array(array)[index]
    if isinstance(row, VariantArray):
        raise bad_option(f"index is {index!r}: give the number of one row")
    if row is None:
        return VariantScalar("null", none)
    value = row.get(path)
    if value is None:
        return VariantScalar("missing", none)
    if value.type == VariantType.NULL:
        return VariantScalar("variantnull", value if as_variant else none)
    if as_variant:
        return VariantScalar("value", value)
    one = get_variant_element(VariantArray.from_variants([value]), "$", as_target(dtype))[0]
    return VariantScalar("value" if one.is_valid else "other-type", one)
