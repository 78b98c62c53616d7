"""Valid files that pyarrow refuses: the footer that pyarrow is given instead, and the values as the file defines them.

Owns two cases: decimals in more bytes than their precision needs, which pyarrow reads as plain bytes here, and a
writer's Arrow schema that is nested too deep for pyarrow's own check. Leaves opening files to `files`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.field_numbers import (
    CONVERTED_TYPE,
    KEY_VALUES,
    LOGICAL_TYPE,
    PRECISION,
    SCALE,
)
from parquet_variant.files.parquet.format.footer import SchemaNode, schema_elements
from parquet_variant.files.parquet.format.thrift import find_field, without_fields
from parquet_variant.kernels.arrow_buffers import bitmap
from parquet_variant.types.forms import chunks_in_form, with_fields

_ARROW_SCHEMA, _HIDDEN_SCHEMA = b"ARROW:schema", b"arrow:schema"
# pyarrow checks the serialized schema to 128 levels of its tables; each field takes two.
_ARROW_SCHEMA_DEPTH = 50
_DECIMAL = re.compile(r"DECIMAL\((\d+), (\d+)\)")


def wide_decimal(leaf: SchemaNode) -> pa.DataType | None:
    """Return the Arrow type of a decimal that has more bytes than pyarrow reads; None for any other leaf.

    >>> wide_decimal(SchemaNode("d", ("d",), "optional", "FIXED_LEN_BYTE_ARRAY", "DECIMAL(38, 2)", length=17))
    Decimal128Type(decimal128(38, 2))
    """
    if leaf.physical != "FIXED_LEN_BYTE_ARRAY" or (leaf.length or 0) <= 16 or not leaf.logical:
        return None
    match = _DECIMAL.fullmatch(leaf.logical)
    precision, scale = (int(number) for number in match.groups()) if match else (0, 0)
    if not 1 <= precision <= 38 or scale > precision:
        return None
    return pa.decimal128(precision, scale)


def footer_for_pyarrow(footer: bytes, schema: SchemaNode) -> bytes | None:
    """Return the footer that makes pyarrow read the file; None if that is the file's own."""
    changed = None
    if any(wide_decimal(leaf) for leaf in schema.leaves()):
        changed = _without_decimals(footer, schema)
    has_arrow_schema = _ARROW_SCHEMA in footer and any(len(leaf.path) > _ARROW_SCHEMA_DEPTH for leaf in schema.leaves())
    if has_arrow_schema:
        source = changed or footer
        start = find_field(source, 0, KEY_VALUES)
        if start is not None:
            changed = source[:start] + source[start:].replace(_ARROW_SCHEMA, _HIDDEN_SCHEMA, 1)
    return changed


def _without_decimals(footer: bytes, schema: SchemaNode) -> bytes:
    pieces, done = [], 0
    for node, (start, end, _) in zip(schema.walk(), schema_elements(footer), strict=True):
        if node.is_leaf and wide_decimal(node):
            plain = without_fields(footer, start, (CONVERTED_TYPE, SCALE, PRECISION, LOGICAL_TYPE))
            pieces += [footer[done:start], plain]
            done = end
    return b"".join([*pieces, footer[done:]])


def with_wide_decimals(table: pa.Table, leaves: Sequence[SchemaNode], file: str) -> pa.Table:
    """Return a table that pyarrow read from some leaf columns, with decimals where the file has wide ones.

    `leaves`: the leaf columns that were read, in the order of the file.
    Raises `VariantFileError` if a value has more digits than its column's type.
    """
    decimals = [wide_decimal(leaf) for leaf in leaves]
    if not any(decimals):
        return table
    remaining = iter(decimals)
    for number, field in enumerate(table.schema):
        kind = _with_types(field.type, remaining)
        if kind != field.type:
            columns = _DecimalColumns(file)
            column = chunks_in_form(table.column(number), kind, columns.change)
            table = table.set_column(number, field.with_type(kind), column)
    return table


def _with_types(kind: pa.DataType, leaf_types: Iterator[pa.DataType | None]) -> pa.DataType:
    """Return the type with other types of leaves: the leaves of an Arrow type are in the order of Parquet's."""
    if not kind.num_fields or pa.types.is_dictionary(kind):
        return next(leaf_types) or kind
    return with_fields(kind, lambda field: field.with_type(_with_types(field.type, leaf_types)))


class _DecimalColumns:
    """Conversion of bytes to decimals of a file whose name is in errors."""

    def __init__(self, file: str) -> None:
        self.file = file

    def change(self, array: pa.Array, kind: pa.DataType) -> pa.Array | None:
        """Return the array as decimals if it is bytes and `kind` is a decimal; None for anything else."""
        if not (pa.types.is_fixed_size_binary(array.type) and pa.types.is_decimal128(kind)):
            return None
        width = array.type.byte_width
        places = np.frombuffer(array.buffers()[1] or b"", np.uint8)
        values = places[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)
        sign = np.where(values[:, -16] >= 0x80, 0xFF, 0).astype(np.uint8)
        digits = np.ascontiguousarray(values[:, :-17:-1])
        is_valid = array.is_valid().to_numpy(zero_copy_only=False)
        fits = (values[:, :-16] == sign[:, None]).all(axis=1) & _within_precision(digits, kind.precision)
        if not (fits | ~is_valid).all():
            raise VariantFileError(
                f"a value does not fit {kind}: the column has values of more than {kind.precision} digits; "
                "write the file again with a larger precision",
                reason="bad-data",
                file=self.file,
            )
        nulls = bitmap(is_valid) if array.null_count else None
        return pa.Array.from_buffers(kind, len(array), [nulls, pa.py_buffer(digits)])


def _within_precision(digits: npt.NDArray[np.uint8], precision: int) -> npt.NDArray[np.bool_]:
    """Return which 16-byte little-endian integers have at most `precision` digits."""
    limit = 10**precision
    words = digits.view(np.int64)
    high = words[:, 1]
    bound = limit >> 64
    certain = (high > -bound) & (high < bound)
    if certain.all():
        return certain
    return np.array(
        [
            is_certain or -limit < (int(upper) << 64 | (int(lower) & (2**64 - 1))) < limit
            for is_certain, (lower, upper) in zip(certain.tolist(), words.tolist(), strict=True)
        ]
    )
