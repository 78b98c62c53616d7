"""`explore`: a page that shows how Variants are stored.

Owns the public operation and its result. Leaves reading to `sources`, figures to `footers` and `sample`, the document
to `report`, and the page to `page`.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.errors import without_secrets
from parquet_variant.explorer.page import page, page_frame
from parquet_variant.explorer.report import ExploreReport
from parquet_variant.explorer.sources import report_of
from parquet_variant.io.temporaries import atomic_file
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.opening import open as open_any


@dataclass(frozen=True, slots=True)
class Exploration:
    """A page about a table, which notebooks display and `save` writes to a file."""

    report: ExploreReport

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the page."""
        return self.report.to_dict()

    def to_html(self) -> str:
        """Return the page as one self-contained HTML document."""
        return page(self.to_dict())

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the page to a file, which appears only when it is complete."""
        target = Path(file)
        document = self.to_html().encode()
        with atomic_file(target) as staged:
            staged.write_bytes(document)
        return target

    def sql(self, query: str, *, rows: int | None = None, seconds: float | None = None) -> pa.Table:
        """Run SQL over the table, which is called ``t``; see `pv.sql`. Other files and tables cannot be read.

        `rows`: stop after this number of rows.
        `seconds`: stop after this time with `SqlError`, reason ``time-limit``.
        """
        with optional_libraries("SQL"):
            from parquet_variant.sql_query.sql import plan_sql

        report = self.report
        table: Any = report.table or report.source
        if report.kind == "json":
            from parquet_variant.ingestion.ingest import read_json  # not needed to make a page

            table = read_json(report.source)
        with closing(plan_sql(query, {"t": table}, opens_paths=False).batches(seconds=seconds)) as batches:
            parts = [next(batches)]
            while rows is None or sum(map(len, parts)) < rows:
                part = next(batches, None)
                if part is None:
                    break
                parts.append(part)
        return pa.concat_tables(parts).slice(0, rows)

    def _repr_html_(self) -> str:
        return page_frame(self.to_dict())

    def __repr__(self) -> str:
        report = self.report
        counts = f"{report.rows:,} rows, {len(report.sample.paths):,} paths"
        return f"<Exploration of {without_secrets(report.source)}: {counts}; save('x.html')>"


def explore(
    source: str | os.PathLike[str],
    *,
    column: str | None = None,
    compare: str | os.PathLike[str] | None = None,
    version: int | None = None,
    catalog: Any = None,
) -> Exploration:
    """Inspect a table of Variants, or JSON before it is ingested.

    Reads footers, the metadata of a table, and a sample of at most 20,000 rows or 8 MiB.

    Parameters
    ----------
    source
        A Parquet file, directory, glob or URI; a Delta or Iceberg table; Vortex files; or JSON files.
    column
        The Variant column, if there are several.
    compare
        Another source to compare with, such as an earlier state.
    version
        The version of a Delta table, or the id of a snapshot of an Iceberg table (default: the newest).
    catalog
        The catalog of an Iceberg table; see `pv.open`.

    Returns
    -------
    Exploration
        Displayed by notebooks; `Exploration.save` writes one self-contained HTML page.

    Raises
    ------
    VariantFileError
        If the file or the column does not exist.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}', '{"a": "x"}']), schema="a bigint")
    ...     page = pv.explore(folder)
    ...     page.save(f"{folder}/a.html").stat().st_size > 10_000
    True
    >>> page.to_dict()["paths"]["kinds"][1]
    {'int64': 1, 'string': 1}
    """
    table = open_any(source, column=column, version=version, catalog=catalog)
    report = report_of(table)
    if compare is not None:
        report.before = report_of(open_any(compare, column=table.options.column))
    return Exploration(report)
