"""The report of a path, which can be Parquet, Delta, Iceberg, Vortex or JSON.

Owns recognising the format, and reading only footers, metadata of tables and a sample. Leaves the figures to `footers`
and `sample`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.explorer.footers import Footers, read_footers
from parquet_variant.explorer.report import ExploreReport
from parquet_variant.explorer.sample import json_rows, parquet_rows, sample_of
from parquet_variant.files.parquet.format.columns import choose_column
from parquet_variant.files.parquet.format.files import ParquetSource, locate, open_file
from parquet_variant.io.filesystems import path_text
from parquet_variant.path import VariantPath
from parquet_variant.tables.opening import is_delta, is_iceberg, is_json, is_vortex, refuse_versions
from parquet_variant.tables.table.table import Table

# Figures of a snapshot of Iceberg that the page shows.
_SUMMARY = ("added-data-files", "deleted-data-files", "added-records", "deleted-records", "added-position-deletes")


def report_of(
    source: str | os.PathLike[str], *, column: str | None = None, version: int | None = None, catalog: Any = None
) -> ExploreReport:
    """Build the report of a path in any format.

    Raises `VariantFileError` if nothing exists there, there is no Variant column, or the format has no versions.
    """
    if isinstance(source, Table):
        options = source.options
        column, version, catalog = column or options.column, version or options.version, catalog or options.catalog
        source = source.source
    path = path_text(source)
    if catalog is not None or is_iceberg(path):
        return _of_iceberg(path, column, version, catalog)
    if is_delta(path):
        return _of_delta(path, column, version)
    refuse_versions(path, version)
    if is_vortex(path):
        return _of_vortex(path, column)
    if is_json(path):
        return _of_json(path)
    return _of_parquet(path, "parquet", locate(path), column)


def _of_parquet(path: str, kind: str, sources: list[ParquetSource], column: str | None) -> ExploreReport:
    with open_file(sources[0]) as file:
        name = choose_column(file.schema, column, file.name).name
    root = os.path.commonpath([source.path for source in sources]) if len(sources) > 1 else ""
    if len(sources) == 1:
        root = sources[0].path.rpartition("/")[0]
    footers = read_footers(sources, name, root)
    sample = sample_of(parquet_rows(sources, name))
    size = sum(source.size for source in sources)
    return ExploreReport(path, kind, name, _all_rows(footers), size, footers, sample)


def _all_rows(footers: Footers) -> int:
    """Return the rows of all files, estimated by bytes for files whose footers were not read."""
    read = sum(size for _, size, _ in footers.files)
    return footers.rows + (round(footers.rows * footers.skipped_bytes / read) if read else 0)


def _of_delta(path: str, column: str | None, version: int | None) -> ExploreReport:
    from parquet_variant.tables.delta.file_locations import relative_path
    from parquet_variant.tables.delta.log.snapshot import snapshot
    from parquet_variant.tables.delta.maintenance.restore import history

    table = snapshot(path, version=version)
    sources = []
    for row in table.files.select(["path", "size"]).to_pylist():
        filesystem, full = table.storage.filesystem(relative_path(table.storage, row["path"]))
        sources.append(ParquetSource(full, filesystem, row["size"]))
    if not sources:
        raise VariantFileError(f"the Delta table {path} has no files", reason="no-files", file=path)
    report = _of_parquet(path, "delta", sources, column)
    report.versions = [_version(entry) for entry in history(path, 200)]
    return report


def _version(entry: dict[str, Any]) -> dict[str, Any]:
    metrics = entry.get("operationMetrics") or {}
    shown = {
        name: metrics[name]
        for name in ("numFiles", "numOutputRows", "numOutputBytes", "numAddedFiles", "numRemovedFiles")
        if name in metrics
    }
    return {
        "version": entry["version"],
        "time": entry["timestamp"].strftime("%Y-%m-%d %H:%M:%S"),
        "operation": entry["operation"],
        "engine": entry.get("engineInfo"),
        "metrics": shown,
    }


def _of_iceberg(path: str, column: str | None, version: int | None, catalog: Any) -> ExploreReport:
    from parquet_variant.tables.iceberg.reading.planning import plan_files
    from parquet_variant.tables.iceberg.reading.snapshot import history, snapshot

    current = snapshot(path, catalog=catalog, snapshot_id=version)
    sources = []
    for file in plan_files(current).files:
        filesystem, full = current.table.files.filesystem(file.path)
        sources.append(ParquetSource(full, filesystem, file.size))
    if not sources:
        raise VariantFileError(f"the Iceberg table {path} has no files", reason="no-files", file=path)
    report = _of_parquet(path, "iceberg", sources, column)
    report.table = current
    if catalog is not None:
        # Properties may contain credentials.
        report.catalog = catalog if isinstance(catalog, str) else "CATALOG"
    for entry in history(current, limit=200):
        summary = entry["summary"]
        metrics = {name: summary[name] for name in _SUMMARY if name in summary}
        time = datetime.fromtimestamp(entry["timestamp"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        facts = {"version": entry["snapshot_id"], "time": time, "operation": entry["operation"]}
        report.versions.append({**facts, "engine": summary.get("engine-name"), "metrics": metrics})
    return report


def _of_vortex(path: str, column: str | None) -> ExploreReport:
    from parquet_variant.files.vortex.library import open_file as open_vortex
    from parquet_variant.files.vortex.paths import vortex_files
    from parquet_variant.files.vortex.reader import choose_path_column
    from parquet_variant.files.vortex.scanner import scan as scan_files

    files = vortex_files(path)
    name = choose_path_column(open_vortex(files[0]), column)
    scan = scan_files(path, {"v": ("$", "variant")}, column=name)
    report = scan.explain()
    rows = next(iter(scan.batches()), None)
    array = VariantArray.from_arrow(rows, "v")[:20_000] if rows is not None else json_rows([])
    types = {VariantPath(): "variant"}
    return ExploreReport(path, "vortex", name, report.rows, report.bytes, None, sample_of(array), types=types)


def _of_json(path: str) -> ExploreReport:
    from parquet_variant.ingestion.sources.chunks import open_chunks, split_lines
    from parquet_variant.ingestion.sources.input_files import find_input_files

    files = find_input_files(path)
    size = sum(file.size for file in files)
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
