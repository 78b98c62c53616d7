"""Rewriting files without changing rows, over any table format: compaction and re-shredding.

Owns which files are rewritten together, the schema of the new files, and the tasks. Leaves the judgement of the old
schema to `inference.drift`, and the commit to the formats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.operations.optimize import pack_files
from parquet_variant.files.parquet.report_text import rewritten
from parquet_variant.inference.drift import DriftReport, SchemaOrigin, find_drift
from parquet_variant.inference.profile import Profile
from parquet_variant.io.engine import Engine
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.tables.changes.change_plan import ChangeableTable, ChangePlan, FileChange, FileLayout, TableChange
from parquet_variant.tables.columns import shredding_schemas
from parquet_variant.tables.commits import planned_again
from parquet_variant.tables.file_metrics import column_at
from parquet_variant.tables.row_input import SchemaOption, schemas_by_column
from parquet_variant.tables.rules import Rules
from parquet_variant.tables.schema import reachable_variants


@dataclass(slots=True)
class ShreddedContent:
    """The content of some files of a table, by dotted name of the Variant column.

    Parameters
    ----------
    profiles
        The profiles of the values.
    rows
        Number of rows by schema, as JSON.
    oldest
        The time of the oldest file by schema, in milliseconds since 1970.
    """

    profiles: dict[str, Profile] = field(default_factory=dict)
    rows: dict[str, Counter[str]] = field(default_factory=dict)
    oldest: dict[str, dict[str, int]] = field(default_factory=dict)

    def add_file(self, schemas: Mapping[str, str], rows: int, millis: int | None) -> None:
        """Add a file: its schemas as JSON by column, its number of rows, and its time."""
        for column, text in schemas.items():
            self.rows.setdefault(column, Counter())[text] += rows
            if millis is not None:
                times = self.oldest.setdefault(column, {})
                times[text] = min(times.get(text, millis), millis)

    def add_profile(self, column: str, profile: Profile) -> None:
        """Add the profile of values of a column."""
        self.profiles[column] = self.profiles.get(column, Profile()).merge(profile)

    def merge(self, other: ShreddedContent) -> ShreddedContent:
        """Return the content of both sets of files."""
        merged = ShreddedContent(dict(self.profiles), {name: Counter(rows) for name, rows in self.rows.items()})
        for column, profile in other.profiles.items():
            merged.add_profile(column, profile)
        for column, rows in other.rows.items():
            merged.rows.setdefault(column, Counter()).update(rows)
        for times in (self.oldest, other.oldest):
            for column, by_schema in times.items():
                oldest = merged.oldest.setdefault(column, {})
                oldest |= {text: min(oldest.get(text, millis), millis) for text, millis in by_schema.items()}
        return merged

    def reports(self, policy: Any, min_saving: float) -> dict[str, tuple[DriftReport, ShreddingSchema]]:
        """Return, for each column, how its values have drifted from the schema of most rows, and this schema."""
        reports = {}
        for column, profile in self.profiles.items():
            rows = self.rows[column]
            text = max(rows, key=lambda schema: (rows[schema], schema))
            millis = self.oldest.get(column, {}).get(text)
            since = None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
            schema = ShreddingSchema.from_json(text)
            report = find_drift(schema, profile, policy, min_saving=min_saving)
            reports[column] = replace(report, origin=SchemaOrigin(rows[text], rows.total(), since)), schema
        return reports


@dataclass(frozen=True, repr=False)
class OptimizeResult:
    """The result of a rewrite.

    Parameters
    ----------
    version
        The table's version afterwards: of Iceberg, the id of its snapshot.
    files_removed, files_added, bytes_removed, bytes_added
        Numbers of files and bytes; all are zero if there was nothing to do. Removed files remain in storage until a
        vacuum.
    drift
        How the data has drifted from the shredding schema; for several Variant columns, the report of the column where
        a change saves most. None if this was not measured.
    """

    version: int | None
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    drift: DriftReport | None = None

    def __repr__(self) -> str:
        drift = "" if self.drift is None else f"; {self.drift!r}"
        return f"<OptimizeResult version {self.version}, {rewritten(self)}{drift}>"


@dataclass(frozen=True)
class OptimizeRequest:
    """The arguments of `optimize`, whose documentation explains them.

    `measures`: whether the drift is measured; `rewrites_all`: whether every file is rewritten.
    """

    file_bytes: int | None = None
    reshred: bool = False
    measures: bool = False
    rewrites_all: bool = False
    schema: SchemaOption = None
    policy: Any = None
    min_saving: float = 0.02
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


def run_optimize(table: ChangeableTable[Any], request: OptimizeRequest, engine: Engine) -> OptimizeResult:
    """Rewrite small files and those with deleted rows; on a conflict, plan again on the newest version."""
    return planned_again(partial(_optimize, request, engine), table, lambda current: current.reload(), table.uri)


def _optimize(request: OptimizeRequest, engine: Engine, table: ChangeableTable[Any]) -> OptimizeResult:
    files = table.to_files(table.files)
    layouts = table.file_layouts()
    plan = table.plan(request.options)
    write = replace(plan.write, rules=Rules())  # Copied rows were checked when they were written.
    if request.file_bytes is not None:
        write = replace(write, file_bytes=request.file_bytes)
    schemas = schemas_by_column(request.schema, table.schema)
    rewrites_all, drift = request.rewrites_all, None
    if request.measures and files:
        work = partial(_content, plan)
        parts = [(file, layout.millis) for file, layout in zip(files, layouts, strict=True)]
        reports = engine.reduce("profile", work, parts, ShreddedContent.merge).reports(
            request.policy, request.min_saving
        )
        schemas = {name: report.to_shred(old, reshred=request.reshred) for name, (report, old) in reports.items()}
        drift = max((report for report, _ in reports.values()), key=lambda report: report.saved_share, default=None)
        rewrites_all = rewrites_all or any(report.pays for report, _ in reports.values())
    packs = [] if request.dry_run else file_packs(layouts, write.file_bytes, rewrites_all=rewrites_all)
    if not packs:
        return OptimizeResult(table.version, drift=drift)
    plan = plan.with_write(replace(write, shredding=schemas))
    members = [[files[number] for number in pack] for pack in packs]
    added = [file for part in engine.run("optimize", partial(rewrite_pack, plan), members) for file in part]
    chosen = np.zeros(len(files), dtype=bool)
    chosen[[number for pack in packs for number in pack]] = True
    removed = [file for pack in members for file in pack]
    change: TableChange[Any] = TableChange(
        table.filtered(table.files, chosen),
        [FileChange(file, is_changed=True) for file in removed],
        None,
        added=added,
        parameters={"reshred": bool(request.reshred)},
        changes_rows=False,
    )
    sizes = sum(layout.size for layout, is_chosen in zip(layouts, chosen, strict=True) if is_chosen)
    return OptimizeResult(
        table.commit("OPTIMIZE", change),
        files_removed=len(removed),
        files_added=len(added),
        bytes_removed=sizes,
        bytes_added=sum(file.size for file in added),
        drift=drift,
    )


def file_packs(layouts: Sequence[FileLayout], file_bytes: int, *, rewrites_all: bool) -> list[list[int]]:
    """Return the numbers of files to rewrite, in packs of one partition that together make about one new file."""
    keys = [(layout.partition, layout.size) for layout in layouts]
    return pack_files(keys, file_bytes, [rewrites_all or layout.must_rewrite for layout in layouts])


def _content(plan: ChangePlan[Any], task: int, attempt: int, part: tuple[Any, int | None]) -> ShreddedContent:
    """Return the profiles and the shredding schemas of a file (the work of a task)."""
    file, millis = part
    rows = plan.read_rows(file, None)
    schemas = shredding_schemas(rows.schema, plan.schema)
    content = ShreddedContent()
    places = list(reachable_variants(plan.schema))
    of_file = {name: schemas.get(name, ShreddingSchema.variant()).to_json() for name in map(".".join, places)}
    content.add_file(of_file, len(rows), millis)
    plain = plan.unshredded(rows)
    for place in places:
        array = VariantArray.from_storage(one_chunk(column_at(plain, place)))
        content.add_profile(".".join(place), Profile.of_array(array))
    return content


def rewrite_pack(plan: ChangePlan[Any], task: int, attempt: int, files: list[Any]) -> list[Any]:
    """Write the rows of some files to new ones (the work of a task)."""
    parts = [rows for file in files if len(rows := plan.read_rows(file, None))]
    write = plan.write
    if write.shred and not write.shredding and parts:
        write = plan.like_file(parts[0])
    else:
        parts = [plan.unshredded(rows) for rows in parts]
    return write.write_files(iter(parts), data_change=False)
