"""`read` and `read_table`: whole rows of a Vortex file.

Owns the two public operations. Leaves queries by path to `scan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from parquet_variant.array.capsules import import_variant, without_views
from parquet_variant.array.chunked_array import variant_table
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.vortex.library import arrow_reader, batches_of, open_file, vortex_errors
from parquet_variant.vortex.storing import variant_names

__all__ = ["choose_variant", "column_names", "iter_tables", "read", "read_table"]


def read(path: Any, column: str | None = None) -> VariantArray:
    """Read a Variant column, as it is stored.

    Parameters
    ----------
    path
        The file.
    column
        The column, if there are several.

    Raises
    ------
    VariantFileError
        If there is no such file or column.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.vortex.write(f"{folder}/a.vortex", pv.parse_json(['{"a": 1}', None]))
    ...     read(f"{folder}/a.vortex")
    <VariantArray unshredded, 2 rows: [{"a":1}, NULL]>
    """
    file = open_file(path)
    with vortex_errors(path):
        name = choose_variant(file.to_arrow().schema, column, path)
        table = arrow_reader(file, projection=[name]).read_all()
        return VariantArray.from_arrow(table, name)


def read_table(path: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Read whole rows as a pyarrow table; Variant columns carry the extension name.

    Parameters
    ----------
    path
        The file.
    columns
        Which columns; all by default.

    Raises
    ------
    VariantFileError
        If there is no such file or column.
    """
    file = open_file(path)
    with vortex_errors(path):
        schema = file.to_arrow().schema
        missing = sorted(set(columns or ()) - set(schema.names))
        if missing:
            raise VariantFileError(f"there is no column {missing[0]!r} in {schema.names}", file=str(path))
        table = arrow_reader(file, projection=None if columns is None else list(columns)).read_all()
    return _tagged(table, variant_names(schema))


def iter_tables(path: Any) -> Iterator[pa.Table]:
    """The rows of a file as tables of some thousand rows each; see `read_table`."""
    file = open_file(path)
    with vortex_errors(path):
        reader = arrow_reader(file)
    variants = variant_names(reader.schema)
    for batch in batches_of(reader, path):
        yield _tagged(pa.Table.from_batches([batch]), variants)


def _tagged(table: pa.Table, variants: list[str]) -> pa.Table:
    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in variants:
            columns[name] = VariantArray.concat(VariantArray(storage) for storage in import_variant(column))
        else:
            columns[name] = column.cast(without_views(column.type, large=column.nbytes > 2**31 - 1))
    return variant_table(columns)


def column_names(path: Any) -> tuple[list[str], list[str]]:
    """The names of a file's Variant columns, and of its other columns."""
    with vortex_errors(path):
        schema = open_file(path).to_arrow().schema
    variants = variant_names(schema)
    return variants, [name for name in schema.names if name not in variants]


def choose_variant(schema: pa.Schema, column: str | None, path: Any) -> str:
    """The name of the Variant column.

    Raises
    ------
    VariantFileError
        If there is no such column, or none or several to choose from (``no-such-column``).
    """
    found = [column] if column is not None and column in schema.names else variant_names(schema)
    if len(found) != 1 or (column is not None and found != [column]):
        wanted = "one Variant column" if column is None else f"column {column!r}"
        raise VariantFileError(
            f"there is not {wanted} in {', '.join(schema.names)}: name one of {', '.join(found) or 'none'}",
            file=str(path),
            reason="no-such-column",
        )
    return found[0]
