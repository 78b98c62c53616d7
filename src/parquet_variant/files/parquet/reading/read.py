"""`read`: read a Variant column of one or many files, in any layout.

Owns concatenating files and row groups to one array. Leaves finding the column to `format.columns`, and unshredding
arrays whose schemas differ to `VariantArray`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, get_args

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError, VariantFileError, check_choice
from parquet_variant.files.parquet.format.columns import VariantColumn, choose_column
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, Source, open_file, with_current_files
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.choices import OnConflict

if TYPE_CHECKING:
    from parquet_variant.inference.profile import Profile


def read(
    source: Source,
    column: str | None = None,
    *,
    filesystem: fs.FileSystem | None = None,
    on_conflict: OnConflict = "error",
    threads: int | None = None,
) -> VariantArray:
    """Read a Variant column; see `Table.read`."""
    check_choice("on_conflict", on_conflict, get_args(OnConflict))
    workers = thread_count(threads)

    def read_files(sources: list[ParquetSource]) -> VariantArray:
        parts: list[VariantArray] = []
        for parquet_source in sources:
            with open_file(parquet_source) as file:
                parts.append(read_column(file, choose_column(file.schema, column, file.name), on_conflict, workers))
        return _concatenated(parts)

    return with_current_files(source, filesystem, read_files)


def read_column(
    file: OpenFile, column: VariantColumn, on_conflict: OnConflict = "error", threads: int = 1
) -> VariantArray:
    """Read all rows of a Variant column of an open file."""
    arrays = [array for _, array in row_group_arrays(file, column, threads)]
    if on_conflict == "error":
        return _concatenated(arrays)
    from parquet_variant.ops.shred_variant import unshred_variant

    return _concatenated([unshred_variant(array, on_conflict=on_conflict) for array in arrays])


def profile_column(source: ParquetSource, column: str | None) -> Profile:
    """Return the profile of a Variant column of a file; `column` is optional if there is only one."""
    from parquet_variant.inference.profile import Profile

    total = Profile()
    with open_file(source) as file:
        for _, array in row_group_arrays(file, choose_column(file.schema, column, file.name)):
            total = total.merge(Profile.of_array(array))
    return total


def row_group_arrays(file: OpenFile, column: VariantColumn, threads: int = 1) -> Iterator[tuple[int, VariantArray]]:
    """Yield the Variant column per row group, with the number of the first row; one empty array for an empty file.

    Row groups are read by `threads` threads; at most one more is in memory. Raises `VariantFileError` if the column is
    inside a list or map, and `SchemaError` if the specification does not allow its type.
    """
    if column.repeated:
        raise VariantFileError(
            f"{column.name} is inside a list or map, so a row may have several values: "
            "read whole rows with Table.to_arrow or `variant cat`",
            reason="repeated-column",
            file=file.name,
        )
    leaves = [leaf.leaf for leaf in column.node.leaves() if leaf.leaf is not None]

    def read_groups(groups: list[int]) -> VariantArray:
        thread_file = file if threads == 1 else file.for_one_thread()
        table = thread_file.read_leaves(groups, leaves)
        try:
            array = VariantArray(variant_storage(table, column))
            _ = array.schema  # Raises an error for types that the specification does not allow.
        except VariantError as error:
            raise error.at(file=file.name) from None
        return array

    first_row = 0
    numbers = [[number] for number in range(file.metadata.num_row_groups)] or [[]]
    for array in in_order(read_groups, numbers, threads):
        yield first_row, array
        first_row += len(array)


def variant_storage(table: pa.Table, column: VariantColumn) -> pa.StructArray:
    """Return the storage of a Variant column in a table that was read from some of its leaves.

    pyarrow takes the nulls of a group from its first leaf. In a damaged file the leaves may disagree: then the group
    exists where any leaf has a value, so that the values of a path do not depend on which other leaves are read.
    """
    storage = nested_array(table, column.path)
    return _agreeing(storage, nullable=True, may_be_lost=False)[0]


def _agreeing(array: pa.Array, *, nullable: bool, may_be_lost: bool) -> tuple[pa.Array, pa.Array | None]:
    """Return the array with the nulls of groups that all leaves support, and where the array certainly has a value.

    `nullable`: whether the array has nulls of its own; a required column has none where the group above is null.
    `may_be_lost`: whether a group above has nulls, so that it is needed where the array has a value.
    """
    kind = array.type
    may_be_lost = may_be_lost or (nullable and array.null_count > 0)
    is_valid = array.is_valid() if nullable and may_be_lost else None
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and not array.offset:
        element = kind.value_field
        elements = _agreeing(array.values, nullable=element.nullable, may_be_lost=False)[0]
        if elements is not array.values:
            array = type(array).from_arrays(array.offsets, elements, type=kind, mask=array.is_null())
    if not pa.types.is_struct(kind):
        return array, is_valid
    fields = [(kind.field(number), array.field(number)) for number in range(kind.num_fields)]
    parts = [_agreeing(child, nullable=field.nullable, may_be_lost=may_be_lost) for field, child in fields]
    known = [values for _, values in parts if values is not None]
    has_value = reduce(pc.or_, known) if known else None
    if is_valid is not None:
        lost = has_value is not None and pc.and_not(has_value, is_valid).true_count
        has_value = pc.or_(is_valid, has_value) if lost else is_valid
    else:
        lost = 0
    if lost or any(part is not child for (_, child), (part, _) in zip(fields, parts, strict=True)):
        mask = None if is_valid is None else pc.invert(has_value)
        array = pa.StructArray.from_arrays([part for part, _ in parts], fields=list(kind), mask=mask)
    return array, has_value


def _concatenated(parts: list[VariantArray]) -> VariantArray:
    if len(parts) == 1:
        return parts[0]
    nonempty = [part for part in parts if len(part)] or parts[:1]
    if len({part.storage.type for part in nonempty}) > 1:
        nonempty = [part.to_unshredded() for part in nonempty]
    return VariantArray.concat(nonempty)
