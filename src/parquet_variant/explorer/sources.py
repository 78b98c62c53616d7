"""The report of data that `pv.open` opened.

Owns reading only footers, metadata of tables and a sample. Leaves formats to `pv.open` and `quality.sources`, and the
figures to `footers` and `sample`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.explorer.footers import Footers, read_footers
from parquet_variant.explorer.report import ExploreReport
from parquet_variant.explorer.sample import json_rows, parquet_rows, sample_of
from parquet_variant.ingestion.sources.chunks import open_chunks, split_lines
from parquet_variant.path import VariantPath
from parquet_variant.quality.sources import DataSet, open_data
from parquet_variant.tables.table.table import Table

# Figures of a version that the page shows, as Delta and Iceberg name them.
_METRICS = ("numFiles", "numOutputRows", "numOutputBytes", "numAddedFiles", "numRemovedFiles")
_SUMMARY = ("added-data-files", "deleted-data-files", "added-records", "deleted-records", "added-position-deletes")


def report_of(table: Table) -> ExploreReport:
    """Build the report of an open table. Raises `VariantFileError` if there is no Variant column."""
    data = open_data(table)
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
    sources = data.files
    if not sources:
        rows = next(data.batches(), None)
        if rows is None and data.kind == "delta":
            raise VariantFileError(f"the Delta table {path} has no files", reason="no-files", file=path)
        sample = sample_of(json_rows([]) if rows is None else rows.values[:20_000])
        types = {VariantPath(): "variant"}
        return ExploreReport(path, data.kind, data.column, data.rows or 0, data.size, None, sample, types=types)
    root = os.path.commonpath([source.path for source in sources])
    footers = read_footers(sources, data.column, root if len(sources) > 1 else os.path.dirname(root))  # noqa: PTH120
    sample = sample_of(parquet_rows(sources, data.column))
    return ExploreReport(path, data.kind, data.column, _all_rows(footers), data.size, footers, sample)


def _all_rows(footers: Footers) -> int:
    """Return the rows of all files, estimated by bytes for files whose footers were not read."""
    read = sum(size for _, size, _ in footers.files)
    return footers.rows + (round(footers.rows * footers.skipped_bytes / read) if read else 0)


def _of_text(path: str, data: DataSet) -> ExploreReport:
    files, size = data.text_files, data.size
    rows_read, bytes_read, is_complete = 0, 0.0, False

    def lines() -> Iterator[pa.Array]:
        nonlocal rows_read, bytes_read, is_complete
        for file in files:
            for chunk in open_chunks(file):
                text = split_lines(chunk).text
                count = min(len(text), 20_000)
                rows_read += count
                bytes_read += len(chunk.data) * count / max(len(text), 1)
                is_complete = count == len(text)
                # The memory of the chunk is reused, so it is copied.
                yield text.take(np.arange(count))
                is_complete = False
                chunk.release()
        is_complete = True

    sample = sample_of(json_rows(lines()))
    if not sample.rows:
        raise VariantFileError(f"no JSON values in {path}: name files with JSON", reason="no-rows", file=path)
    is_compressed = any(file.codec for file in files)
    if rows_read == sample.rows and (is_complete or (bytes_read >= size and not is_compressed)):
        return ExploreReport(path, "json", "v", sample.rows, size, None, sample)
    text_bytes = size * (10 if is_compressed else 1)
    rows = max(round(text_bytes * rows_read / max(bytes_read, 1)), sample.rows)
    return ExploreReport(path, "json", "v", rows, size, None, sample)
