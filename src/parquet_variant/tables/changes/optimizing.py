"""Replacing files without changing rows, over any table format: compaction, re-shredding, and annotation.

Owns which files are rewritten together, the schema of the new files, and the tasks. Leaves the judgement of the old
schema to `inference.infer`, footers to `files.parquet.operations`, and the commit to the formats.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError, strings_of
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.operations.annotate import FooterChange, Paths
from parquet_variant.files.parquet.operations.rewrite import OptimizeResult, pack_files
from parquet_variant.inference.infer import ShreddedRows, find_drift_of_files
from parquet_variant.inference.profile import Profile
from parquet_variant.io.filesystems import read_errors, write_errors
from parquet_variant.io.parallel import Engine, ThreadEngine
from parquet_variant.layouts.layout import find_layout
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.tables.changes.change_plan import ChangeableTable, ChangePlan, FileChange, TableChange
from parquet_variant.tables.columns import shredding_schemas
from parquet_variant.tables.commits import planned_again
from parquet_variant.tables.row_input import SchemaOption, schemas_by_column
from parquet_variant.tables.schema import Place, reachable_variants
from parquet_variant.tables.write_plan import Rules

# The values of a Variant column in some files.
_Content: TypeAlias = tuple[Profile, list[ShreddedRows]]


def optimize(
    table: ChangeableTable[Any],
    *,
    file_bytes: int | None = None,
    reshred: bool = False,
    schema: SchemaOption = None,
    policy: Any = None,
    min_saving: float = 0.02,
    dry_run: bool = False,
    rewrite_all: bool = False,
    engine: Engine | None = None,
    **options: Any,
) -> OptimizeResult:
    """Compact small files and files with deleted rows, in one commit that changes no row; see `Table.optimize`.

    On a conflict, it is planned again on the newest version.
    """
    workers = engine or ThreadEngine(1)

    def run(table: ChangeableTable[Any]) -> OptimizeResult:
        plan: Any = table.plan(options)
        files, layouts = table.to_files(table.files), table.file_layouts()
        write = replace(plan.write, rules=Rules())  # Copied rows were checked when they were written.
        if file_bytes is not None:
            write = replace(write, file_bytes=file_bytes)
        infers = reshred or (policy is not None and table.keeps_schema)
        rewrites_all, drift = rewrite_all or infers or schema is not None, None
        schemas = schemas_by_column(schema, table.schema)
        if files and not schemas and (infers or dry_run if table.keeps_schema else write.shred):
            parts = [(file, layout.millis) for file, layout in zip(files, layouts, strict=True)]
            contents = workers.reduce("profile", partial(_content, plan), parts, _merged)
            reports = {
                name: find_drift_of_files(rows, profile, policy, min_saving)
                for name, (profile, rows) in contents.items()
            }
            schemas = {name: report.to_shred(old, reshred=infers) for name, (report, old) in reports.items()}
            drift = max((report for report, _ in reports.values()), key=lambda report: report.saved_share, default=None)
            rewrites_all = rewrites_all or any(report.pays for report, _ in reports.values())
        keys = [(layout.partition, layout.size) for layout in layouts]
        must_rewrite = [rewrites_all or layout.must_rewrite for layout in layouts]
        packs = [] if dry_run else pack_files(keys, write.file_bytes, must_rewrite)
        if not packs and not table.changes_definition:
            return OptimizeResult(version=table.version, drift=drift)
        work = partial(_rewrite_pack, replace(plan, write=replace(write, shredding=schemas)))
        with table.writing():
            results = workers.run("optimize", work, [[files[number] for number in pack] for pack in packs])
        added = [file for result in results for file in result]
        is_chosen = np.zeros(len(files), dtype=bool)
        is_chosen[[number for pack in packs for number in pack]] = True
        change: TableChange[Any] = TableChange(
            table.filtered(table.files, is_chosen),
            [FileChange(files[number], is_changed=True) for pack in packs for number in pack],
            None,
            added=added,
            parameters={"reshred": bool(infers)},
            changes_rows=False,
        )
        return OptimizeResult(
            version=table.commit("OPTIMIZE", change),
            files_removed=len(change.files),
            files_added=len(added),
            bytes_removed=sum(layouts[number].size for number in np.flatnonzero(is_chosen)),
            bytes_added=sum(file.size for file in added),
            drift=drift,
        )

    return planned_again(run, table, lambda current: current.reload(), table.uri)


def annotate(
    table: ChangeableTable[Any], columns: Collection[str] | None = None, *, engine: Engine | None = None
) -> tuple[str, ...]:
    """Copy all data files with another footer, in one commit that changes no row; see `Table.annotate`.

    On a conflict, it is planned again on the newest version.
    """
    workers = engine or ThreadEngine()

    def run(table: ChangeableTable[Any]) -> tuple[str, ...]:
        plan: Any = table.plan({})
        places = {".".join(place): place for place in reachable_variants(table.schema)}
        names = list(places if columns is None else strings_of("columns", columns))
        if unknown := [name for name in names if name not in places]:
            problem = f"{unknown[0]} is not a Variant column: choose from {', '.join(places) or 'none'}"
            raise TableError(problem, reason="no-such-column", file=table.uri)
        selected = None if columns is not None and not names else [places[name] for name in names]
        with table.writing():
            changes = workers.run("annotate", partial(annotate_data_file, plan, selected), table.to_files(table.files))
        change: TableChange[Any] = TableChange(table.files, changes, None, changes_rows=False)
        if change.changed:
            table.commit("ANNOTATE", change)
        return tuple(sorted(names))

    return planned_again(run, table, lambda current: current.reload(), table.uri)


def annotate_data_file(
    plan: ChangePlan[Any], places: Sequence[Place] | None, task: int, attempt: int, file: Any
) -> FileChange[Any]:
    """Write a copy of a file with annotations at `places`, and those inside of lists; None removes all."""
    storage, path, name = plan.current.place(file)
    with plan.scan.file_columns.opened(plan.current, file) as (columns, _):
        names = {columns.variant_name(place) for place in places or ()}

    def is_chosen(node: SchemaNode) -> bool:
        is_kept = node.annotated and node.max_repetition > 0
        return is_kept or (node.dotted in names and find_layout(node) in ("unshredded", "final"))

    def choose(root: SchemaNode) -> Paths:
        return () if places is None else {node.path for node in root.walk() if is_chosen(node)}

    with read_errors(name), storage.open(path) as source:
        change = FooterChange.plan(source, name, choose)
        if change.before == change.after:
            return FileChange(file)
        new = plan.write.new_path(plan.partition(file))
        with plan.storage.create(new) as target, write_errors(target), target.open("wb") as stream:
            size = change.copy(source, stream)
    return FileChange(file, True, plan.copied(file, new, size))


def _merged(left: dict[str, _Content], right: dict[str, _Content]) -> dict[str, _Content]:
    return {name: (profile.merge(right[name][0]), rows + right[name][1]) for name, (profile, rows) in left.items()}


def _content(plan: ChangePlan[Any], task: int, attempt: int, part: tuple[Any, int | None]) -> dict[str, _Content]:
    """Return the values of each Variant column of a file, by its dotted name (the work of a task)."""
    file, millis = part
    rows = plan.read_rows(file, None)
    schemas, plain = shredding_schemas(rows.schema, plan.schema), plan.unshredded(rows)
    time = None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
    contents = {}
    for place in reachable_variants(plan.schema):
        name = ".".join(place)
        array = VariantArray(nested_array(plain, place))
        schema = schemas.get(name, ShreddingSchema.variant())
        contents[name] = Profile.of_array(array), [(schema, len(rows), time)]
    return contents


def _rewrite_pack(plan: ChangePlan[Any], task: int, attempt: int, files: list[Any]) -> list[Any]:
    """Write the rows of some files to new ones (the work of a task)."""
    parts = [rows for file in files if len(rows := plan.read_rows(file, None))]
    write = plan.write
    if write.shred and not write.shredding and parts:
        write = plan.like_file(parts[0])
    else:
        parts = [plan.unshredded(rows) for rows in parts]
    return write.write_files(iter(parts), data_change=False)
