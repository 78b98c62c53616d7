"""Choosing the data files of a query: manifests by summaries, then files by partition values, then by metrics.

Owns `plan_files`, and the locations of all files for readers of Parquet. A table of many files is planned one manifest
at a time; memory holds only files that may match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.tables.iceberg.metadata.manifests import ManifestEntry
from parquet_variant.tables.iceberg.reading.deletes import DeleteIndex, TableFile
from parquet_variant.tables.iceberg.reading.pruning import (
    QueryColumns,
    matching_by_metrics,
    matching_by_partition,
    matching_manifests,
)
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot
from parquet_variant.tables.pruning import FILES_AT_ONCE


@dataclass
class PlannedFiles:
    """The data files of a snapshot that may hold a match, and the number of files that were pruned by each reason."""

    files: list[TableFile] = field(default_factory=list)
    total: int = 0
    by_partition: int = 0
    by_statistics: int = 0


def plan_files(snapshot: Snapshot, query: QueryColumns | None = None, *, metrics: bool = False) -> PlannedFiles:
    """Return the data files of a snapshot that may hold a match, with the delete files that apply to them.

    `query`: the filter and its columns; None for all files.
    `metrics`: whether all metrics of the files are kept, which changes of the table need.
    """
    planned = PlannedFiles()
    index = DeleteIndex.of(snapshot)
    manifests = [m for m in snapshot.manifests if not m.is_deletes and m.may_be_live]
    keep = np.ones(len(manifests), dtype=bool)
    columns: frozenset[int] | None = None if metrics else frozenset()
    if query is not None:
        keep = matching_manifests(query, snapshot.metadata, manifests)
        if not metrics:
            columns = query.field_ids()
    for manifest, is_needed in zip(manifests, keep, strict=True):
        if not is_needed and manifest.added_files is not None and manifest.existing_files is not None:
            count = manifest.added_files + manifest.existing_files
            planned.total += count
            planned.by_partition += count
            continue
        entries = (entry for entry in snapshot.entries(manifest, columns) if entry.is_live)
        while part := list(islice(entries, FILES_AT_ONCE)):
            planned.total += len(part)
            for entry in _matching(snapshot, query, manifest.spec_id, part, planned):
                planned.files.append(TableFile(entry, index.of_file(entry)))
    return planned


def _matching(
    snapshot: Snapshot, query: QueryColumns | None, spec_id: int, entries: list[ManifestEntry], planned: PlannedFiles
) -> Iterator[ManifestEntry]:
    """Yield the entries whose files may hold a match, and count the others."""
    if query is None:
        yield from entries
        return
    spec = snapshot.metadata.specs[spec_id]
    by_partition = matching_by_partition(query, spec, [entry.file for entry in entries])
    planned.by_partition += int(len(entries) - by_partition.sum())
    candidates = [entry for entry, keep in zip(entries, by_partition, strict=True) if keep]
    by_metrics = matching_by_metrics(query, [entry.file for entry in candidates])
    planned.by_statistics += int(len(candidates) - by_metrics.sum())
    yield from (entry for entry, keep in zip(candidates, by_metrics, strict=True) if keep)


def parts_with_metrics(
    snapshot: Snapshot, files: Sequence[TableFile], columns: frozenset[int]
) -> Iterator[list[TableFile]]:
    """Yield files with their metrics of some columns, a part at a time and in any order.

    Files of the snapshot are looked up in its manifests; other files have their metrics already.
    """
    by_path = {file.path: file for file in files}
    for manifest in snapshot.manifests:
        if manifest.is_deletes or not manifest.may_be_live:
            continue
        entries = (
            entry for entry in snapshot.entries(manifest, columns) if entry.is_live and entry.file.path in by_path
        )
        while part := list(islice(entries, FILES_AT_ONCE)):
            yield [TableFile(entry, by_path.pop(entry.file.path).deletes) for entry in part]
    if by_path:
        yield list(by_path.values())


def files_among(snapshot: Snapshot, query: QueryColumns, files: list[TableFile]) -> list[TableFile]:
    """Return the files among `files` that may hold a match."""
    matches: list[TableFile] = []
    for spec_id in dict.fromkeys(file.file.spec_id for file in files):
        members = [file for file in files if file.file.spec_id == spec_id]
        spec = snapshot.metadata.specs[spec_id]
        described = [member.file for member in members]
        keep = matching_by_partition(query, spec, described)
        keep &= matching_by_metrics(query, described)
        matches += [member for member, is_kept in zip(members, keep, strict=True) if is_kept]
    return matches


def parquet_files(snapshot: Snapshot) -> tuple[ParquetSource, ...]:
    """Return the data files of a snapshot; none if a column was renamed, or its name was used for another column.

    Files keep the name that a column had when they were written. Files of other formats, and encrypted files, are a
    reason for none, too.
    """
    schemas = snapshot.metadata.schemas_newest_first
    names = {(field.id, field.name) for schema in schemas for field in schema.fields}
    is_constant = len({number for number, _ in names}) == len({name for _, name in names}) == len(names)
    has_every_schema = max(schema.id for schema in schemas) == len(schemas) - 1  # unused ones may have been removed
    if not (is_constant and has_every_schema):
        return ()
    files = plan_files(snapshot).files
    if any(file.file.format != "parquet" or file.file.key_metadata is not None for file in files):
        return ()
    return tuple(snapshot.table.files.source(file.path, file.size) for file in files)
