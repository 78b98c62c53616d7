"""pyarrow's Parquet reader, opened the same way everywhere: schemas may be as deep as this library can read.

Owns the limit on the depth of a file's schema and how the installed pyarrow is asked for it, and the unit of INT96.
Every module that needs a `pyarrow.parquet.ParquetFile` gets it here.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import pyarrow.parquet as pq

from parquet_variant.errors import VariantFileError

# A shredded object takes two levels of a Parquet schema, an array three. pyarrow 26 refuses schemas of 100 levels
# unless it is asked for more; older versions have no limit. Recursion in pyarrow and in Python goes deeper than this.
MAX_SCHEMA_DEPTH = 700
# What pyarrow's error for a deeper schema says.
_TOO_DEEP = "too deeply nested"


@cache
def reader_options() -> dict[str, Any]:
    """Return the arguments that make pyarrow read deep schemas, if it has a limit, and INT96 of any year."""
    has_limit = "schema_depth_limit" in inspect.signature(pq.ParquetFile.__init__).parameters
    # Nanoseconds, pyarrow's default for INT96, overflow silently outside the years 1677 to 2262.
    return {"coerce_int96_timestamp_unit": "us"} | ({"schema_depth_limit": MAX_SCHEMA_DEPTH} if has_limit else {})


def open_parquet(source: Any, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file with pyarrow.

    `source`: a path, a buffer or an open file.
    `options`: arguments of `pyarrow.parquet.ParquetFile`.
    Raises `VariantFileError` with reason ``too-deep`` if the file's schema is deeper than `MAX_SCHEMA_DEPTH`.
    """
    try:
        return pq.ParquetFile(source, **reader_options(), **options)
    except OSError as error:
        if _TOO_DEEP in str(error):
            raise too_deep(source if isinstance(source, str) else None) from None
        raise


def too_deep(file: str | None) -> VariantFileError:
    """Make the error for a file whose schema is deeper than `MAX_SCHEMA_DEPTH`."""
    return VariantFileError(
        f"the file's schema is nested more than {MAX_SCHEMA_DEPTH} levels deep, the most that parquet-variant reads; "
        "write the file again with a shallower shredding schema, using the tool that wrote it",
        reason="too-deep",
        file=file,
    )
