"""Compacting files: small ones put together, deleted rows dropped, Variants re-shredded, rows sorted.

Owns which files are rewritten together. Rows keep their row ids; the commit changes no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.operations.optimize import pack_files
from parquet_variant.inference.drift import DriftReport
from parquet_variant.inference.profile import Profile
from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import infer_shredding_schema
from parquet_variant.tables.file_metrics import column_at
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.changes.changeable import IcebergChangePlan
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.reading.deletes import partition_key
from parquet_variant.tables.iceberg.reading.planning import plan_files
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableLike, snapshot
from parquet_variant.tables.iceberg.reading.table_files import TableFile
from parquet_variant.tables.iceberg.writing.commit import check_writable, commit_snapshot
from parquet_variant.tables.iceberg.writing.snapshot_change import SnapshotChange
from parquet_variant.tables.iceberg.writing.write_plan import plan_write, with_lineage
from parquet_variant.tables.row_input import SchemaOption, schemas_by_column
from parquet_variant.tables.rules import Rules
from parquet_variant.tables.shredding_drift import ShreddedContent, largest_drift


@dataclass(frozen=True)
class OptimizeResult:
    """The result of `optimize`.

    Parameters
    ----------
    snapshot_id
        The snapshot afterwards.
    files_removed, files_added
        Numbers of data files.
    bytes_removed, bytes_added
        Their sizes.
    drift
        With `reshred` or `dry_run`: how the rows have drifted from the shredding schema of most rows; for several
        Variant columns, the report of the column where a change saves most.
    """

    snapshot_id: int | None
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    drift: DriftReport | None = None


def optimize(
    table: TableLike,
    *,
    file_bytes: int | None = None,
    reshred: bool = False,
    schema: SchemaOption = None,
    policy: Any = None,
    min_saving: float = 0.02,
    dry_run: bool = False,
    rewrite_all: bool = False,
    branch: str = MAIN,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> OptimizeResult:
    """Compact small files and files with deleted rows, in one commit that changes no row.

    Rows are sorted by the table's sort order, and files of former partition specs are written under the current one.

    Parameters
    ----------
    table, catalog, storage_options, branch
        The table; see `snapshot`.
    file_bytes
        Approximate size of the new files (default: ``write.target-file-size-bytes``); files of at least three quarters
        of it, without deleted rows, are left alone.
    reshred
        Rewrite every file under the schema that `policy` chooses for its rows; implied by `schema` and `policy`.
    schema
        What to shred, as for `write`.
    policy
        The policy of the inference, as for `write`.
    min_saving
        Minimum share of the encoded bytes that re-shredding must remove from the residual, for the reported drift to
        say that it pays.
    dry_run
        Only report the drift, for which all rows are read; commit nothing.
    rewrite_all
        Rewrite every file, such as after a change of the sort order.
    threads
        Number of new files that are written at the same time (None: one per CPU); each is in memory as a whole.
    progress
        Called with the step, the finished tasks and the number of tasks.
    engine
        Runs the tasks (default: threads of this process).
    **options
        Options of `VariantWriter`.

    Returns
    -------
    OptimizeResult

    Raises
    ------
    IcebergError
        ``"conflict"`` if another commit removed one of the files or deleted rows of it (appends do not matter).

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.iceberg.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.iceberg.append(folder, {"v": pv.parse_json(["2"])})
    ...     result = pv.iceberg.optimize(folder)
    ...     result.files_removed, result.files_added
    (2, 1)
    """
    current = snapshot(
        table, catalog=catalog, branch=None if branch == MAIN else branch, storage_options=storage_options
    )
    check_writable(current.metadata)
    files_plan = plan_write(current, file_bytes=file_bytes, options=options)
    write = with_lineage(replace(files_plan, shredding=schemas_by_column(schema, files_plan.schema), rules=Rules()))
    every_file = reshred or schema is not None or policy is not None or rewrite_all
    files = plan_files(current).files
    change = IcebergChangePlan(current.for_tasks(), write, uses_vectors=False)
    runner = engine_or_threads(engine, threads, progress)
    drift = None
    if (reshred or dry_run) and schema is None:
        times = {number: info.timestamp_ms for number, info in current.metadata.snapshots.items()}
        drift = _drift(runner, partial(_content, change, times), files, policy, min_saving)
    packs = [] if dry_run else _packs(current, files, write.file_bytes, every_file=every_file)
    if not packs:
        return OptimizeResult(current.snapshot_id, drift=drift)
    work = partial(_rewrite, change, reshred or policy is not None, policy)
    added = [file for done in runner.run("optimize", work, packs) for file in done]
    removed = [file for pack in packs for file in pack]
    done = commit_snapshot(
        current,
        SnapshotChange(
            "replace",
            added=tuple(file.file for file in added if file.file.record_count),
            removed=tuple(file.entry for file in removed),
            touched=tuple(file.entry for file in removed),
        ),
        [file.path for file in added],
    )
    return OptimizeResult(
        done.snapshot_id, len(removed), len(added), sum(f.size for f in removed), sum(f.size for f in added), drift
    )


def _drift(
    engine: Engine,
    work: Callable[[int, int, TableFile], ShreddedContent],
    files: Sequence[TableFile],
    policy: Any,
    min_saving: float,
) -> DriftReport | None:
    """Return how all rows have drifted from the shredding schema of most rows; None for a table without rows."""
    if not files:
        return None
    content = engine.reduce("profile", work, files, ShreddedContent.merge)
    return largest_drift(content.reports(policy, min_saving))


def _content(
    change: IcebergChangePlan, times: Mapping[int, int], task: int, attempt: int, file: TableFile
) -> ShreddedContent:
    """Return the profiles and the shredding schemas of a file (the work of a task); `times` are those of snapshots."""
    rows = change.read_rows(file, None)
    schemas = {name: schema.to_json() for name, schema in (change.like_file(rows).shredding or {}).items()}
    content = ShreddedContent()
    content.add_file(schemas, len(rows), times.get(file.entry.snapshot_id or 0))
    plain = change.unshredded(rows)
    for place in change.current.schema.variant_places():
        array = VariantArray.from_storage(one_chunk(column_at(plain, place)))
        content.add_profile(".".join(place), Profile.of_array(array))
    return content


def drop_shredding(
    table: TableLike,
    *,
    file_bytes: int | None = None,
    branch: str = MAIN,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    **options: Any,
) -> OptimizeResult:
    """Rewrite all files with unshredded Variants, in one commit that changes no row.

    Files that are appended later are shredded again, unless their schema says otherwise.

    Parameters
    ----------
    table, file_bytes, branch, catalog, storage_options, threads, progress, **options
        As for `optimize`.

    Returns
    -------
    OptimizeResult

    Raises
    ------
    IcebergError
        As `optimize`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.iceberg.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     pv.iceberg.drop_shredding(folder).files_added
    1
    """
    current = snapshot(
        table, catalog=catalog, branch=None if branch == MAIN else branch, storage_options=storage_options
    )
    schema = {".".join(place): ShreddingSchema.variant() for place in current.schema.variant_places()}
    return optimize(
        current, file_bytes=file_bytes, schema=schema, branch=branch, threads=threads, progress=progress, **options
    )


def _packs(
    current: Snapshot, files: Sequence[TableFile], file_bytes: int, *, every_file: bool
) -> list[list[TableFile]]:
    """Return the files that are rewritten together: of one partition, about as large as one new file."""
    spec_id = current.metadata.spec.id
    is_former = [file.file.spec_id != spec_id for file in files]
    # Files of former specs are divided again, so that one pack holds files of several partitions.
    keys = [None if former else partition_key(file.file) for file, former in zip(files, is_former, strict=True)]
    must_rewrite = [every_file or former or bool(file.deletes) for file, former in zip(files, is_former, strict=True)]
    sizes = [file.size for file in files]
    packs = pack_files(list(zip(keys, sizes, strict=True)), file_bytes, must_rewrite)
    return [[files[number] for number in pack] for pack in packs]


def _rewrite(
    change: IcebergChangePlan, infers: bool, policy: Any, task: int, attempt: int, pack: list[TableFile]
) -> list[TableFile]:
    """Write the rows of some files to new ones (the work of a task)."""
    parts = [change.read_rows(file, None) for file in pack]
    write = change.write
    if infers:
        rows = pa.concat_tables([change.unshredded(part) for part in parts], promote_options="permissive")
        schemas = {}
        for place in change.current.schema.variant_places():
            array = VariantArray.from_storage(one_chunk(column_at(rows, place)))
            schemas[".".join(place)] = infer_shredding_schema(array, "auto" if policy is None else policy)
        write = replace(write, shredding=schemas | dict(write.shredding or {}))
        parts = [rows]
    elif not write.shredding and parts:
        write = replace(write, shredding=change.like_file(parts[0]).shredding)
    return write.write_files(iter(part for part in parts if len(part)))
