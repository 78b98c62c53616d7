"""`read`: the Variant column of a file or of many, whatever layout each has.

Owns joining files and row groups to one array. Leaves finding the column to `columns`, and bringing differing shredding
schemas together to the array itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyarrow import fs

from parquet_variant.array.parts import nested_array
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import OnConflict
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.parquet.format.columns import VariantColumn, choose_column
from parquet_variant.parquet.format.files import OpenFile, ParquetSource, Source, locate, open_file

if TYPE_CHECKING:
    from parquet_variant.shredding.profile import Profile


def read(
    source: Source,
    column: str | None = None,
    *,
    filesystem: fs.FileSystem | None = None,
    on_conflict: OnConflict = "error",
    threads: int | None = None,
) -> VariantArray:
    """Read a Variant column.

    Parameters
    ----------
    source
        A file, directory, glob, URI or list of these. Annotated files and others, all layouts.
    column
        The column; may be left out if there is only one. Fields of structs are written with dots.
    filesystem
        A pyarrow filesystem.
    on_conflict
        What becomes of values whose ``value`` and ``typed_value`` contradict each other: ``"error"`` leaves them to
        raise `ConflictError` when they are looked at or unshredded; ``"typed"`` takes ``typed_value``, now.
    threads
        How many row groups are read at the same time; by default one for each CPU that this process may use.

    Returns
    -------
    VariantArray
        In the files' own layout if they share one, else unshredded. ``on_conflict="typed"`` gives it unshredded.

    Raises
    ------
    VariantFileError
        If there is no such file or column.
    SchemaError
        If a column has a shape or type that the specification does not allow.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}', "2"]))
    ...     pv.parquet.read(folder).to_pylist()
    [{'a': 1}, 2]
    """
    parts: list[VariantArray] = []
    workers = thread_count(threads)
    for each in locate(source, filesystem):
        with open_file(each) as file:
            parts.append(read_column(file, choose_column(file.schema, column, file.name), on_conflict, workers))
    return _joined(parts)


def read_column(
    file: OpenFile, column: VariantColumn, on_conflict: OnConflict = "error", threads: int = 1
) -> VariantArray:
    """A whole Variant column of an open file."""
    arrays = [array for _, array in row_group_arrays(file, column, threads)]
    if on_conflict == "error":
        return _joined(arrays)
    from parquet_variant.functions.shred_variant import unshred_variant

    return _joined([unshred_variant(array, on_conflict=on_conflict) for array in arrays])


def profile_column(source: ParquetSource, column: str | None) -> Profile:
    """The profile of a Variant column of a file, which may be left out if there is only one."""
    from parquet_variant.shredding.profile import Profile

    total = Profile()
    with open_file(source) as file:
        for _, array in row_group_arrays(file, choose_column(file.schema, column, file.name)):
            total = total.merge(Profile.of_array(array))
    return total


def row_group_arrays(file: OpenFile, column: VariantColumn, threads: int = 1) -> Iterator[tuple[int, VariantArray]]:
    """The Variant column row group by row group, with the number of the first row; of an empty file, one empty array.

    Row groups are read in so many threads, and no more of them than one are in memory beside those. Raises
    `VariantFileError` if the column lies in a list or map; `SchemaError` if the specification does not allow its shape.
    """
    if column.repeated:
        raise VariantFileError(
            f"{column.name} lies in a list or map, so it has not one value a row: "
            "read whole rows (read_table; variant cat)",
            reason="repeated-column",
            file=file.name,
        )
    leaves = [leaf.leaf for leaf in column.node.leaves() if leaf.leaf is not None]

    def read_groups(groups: list[int]) -> VariantArray:
        own = file if threads == 1 else file.for_one_thread()
        table = own.read_leaves(groups, leaves)
        try:
            array = VariantArray(nested_array(table, column.path))
            _ = array.schema  # Refuses what the specification does not allow, before any value is looked at.
        except VariantError as error:
            raise error.at(file=file.name) from None
        return array

    first_row = 0
    numbers = [[number] for number in range(file.metadata.num_row_groups)] or [[]]
    for array in in_order(read_groups, numbers, threads):
        yield first_row, array
        first_row += len(array)


def _joined(parts: list[VariantArray]) -> VariantArray:
    if len(parts) == 1:
        return parts[0]
    filled = [part for part in parts if len(part)] or parts[:1]
    if len({part.storage.type for part in filled}) > 1:
        filled = [part.to_unshredded() for part in filled]
    return VariantArray.concat(filled)
