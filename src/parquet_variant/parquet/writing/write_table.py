"""`write_table`: rows into a file, in the order of arguments that ``pyarrow.parquet.write_table`` has.

Owns that order. Leaves the writing to `write`.
"""

from __future__ import annotations

import os
from typing import Any

from parquet_variant.parquet.writing.write import write
from parquet_variant.parquet.writing.writer import FileInfo


def write_table(table: Any, where: str | os.PathLike[str], **options: Any) -> FileInfo:
    """Write a table with Variant and ordinary columns as a Parquet file; `read_table` reads it back.

    Parameters
    ----------
    table
        An Arrow table, a data frame of pandas or polars, or columns by name.
    where
        The file.
    **options
        Those of `write`.

    Raises
    ------
    VariantFileError, SchemaError
        As `write`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write_table({"id": [1, 2], "v": pv.parse_json(["1", '"x"'])}, f"{folder}/a.parquet")
    ...     pv.parquet.read_table(f"{folder}/a.parquet").column_names
    ['id', 'v']
    """
    return write(where, table, **options)
