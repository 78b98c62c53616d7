"""`get_variant_element` and `get_variant_scalar`: values at a path that have a type, as in Vortex's RFC for Variant.

Owns the public operations, and `VariantScalar`, which distinguishes every kind of null. `ops.columns.extract_path`
extracts the values, `ops.columns.slot_casts` decides which values have a type already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.cast.forms import in_target_form
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import bad_option
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.extract_path import array_group, extract_from
from parquet_variant.ops.columns.target_type import as_target, value_target
from parquet_variant.path import AnyPath, VariantPath
from parquet_variant.types import VariantType


def get_variant_element(
    array: Any, path: AnyPath, dtype: str | pa.DataType, *, cast: bool = False, zone: str = "UTC"
) -> pa.Array:
    """Get the values at a path that have a type, without casts unless `cast` is true.

    Missing values, values of another type and Variant null become null. A value has the type if `variant_get` would
    return it unchanged: exact numbers have any integer or decimal type that holds them exactly (1.00 is 1), a float
    has the type double, a timestamp any unit that holds it exactly, a list or struct is compared element by element.
    JSON fractions are exact numbers, so that ``1.5`` has the type decimal and not double; use `cast` for these.

    Parameters
    ----------
    array
        A `VariantArray` of any layout.
    path
        The path of the values; every ``[*]`` makes a list.
    dtype
        The type, by name or as a pyarrow type.
    cast
        Cast values of other types as `variant_get` does; values that cannot be cast are null.
    zone
        The session time zone of casts.

    Returns
    -------
    pyarrow.Array
        The values, null for those without the type.

    Raises
    ------
    CastError
        For a type that is not a cast target.
    MalformedVariantError
        If bytes that are read are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.parse_json(['{"a": 1.0}', '{"a": "1"}', '{"a": null}', "{}", None])
    >>> pv.get_variant_element(array, "$.a", "bigint").to_pylist()
    [1, None, None, None, None]
    >>> pv.get_variant_element(array, "$.a", "double", cast=True).to_pylist()
    [1.0, 1.0, None, None, None]
    """
    group = array_group(as_variant_array(array))
    parsed, target = VariantPath.parse(path), as_target(dtype)
    values_type = value_target(target, parsed)
    result = extract_from(group, parsed, values_type, safe=False, zone=zone, lossless=not cast)
    return result if values_type == target else in_target_form(result, target)


@dataclass(frozen=True, slots=True)
class VariantScalar:
    """The value at a path of one row, or the reason why it has none.

    Parameters
    ----------
    state
        ``"null"``: the row is SQL NULL (the RFC's outer null); ``"missing"``: the row lacks the path;
        ``"variantnull"``: the value is Variant null; ``"other-type"``: the value has another type; ``"value"``: it has
        the requested type.
    value
        The value as a scalar of the requested type; a null scalar in every state but ``"value"``. For ``variant`` a
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
        """Whether the row is SQL NULL or lacks the path."""
        return self.state in ("null", "missing")

    @property
    def is_variant_null(self) -> bool:
        """Whether the value is Variant null."""
        return self.state == "variantnull"

    def as_py(self) -> Any:
        """Return the value as a Python object; None for every kind of null."""
        if self.value is None:
            return None
        return self.value.to_python() if isinstance(self.value, Variant) else self.value.as_py()


def get_variant_scalar(
    array: Any,
    index: int,
    path: AnyPath = "$",
    dtype: str | pa.DataType = "variant",
    *,
    cast: bool = False,
    zone: str = "UTC",
) -> VariantScalar:
    """Get the value at a path of one row, without casts unless `cast` is true (see `get_variant_element`).

    Parameters
    ----------
    array
        A `VariantArray` of any layout.
    index
        The row; a negative number counts from the end.
    path
        The path of the value, without wildcards.
    dtype
        The type, by name or as a pyarrow type.
    cast, zone
        As for `get_variant_element`. A value that cannot be cast has the state ``"other-type"``.

    Raises
    ------
    IndexError
        If the row does not exist.
    CastError
        For a type that is not a cast target.
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
        raise bad_option(f"index is {index!r}: pass the number of one row")
    if row is None:
        return VariantScalar("null", none)
    value = row.get(path)
    if value is None:
        return VariantScalar("missing", none)
    if value.type == VariantType.NULL:
        return VariantScalar("variantnull", value if as_variant else none)
    if as_variant:
        return VariantScalar("value", value)
    one = get_variant_element(VariantArray.from_variants([value]), "$", as_target(dtype), cast=cast, zone=zone)[0]
    return VariantScalar("value" if one.is_valid else "other-type", one)
