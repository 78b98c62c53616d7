"""`variant_get`: values at a path, cast to a type.

Owns the public operation for columns and single values. `ops.columns.extract_path` extracts from columns,
`encoding.cast` casts single values.
"""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.field_names import keys_of_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.cast import cast_variant
from parquet_variant.encoding.cast.forms import in_target_form, is_json_type
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.layouts.similar_paths import missing_path_hint
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.extract_path import array_group, extract_from, extract_variant
from parquet_variant.ops.columns.null_on_error import check_errors
from parquet_variant.ops.columns.target_type import as_target, value_target
from parquet_variant.ops.to_json import to_json
from parquet_variant.path import AnyPath, Segment, VariantPath, Wildcard
from parquet_variant.support.choices import Errors
from parquet_variant.types import BasicType


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
        ``"variant"``, a type's name (see `ops.columns.target_type`) or an Arrow type; ``pyarrow.json_()`` gives JSON
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
    column = as_variant_array(array)
    if as_variant and not parsed.has_wildcard:
        return extract_variant(column.storage, parsed)
    target = as_target(type)
    if is_json_type(target) and not parsed.has_wildcard:
        return in_target_form(to_json(extract_variant(column.storage, parsed)), target)
    values_type = value_target(target, parsed)
    result = extract_from(array_group(column), parsed, values_type, safe=safe, zone=zone)
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
        return [_value_of_variant(element, segments[wildcard + 1 :], target, safe, zone) for element in value]
    return value if target is None else cast_variant(value, target, zone=zone, safe=safe)


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
