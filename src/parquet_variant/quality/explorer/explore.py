"""`Table.explore`: a page that shows how Variants are stored; `save_diff`: the page of two data sets' differences.

Owns reading only footers, metadata of tables and a sample. Leaves formats to `pv.open` and `quality.sources`, figures
to `sample`, the document to `report`, and the page to `page`.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.errors import VariantFileError, without_secrets
from parquet_variant.ingestion.batches import Pass, steps
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.io.temporaries import atomic_file
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.quality.diff import DataDiff
from parquet_variant.quality.explorer.page import diff_page, page, page_frame
from parquet_variant.quality.explorer.report import ExploreReport, Footers, read_footers
from parquet_variant.quality.explorer.sample import SAMPLE_BYTES, parquet_rows, sample_of
from parquet_variant.quality.samples import SAMPLE_ROWS
from parquet_variant.quality.sources import DataSet, data_of
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.opening import open as open_any
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import VariantPath

# Figures of a version that the page shows, as Delta and Iceberg name them.
_METRICS = ("numFiles", "numOutputRows", "numOutputBytes", "numAddedFiles", "numRemovedFiles")
_SUMMARY = ("added-data-files", "deleted-data-files", "added-records", "deleted-records", "added-position-deletes")


def report_of(table: Table) -> ExploreReport:
    """Build the report of an open table. Raises `VariantFileError` if there is no Variant column."""
    data = data_of(table)
    report = _of_text(table.uri, data) if data.text_files else _of_rows(table.uri, data)
    if table.format == "delta":
        report.versions = [
            _version(entry, entry["version"], entry["timestamp"], entry.get("engineInfo"), metrics, _METRICS)
            for entry in table.history(200)
            for metrics in (entry.get("operationMetrics") or {},)
        ]
    elif table.format == "iceberg":
        report.table, catalog = table.snapshot, table.options.catalog
        # Properties may contain credentials.
        report.catalog = catalog if catalog is None or isinstance(catalog, str) else "CATALOG"
        for entry in table.history(200):
            time, summary = datetime.fromtimestamp(entry["timestamp"] / 1000, UTC), entry["summary"]
            engine = summary.get("engine-name")
            report.versions.append(_version(entry, entry["snapshot_id"], time, engine, summary, _SUMMARY))
    return report


def _version(
    entry: dict[str, Any], version: int, time: datetime, engine: Any, metrics: dict[str, Any], shown: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "version": version,
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        "operation": entry["operation"],
        "engine": engine,
        "metrics": {name: metrics[name] for name in shown if name in metrics},
    }


def _of_rows(path: str, data: DataSet) -> ExploreReport:
    """Return the report of Parquet files, from footers and some pages; or of the first rows of other data."""
    if not data.files:
        if data.kind in ("delta", "iceberg"):
            raise VariantFileError(f"the table {path} has no rows: append rows first", reason="no-rows", file=path)
        rows = next(data.batches(), None)
        sample = sample_of(VariantArray.from_pylist([]) if rows is None else rows.values[:SAMPLE_ROWS])
        types = {VariantPath(): "variant"}
        return ExploreReport(path, data.kind, data.column, data.rows or 0, data.size, None, sample, types=types)
    root = os.path.commonpath([file.source.path for file in data.files])
    footers = read_footers(data.files, root if len(data.files) > 1 else os.path.dirname(root))  # noqa: PTH120
    sample = sample_of(parquet_rows(data.files))
    return ExploreReport(path, data.kind, data.column, _all_rows(footers), data.size, footers, sample)


def _all_rows(footers: Footers) -> int:
    """Return the rows of all files, estimated by bytes for files whose footers were not read."""
    read = sum(size for _, size, _ in footers.files)
    return footers.rows + (round(footers.rows * footers.skipped_bytes / read) if read else 0)


def _of_text(path: str, data: DataSet) -> ExploreReport:
    """Return the report of JSON files, from the first lines; invalid lines are left out."""
    lenient = replace(data.text, on_error="quarantine", chunk_bytes=1 << 20)
    work = Pass(_unshredded, lambda first, second: VariantArray.concat([first, second]))
    parts: list[VariantArray] = []
    rows, text_bytes, is_complete = 0, 0, True
    for step in steps([Split(file) for file in data.text_files], lenient, work):
        if rows >= SAMPLE_ROWS or text_bytes >= SAMPLE_BYTES:
            is_complete = False
            break
        chunk = step()
        parts.append(chunk.result)
        rows, text_bytes = rows + len(chunk.result), text_bytes + chunk.text_bytes
    if not rows:
        raise VariantFileError(f"no JSON values in {path}: name files with JSON", reason="no-rows", file=path)
    sample = sample_of(VariantArray.concat(parts)[:SAMPLE_ROWS])
    if not is_complete:
        rows = max(round(data.text_bytes * rows / text_bytes), rows)
    return ExploreReport(path, "json", "v", rows, data.size, None, sample)


def _unshredded(tape: Tape) -> VariantArray:
    return trusted_array(shredded_rows(tape, per_batch=True).storage())


def save_diff(differences: DataDiff, file: str | os.PathLike[str]) -> Path:
    """Write differences as one self-contained HTML page, which appears only when it is complete.

    >>> import tempfile, parquet_variant as pv
    >>> differences = pv.open(pv.parse_json(["1"])).diff(pv.parse_json(['"x"']))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_diff(differences, f"{folder}/diff.html").stat().st_size > 10_000
    True
    """
    return _saved(diff_page(differences.to_dict()), file)


def _saved(document: str, file: str | os.PathLike[str]) -> Path:
    target = Path(file)
    with atomic_file(target) as staged:
        staged.write_bytes(document.encode())
    return target


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
        return _saved(self.to_html(), file)

    def sql(self, query: str, *, rows: int | None = None, seconds: float | None = None) -> pa.Table:
        """Run SQL over the table, which is called ``t``; see `pv.sql`. Other files and tables cannot be read.

        The query ends after a number of rows, or after some seconds with `SqlError`, reason ``time-limit``.
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


def explore(table: Table, *, compare: Any = None) -> Exploration:
    """Inspect a table of Variants, or JSON before it is ingested; see `Table.explore`."""
    report = report_of(table)
    if compare is not None:
        report.before = report_of(open_any(compare, column=table.options.column))
    return Exploration(report)
