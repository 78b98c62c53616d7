"""`extract`: typed columns out of Parquet files, as one table.

Owns the one-call form. Leaves everything to `scan`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import fs

from parquet_variant.parquet.format.files import Source
from parquet_variant.parquet.scanning.scan import Errors, scan
from parquet_variant.renamed import renamed


@renamed(on_error="errors")
def extract(
    source: Source,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    column: str | None = None,
    filesystem: fs.FileSystem | None = None,
    skipping: bool = True,
    errors: Errors = "null",
    zone: str = "UTC",
    threads: int | None = None,
) -> pa.Table:
    """Read paths of a Variant column as typed Arrow columns: only the leaf columns and row groups that they need.

    Parameters
    ----------
    source, columns, where, column, filesystem, skipping, errors, zone, threads
        As for `scan`.

    Raises
    ------
    VariantError
        As `scan`, and `CastError` with ``errors="raise"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write(f"{folder}/a.parquet", pv.parse_json(['{"mag": 5.5, "place": "x"}', '{"mag": "n/a"}']))
    ...     pv.parquet.extract(folder, {"mag": ("$.mag", "double"), "place": ("$.place", "string")}).to_pydict()
    {'mag': [5.5, None], 'place': ['x', None]}
    """
    query = scan(
        source,
        columns,
        where,
        column=column,
        filesystem=filesystem,
        skipping=skipping,
        errors=errors,
        zone=zone,
        threads=threads,
    )
    return query.to_table()
