"""What a name of a query can stand for: files, Delta tables, Vortex files, scans, Arrow data; one class for all.

Owns telling them apart, the columns that each has, and asking each for typed columns. Leaves the reading to the rooms
that own the formats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.array.capsules import is_named, named_variants
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.interop.table_of import table_of
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import And, Compare, Constant, IsNull, Like, Not, Or, Predicate, bind, joined
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.query.sql_expression import NeededColumn, TableColumns
from parquet_variant.sql_query.batches import ArrowScan, Batches, FileRows, ScanOptions, side_by_side
from parquet_variant.sql_query.kinds import Kind, is_variant, only_variants
from parquet_variant.sql_query.paths import is_delta, is_json, is_vortex, refuse_versions

if TYPE_CHECKING:
    from parquet_variant.delta.log.snapshot import Snapshot
    from parquet_variant.parquet.format.files import ParquetSource


Plan = Callable[[Mapping[str, NeededColumn], Predicate | None, ScanOptions], Batches]


@dataclass(frozen=True)
class BoundTable:
    """A table that a query names."""

    name: str  # What messages call it.
    columns: TableColumns  # Its columns.
    order: tuple[str, ...]  # The names of all of them, in the table's order.
    scan: Plan  # Plans reading some columns, by the names that they are to have, with a filter over those names.
    skips: bool = True  # Whether a filter is of any use to it.
    files: Sequence[str] = ()  # The files that a scan opens by their names, which others may replace.
    path: Any = field(default=None, kw_only=True)  # Where it is, if it was given by its path.
    # Which version of a Delta table was asked for.
    version: int | None = field(default=None, kw_only=True)
    timestamp: Any = field(default=None, kw_only=True)
    # The Parquet files that hold its rows; empty for other formats and rows in memory.
    parquet_files: Callable[[], Sequence[ParquetSource]] = field(default=tuple, kw_only=True)
    # Columns that are paths into others.
    derived: Mapping[str, NeededColumn] = field(default_factory=dict, kw_only=True)

    def needs(self, name: str, path: VariantPath | None = None, kind: pa.DataType | None = None) -> NeededColumn:
        """What is read for a column, or for a path into it."""
        derived = self.derived.get(name)
        if derived is None:
            if is_variant(self.columns.ordinary.get(name)):
                # What the engine gives back is told by its type alone.
                raise VariantError(
                    f"{name} of {self.name} has the fields of a Variant, and nothing says that it is one: name other "
                    "columns, or give it the extension type arrow.parquet.variant",
                    reason="not-a-variant",
                )
            return NeededColumn(name, path, kind)
        if path is None or derived.path is None:
            return derived
        return NeededColumn(derived.column, VariantPath((*derived.path.segments, *path.segments)), kind)

    def kind(self, name: str) -> Kind:
        """The Variants in a column."""
        return VARIANT_STORAGE if name in self.columns.variants else only_variants(self.columns.ordinary.get(name))

    def with_columns(self, columns: Mapping[str, Any], variant: str | None = None) -> BoundTable:
        """The table with further columns, given as `parquet.scan` takes them.

        `columns`: by name: ``("$.path", "type")``, ``"$.path:type"``, or the name of a column.
        `variant`: the Variant column that paths go into, if there are several.
        """
        derived = dict(self.derived)
        variants, ordinary = list(self.columns.variants), dict(self.columns.ordinary)
        for each in read_selection(columns):
            if each.path is None:
                if each.column is None or each.column not in self.order:
                    raise VariantFileError(
                        f"no column {each.column}: choose from {', '.join(self.order)}", reason="no-such-column"
                    )
                derived[each.name] = self.needs(each.column)
                kind = ordinary.get(each.column)
            else:
                if variant is None and len(self.columns.variants) != 1:
                    raise VariantFileError(
                        f"{self.name} has {len(self.columns.variants)} Variant columns: name the one of {each.path}",
                        reason="several-variant-columns",
                    )
                derived[each.name] = NeededColumn(variant or self.columns.variants[0], each.path, each.type)
                kind = each.output
            if kind is None:
                variants.append(each.name)
            else:
                ordinary[each.name] = kind
        order = tuple(dict.fromkeys((*self.order, *derived)))
        tabled = TableColumns(variants, ordinary, self.columns.nested)
        return replace(self, columns=tabled, order=order, derived=derived)


def bind_table(source: Any, name: str, *, version: int | None = None, timestamp: Any = None) -> BoundTable:
    """The table that a value stands for.

    `source`: a path, glob, URI or list of them; a Delta table's path or `Snapshot`; Vortex files; a planned scan; a
      `VariantArray` (the column ``v`` of a table); a pyarrow table, or anything that gives an Arrow stream.
    `name`: what messages call it.
    `version` and `timestamp`: which version of a Delta table.
    Raises `VariantError` if it is none of these, is not there, or has no versions.
    """
    if isinstance(source, BoundTable):
        return source
    if isinstance(source, (str, os.PathLike)) or (
        isinstance(source, (list, tuple)) and source and all(isinstance(each, (str, os.PathLike)) for each in source)
    ):
        table = _of_path(source, name, version, timestamp)
        return replace(table, path=source, version=version, timestamp=timestamp)
    if type(source).__name__ == "Snapshot":
        return _delta_table(source, name)
    if hasattr(source, "batches") and (hasattr(source, "selection") or hasattr(source, "scans")):
        return _scanned_table(source, name)
    if isinstance(source, (VariantArray, Mapping)) or hasattr(source, "__arrow_c_stream__"):
        return _arrow_table(table_of(source), name)
    raise VariantError(
        f"{name} is a {type(source).__name__}: give a path, a scan, a VariantArray or Arrow data", reason="not-a-table"
    )


def _of_path(source: Any, name: str, version: int | None, timestamp: Any) -> BoundTable:
    single = source if isinstance(source, (str, os.PathLike)) else None
    if single is not None and is_delta(single):
        from parquet_variant.delta import snapshot

        return _delta_table(snapshot(single, version=version, timestamp=timestamp), name)
    refuse_versions(source, version, timestamp)
    if single is not None and is_vortex(single):
        return _vortex_table(os.fspath(single), name)
    if is_json(source):
        from parquet_variant.ingestion.ingest import read_json

        return bind_table(read_json(source), name)
    return _parquet_table(source, name)


def _parquet_table(source: Any, name: str) -> BoundTable:
    from parquet_variant.parquet.format.columns import find_variants
    from parquet_variant.parquet.format.files import locate, open_file
    from parquet_variant.parquet.scanning.scan import with_types

    sources = tuple(locate(source))
    with open_file(sources[0]) as file:
        found = [variant for variant in find_variants(file.schema) if not variant.repeated]
        nested = {variant.name: tuple(variant.path) for variant in found if len(variant.path) > 1}
        variants = [variant.name for variant in found]
        order = tuple(dict.fromkeys([*(node.name for node in file.schema.children), *dict(sources[0].partition)]))
    others = tuple(Selected(each, None, column=each) for each in order if each not in variants)
    ordinary = {each.name: each.type for each in with_types(sources[0], others) if each.type is not None}
    scan = partial(_scan_parquet, sources, ordinary)
    columns = TableColumns(variants, ordinary, nested)
    names = [each.path for each in sources]
    return BoundTable(name, columns, order, scan, files=names, parquet_files=lambda: sources)


def _scan_parquet(
    sources: tuple[ParquetSource, ...],
    types: Mapping[str, pa.DataType],
    needed: Mapping[str, NeededColumn],
    predicate: Predicate | None,
    options: ScanOptions,
) -> Batches:
    from parquet_variant.parquet.scanning.bounds import BoundsScan
    from parquet_variant.parquet.scanning.scan import Scan

    def plan(column: str | None, group: Mapping[str, NeededColumn], predicate: Predicate | None) -> Batches:
        named = {key: replace(each.select, name=key) for key, each in group.items()}
        selection = tuple(
            each if each.column is None else replace(each, type=types[each.column]) for each in named.values()
        )
        bound = None if predicate is None else bind(predicate, {each.name: each.output for each in selection}, zone)
        scan = Scan(
            sources, selection, predicate=bound, column=column, errors=options.errors, zone=zone,
            threads=options.threads, coarse=True,
        )  # fmt: skip
        return replace(scan, dictionaries=scan.texts_with_dictionary()) if options.dictionaries else scan

    zone = options.zone
    planned = side_by_side(needed, predicate, plan) if needed else FileRows(sources)
    if options.only_bounds and options.errors == "null" and isinstance(planned, Scan):
        return BoundsScan(planned)
    return planned


def _delta_table(current: Snapshot, name: str) -> BoundTable:
    from parquet_variant.delta import scan
    from parquet_variant.tables.expressions import columns_of_table

    columns, order = columns_of_table(current.schema), tuple(each.name for each in current.schema.fields)
    scan_table = partial(_scan_paths, "Delta tables", partial(scan, current), columns)
    return BoundTable(name, columns, order, scan_table, parquet_files=partial(_delta_files, current))


def _delta_files(current: Snapshot) -> tuple[ParquetSource, ...]:
    """Return the data files of a snapshot; none if its columns have other names in the files."""
    from parquet_variant.delta.data.paths import relative_path
    from parquet_variant.parquet.format.files import ParquetSource

    if current.column_mapping != "none":
        return ()
    sources = []
    for row in current.files.select(["path", "size"]).to_pylist():
        filesystem, path = current.storage.filesystem(relative_path(current.storage, row["path"]))
        sources.append(ParquetSource(path, filesystem, row["size"]))
    return tuple(sources)


def _vortex_table(path: str, name: str) -> BoundTable:
    from parquet_variant.vortex import scan_files
    from parquet_variant.vortex.files.library import open_file
    from parquet_variant.vortex.files.paths import vortex_files

    file = open_file(vortex_files(path)[0])
    ordinary = {each.name: each.type for each in file.schema if each.name not in file.layouts}
    columns = TableColumns(list(file.layouts), ordinary)
    scan = partial(_scan_paths, "Vortex files", partial(scan_files, path), columns)
    return BoundTable(name, columns, tuple(file.schema.names), scan)


def _scan_paths(
    formats: str,
    scan: Callable[..., Batches],
    columns: TableColumns,
    needed: Mapping[str, NeededColumn],
    predicate: Predicate | None,
    options: ScanOptions,
) -> Batches:
    """A scan of a format whose public ``scan`` takes paths and types."""
    if options.errors == "raise":
        raise VariantFileError(f"strict casts are for Parquet files, not for {formats}", reason="bad-option")

    def plan(column: str | None, group: Mapping[str, NeededColumn], predicate: Predicate | None) -> Batches:
        select = {key: each.select for key, each in group.items()}
        return scan(select, predicate, column=column, zone=options.zone, threads=options.threads)

    return side_by_side(needed or _any_row(columns), predicate, plan)


def _any_row(columns: TableColumns) -> dict[str, NeededColumn]:
    """Some column, where a query asks for none but still for rows; the cheapest there is."""
    fixed = [key for key, kind in columns.ordinary.items() if pa.types.is_primitive(kind)]
    for key in (*fixed, *columns.ordinary):
        return {key: NeededColumn(key)}
    return {"": NeededColumn(columns.variants[0], VariantPath(("_",)), pa.bool_())}


# ---- scans that are planned already


def _scanned_table(plan: Any, name: str) -> BoundTable:
    from parquet_variant.parquet.writing.nested import is_tagged

    variants = [each.name for each in plan.schema if is_tagged(each)]
    ordinary = {each.name: each.type for each in plan.schema if not is_tagged(each)}
    return BoundTable(name, TableColumns(variants, ordinary), tuple(plan.schema.names), partial(_scan_again, plan))


def _scan_again(
    plan: Any, needed: Mapping[str, NeededColumn], predicate: Predicate | None, options: ScanOptions
) -> Any:
    """The scan with other output columns: paths go on where its own end; its filter stays."""
    if hasattr(plan, "scans"):
        return replace(plan, scans=tuple(_scan_again(each, needed, predicate, options) for each in plan.scans))
    first = plan.selection[0].name
    by_name = {each.name: each for each in plan.selection}
    outputs = tuple(
        _further(key, by_name[each.column], each) for key, each in (needed or {first: NeededColumn(first)}).items()
    )
    # The scan's own columns stay for its filter, under names that no output has.
    before = {each.name: f"\x00{number}" for number, each in enumerate((*plan.selection, *plan.hidden))}
    kept = tuple(replace(each, name=before[each.name]) for each in (*plan.selection, *plan.hidden))
    own = None if plan.predicate is None else _renamed(plan.predicate, before)
    asked = None if predicate is None else bind(predicate, {each.name: each.output for each in outputs}, plan.zone)
    both = [each for each in (own, asked) if each is not None]
    whole = joined(And, both) if both else None
    return replace(plan, selection=outputs, hidden=kept if own is not None else (), predicate=whole)


def _further(key: str, selected: Selected, needed: NeededColumn) -> Selected:
    if needed.path is None or selected.path is None:
        return replace(selected, name=key)
    return Selected(key, VariantPath((*selected.path.segments, *needed.path.segments)), needed.type)


def _renamed(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    if isinstance(predicate, (And, Or)):
        return type(predicate)(tuple(_renamed(each, names) for each in predicate.parts))
    if isinstance(predicate, Not):
        return Not(_renamed(predicate.part, names))
    assert isinstance(predicate, (Compare, Like, IsNull, Constant))
    return replace(predicate, column=names[predicate.column])


# ---- Arrow data


def _arrow_table(table: pa.Table, name: str) -> BoundTable:
    def scan(needed: Mapping[str, NeededColumn], _: Predicate | None, options: ScanOptions) -> Batches:
        return ArrowScan(table, dict(needed), options)

    variants = named_variants(each for each in table.schema if is_named(each) or _has_metadata(each.type))
    ordinary = {each.name: each.type for each in table.schema if each.name not in variants}
    return BoundTable(name, TableColumns(variants, ordinary), tuple(table.column_names), scan, skips=False)


def _has_metadata(kind: pa.DataType) -> bool:
    """Whether a type has what a Variant cannot be without, but in an old draft, which only files have."""
    return pa.types.is_struct(kind) and kind.get_field_index("metadata") >= 0
