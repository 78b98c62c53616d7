"""Rewriting files without changing rows: compaction, re-shredding, and dropping Variant shredding.

Owns which files are rewritten together; the commit states ``dataChange=false``. Leaves reading to `reading`, writing to
`writing.data_files`, and running the tasks to an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.operations.optimize import pack_files
from parquet_variant.files.parquet.report_text import rewritten
from parquet_variant.inference.drift import DriftReport
from parquet_variant.inference.profile import Profile
from parquet_variant.io.engine import Engine, Progress, ThreadEngine, engine_or_threads
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.tables.columns import align_table, by_name
from parquet_variant.tables.delta.data.file_partitions import partition_keys
from parquet_variant.tables.delta.data.paths import paths_of_adds
from parquet_variant.tables.delta.log.commit import Transaction, commit
from parquet_variant.tables.delta.log.file_actions import iter_adds
from parquet_variant.tables.delta.log.snapshot import Snapshot, TableLike, writable_snapshot
from parquet_variant.tables.delta.maintenance.properties import with_properties, without_feature
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.protocol.features import SHREDDING, has_feature
from parquet_variant.tables.delta.protocol.table_properties import SHREDDING_PROPERTY
from parquet_variant.tables.delta.reading.read import iter_files, shredded_schemas
from parquet_variant.tables.delta.reading.row_ids import tracked_rows
from parquet_variant.tables.delta.writing.data_files import WritePlan, plan_write
from parquet_variant.tables.delta.writing.write import plan
from parquet_variant.tables.row_input import SchemaOption
from parquet_variant.tables.rules import Rules
from parquet_variant.tables.shredding_drift import ShreddedContent, largest_drift
from parquet_variant.tables.write_plan import DEFAULT_FILE_BYTES


@dataclass(frozen=True, repr=False)
class OptimizeResult:
    """The result of a rewrite.

    Parameters
    ----------
    version
        The table's version afterwards.
    files_removed, files_added, bytes_removed, bytes_added
        Numbers of files and bytes; all are zero if there was nothing to do. Removed files remain in storage until a
        vacuum.
    drift
        How the data has drifted from the shredding schema; for several Variant columns, the report of the column where
        a change saves most. None if this was not measured, because the schema was given or the table does not shred.
    """

    version: int
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    drift: DriftReport | None = None

    def __repr__(self) -> str:
        drift = "" if self.drift is None else f"; {self.drift!r}"
        return f"<OptimizeResult version {self.version}, {rewritten(self)}{drift}>"


def optimize(
    table: TableLike,
    *,
    file_bytes: int = DEFAULT_FILE_BYTES,
    reshred: bool = False,
    schema: SchemaOption = None,
    policy: Any = None,
    min_saving: float = 0.02,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> OptimizeResult:
    """Compact small files, re-shredding Variants where that saves space, in one commit that changes no row.

    Parameters
    ----------
    table, storage_options
        The table; see `snapshot`.
    file_bytes
        Approximate maximum size of a file. Files of at least three quarters of it, without deleted rows, are kept.
    reshred
        Rewrite all files, not only small ones, with the schema that `policy` chooses; implied by `schema`.
    schema
        Shredding schema, as for `append` (default: the schema of most rows, with the changes that `find_drift` suggests
        if these save enough; then all files are rewritten). All rows are read to decide this.
    policy
        Policy that chooses the schema; see `infer_shredding_schema`.
    min_saving
        Minimum share of the encoded bytes that re-shredding must remove from the residual.
    dry_run
        Only report the drift; commit nothing.
    threads
        Number of files to write at the same time, each of them in memory; None for one per CPU core.
    progress
        Called with the step, the number of finished tasks and the number of tasks.
    engine
        Engine that runs the tasks (default: threads of this process).
    **options
        Options of `VariantWriter`.

    Returns
    -------
    OptimizeResult

    Raises
    ------
    TableError
        ``"conflict"`` if another commit removed one of the files meanwhile (appends do not conflict);
        ``"unsupported-feature"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.delta.append(folder, {"v": pv.parse_json(["2"])})
    ...     result = pv.delta.optimize(folder)
    ...     result.files_removed, result.files_added
    (2, 1)
    """
    engine = engine_or_threads(engine, threads, progress)
    current = writable_snapshot(table, storage_options)
    rewrites_all, drift = reshred or schema is not None, None
    if schema is None and current.shredding_enabled:
        reports = _drifts(engine, current, file_bytes, policy, min_saving)
        schema = {name: report.to_shred(old, reshred=reshred) for name, (report, old) in reports.items()}
        drift = largest_drift(reports)
        rewrites_all = rewrites_all or any(report.pays for report, _ in reports.values())
    packs = [] if dry_run else _packs(current, file_bytes, rewrites_all=rewrites_all)
    write = plan(current, schema=schema, file_bytes=file_bytes, rewriting=True, **options)
    return replace(_rewrite(engine, current, write, packs, "OPTIMIZE", {"reshred": bool(reshred)}), drift=drift)


def drop_shredding(
    table: TableLike,
    *,
    file_bytes: int = DEFAULT_FILE_BYTES,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> OptimizeResult:
    """Rewrite all files unshredded and remove the feature from the protocol, in one commit.

    Older versions of the table still need the feature.

    Parameters
    ----------
    table, file_bytes, storage_options, **options
        As for `optimize`.

    Returns
    -------
    OptimizeResult

    Raises
    ------
    TableError
        ``"conflict"`` if another commit changed files meanwhile; ``"unsupported-feature"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.delta.drop_shredding(folder)
    ...     pv.delta.snapshot(folder).protocol.reader_features
    ('variantType',)
    """
    current = writable_snapshot(table, storage_options)
    if not has_feature(current.protocol.reader_features, SHREDDING):
        return OptimizeResult(current.version)
    metadata = with_properties(current.metadata, {SHREDDING_PROPERTY: None})
    protocol = without_feature(current.protocol, SHREDDING)
    unshredded = replace(current, metadata=metadata, protocol=protocol)
    write = plan_write(unshredded, file_bytes=file_bytes, options=options)
    packs = _packs(current, file_bytes, rewrites_all=True)
    change = Transaction("DROP FEATURE", protocol=protocol, metadata=metadata, reads_table=True)
    engine = ThreadEngine(1, None)
    return _rewrite(engine, current, write, packs, "DROP FEATURE", {"featureName": SHREDDING}, change)


def _packs(current: Snapshot, file_bytes: int, *, rewrites_all: bool) -> list[pa.Table]:
    """Return the files to rewrite, in packs of one partition that together make about one new file."""
    files = current.files
    keys = partition_keys(files, current.partition_fields)
    must_rewrite = [rewrites_all or vector is not None for vector in files["deletionVector"].to_pylist()]
    packs = pack_files(list(zip(keys, files["size"].to_pylist(), strict=True)), file_bytes, must_rewrite)
    return [files.take(pa.array(indexes)) for indexes in packs]


def _drifts(
    engine: Engine, current: Snapshot, file_bytes: int, policy: Any, min_saving: float
) -> dict[str, tuple[DriftReport, ShreddingSchema]]:
    """Return, for each Variant column, how all rows have drifted from the schema of most rows, and this schema."""
    packs = _packs(current, file_bytes, rewrites_all=True)
    if not packs:
        return {}
    work = partial(_content, current.without_files())
    return engine.reduce("profile", work, packs, ShreddedContent.merge).reports(policy, min_saving)


def _content(current: Snapshot, task: int, attempt: int, files: pa.Table) -> ShreddedContent:
    content = ShreddedContent()

    def add_profile(place: tuple[str, ...], array: VariantArray) -> VariantArray:
        content.add_profile(".".join(place), Profile.of_array(array))
        return array

    times = files["modificationTime"].to_pylist()
    for (path, rows), millis in zip(iter_files(current, current.schema, files), times, strict=True):
        content.add_file(shredded_schemas(current, path), len(rows), millis)
        align_table(rows, current.schema, by_name, add_profile)
    return content


def _rewrite(
    engine: Engine,
    current: Snapshot,
    write: WritePlan,
    packs: list[pa.Table],
    operation: str,
    parameters: Mapping[str, Any],
    change: Transaction | None = None,
) -> OptimizeResult:
    base = change or Transaction(operation)
    if not packs and change is None:
        return OptimizeResult(current.version)
    removes = [remove for pack in packs for remove in current.to_removes(pack, data_change=False)]
    write = replace(write, rules=Rules())  # Copied rows were checked when they were written.
    done = engine.run("optimize", partial(_write_pack, current.without_files(), write), packs)
    adds = [add for part in done for add in part]
    transaction = replace(base, parameters=parameters, adds=adds, removes=removes, current=current)
    result = commit(current.storage, transaction, written=paths_of_adds(current.storage, adds))
    return OptimizeResult(
        result.version,
        len(removes),
        len(adds),
        sum(remove.size or 0 for remove in removes),
        sum(add.size for add in adds),
    )


def _write_pack(current: Snapshot, write: WritePlan, task: int, attempt: int, files: pa.Table) -> list[Add]:
    tables = (tracked_rows(current, file) for file in iter_adds(files))
    return write.write_files((rows for rows in tables if len(rows)), data_change=False)
