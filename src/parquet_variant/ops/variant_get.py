"""`variant_get`, `get_variant_element` and `get_variant_scalar`: values at a path.

Owns the public operations for columns and single values. `variant_get` is Spark's: it casts values to the type, and an
impossible cast is an error or null. `get_variant_element` is that of Vortex's RFC for Variant: it returns only values
that have the type already, and casts only on request; `VariantScalar` distinguishes every kind of null.
`ops.columns.extract_path` extracts from columns, `encoding.cast` casts single values.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.arrays.final_columns import keys_of_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant, elements_of_array
from parquet_variant.errors import VariantError, bad_option
from parquet_variant.layouts.similar_paths import missing_path_hint
from parquet_variant.layouts.type_grammar import as_target, value_target
from parquet_variant.ops.columns.arguments import as_variant_array, check_errors
from parquet_variant.ops.columns.extract_path import array_group, extract_path, extract_variant
from parquet_variant.ops.conversions import to_json
from parquet_variant.support.options import Errors
from parquet_variant.support.records import Record
from parquet_variant.types import BasicType, VariantType
from parquet_variant.types.forms import in_target_form, is_json_type
from parquet_variant.types.path import AnyPath, Segment, VariantPath, Wildcard


def variant_get(
    array: Any, path: AnyPath, type: str | pa.DataType = "variant", *, zone: str = "UTC", errors: Errors = "raise"
) -> Any:
    """Get the values at a path, cast to a type as Spark's ``variant_get`` does.

    Parameters
    ----------
    array
        A `VariantArray` of any layout (or an Arrow struct array of a Variant storage), or a single `Variant`.
    path
        The path of the values: ``$.a.b[0]['x.y']``. Every ``[*]`` makes a list with one entry per element of an
        array, null where an element lacks the path that follows.
    type
        ``"variant"``, a type's name (see `layouts.type_grammar`) or an Arrow type; ``pyarrow.json_()`` gives JSON
        text. For a path with wildcards it is the type of the result (``"array<double>"``), or the type of every value
        (``"double"``).
    zone
        The session time zone, a region or an offset, for casts between instants and local times.
    errors
        ``"raise"``, or ``"null"``: a value that cannot be cast, at any depth, becomes null. Malformed bytes always
        raise.

    Returns
    -------
    VariantArray
        For ``"variant"`` and a path without wildcards; SQL NULL where the path is missing.
    pyarrow.Array
        For any other type; null where the path is missing and for Variant null.
    object
        For a single `Variant`: a Python object or a Variant; None if the path is missing.

    Raises
    ------
    CastError
        If a value cannot be cast, with its row and path, unless ``errors="null"``.
    PathError
        For an invalid path.
    MalformedVariantError
        If bytes that are read are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.parse_json(['{"a": [{"b": 1.50}, {"b": "2"}]}', '{"a": 7}', None])
    >>> pv.variant_get(array, "$.a[0].b", "string").to_pylist()
    ['1.5', None, None]
    >>> pv.variant_get(array, "$.a[*].b", "array<double>").to_pylist()
    [[1.5, 2.0], None, None]
    >>> pv.variant_get(array, "$.a").to_pylist()
    [[{'b': Decimal('1.50')}, {'b': '2'}], 7, None]
    >>> pv.variant_get(array, "$.a", "int")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.CastError: cannot cast array [{"b":1.5},{"b":"2"}] to int32: use errors="null" to get \
null instead (row 0, path $['a'])
    >>> pv.variant_get(array, "$.a", "int", errors="null").to_pylist()
    [None, 7, None]
    """
    safe = not check_errors(errors)
    parsed = VariantPath.parse(path)
    as_variant = isinstance(type, str) and type.strip().lower() == "variant"
    if isinstance(array, Variant):
        if isinstance(type, pa.DataType) and is_json_type(type) and not parsed.has_wildcard:
            value = array.get(parsed)
            return None if value is None else value.to_json()
        target = None if as_variant else value_target(as_target(type), parsed)
        try:
            return _value_of_variant(array, parsed.segments, target, safe, zone)
        except VariantError as error:
            raise error.at(path=str(parsed)) from None
    column = as_variant_array(array, errors)
    if as_variant and not parsed.has_wildcard:
        return extract_variant(column.storage, parsed)
    target = as_target(type)
    if is_json_type(target) and not parsed.has_wildcard:
        return in_target_form(to_json(extract_variant(column.storage, parsed)), target)
    return _extracted(column, parsed, target, safe=safe, zone=zone)


def _extracted(
    column: VariantArray, path: VariantPath, target: pa.DataType, *, safe: bool, zone: str, lossless: bool = False
) -> pa.Array:
    values_type = value_target(target, path)
    result = extract_path(array_group(column), path, values_type, safe=safe, zone=zone, lossless=lossless)
    return result if values_type == target else in_target_form(result, target)


def _value_of_variant(
    variant: Variant, segments: tuple[Segment, ...], target: pa.DataType | None, safe: bool, zone: str
) -> Variant | list[Any] | Any:
    wildcard = next((index for index, segment in enumerate(segments) if isinstance(segment, Wildcard)), len(segments))
    value = variant.get(VariantPath(segments[:wildcard]))
    if value is None:
        return None
    if wildcard < len(segments):
        if not value.may_be(BasicType.ARRAY):
            return None
        return [
            _value_of_variant(element, segments[wildcard + 1 :], target, safe, zone)
            for element in elements_of_array(value)
        ]
    if target is None:
        return value
    # Imported here because most columns are cast by kernels.
    from parquet_variant.encoding.cast.values import cast_variant

    return cast_variant(value, target, zone=zone, safe=safe)


def field_by_name(array: VariantArray, name: str) -> VariantArray:
    """Return the field of every row with a name, or the values at a path that starts with ``$.`` or ``$[``.

    Warns if no object has the name, and a similar name exists.
    """
    path = VariantPath.parse(name) if name[:2] in ("$.", "$[") else VariantPath((name,))
    values = variant_get(array, path, "variant")
    assert isinstance(values, VariantArray)
    if len(values) and values.storage.null_count == len(values):
        hint = missing_path_hint(path, keys_of_storage(array.to_unshredded().storage))
        if hint is not None and "did you mean" in hint:
            warnings.warn(hint, UserWarning, stacklevel=3)
    return values


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
    column = as_variant_array(array)
    return _extracted(column, VariantPath.parse(path), as_target(dtype), safe=False, zone=zone, lossless=not cast)


class VariantScalar(Record):
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
