"""The tables that a query can name: files, Delta and Iceberg tables, Vortex files, scans and Arrow data.

Owns recognising them, their columns, and planning scans of typed columns. Leaves reading to the packages of the
formats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial, reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field, named_variants
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.ingestion.csv_tables import read_csv
from parquet_variant.ingestion.formats.csv_rows import is_csv
from parquet_variant.interop.tables import table_of
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.variant_explode import variant_explode
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import And, Not, Or, Predicate, bind, joined
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.query.sql_expression import NeededColumn, TableColumns
from parquet_variant.sql_query.batches import ArrowScan, Batches, FileRows, ScanOptions, side_by_side
from parquet_variant.sql_query.containers import field_names
from parquet_variant.sql_query.kinds import Kind, is_variant, only_variants
from parquet_variant.sql_query.values_in_memory import ValuesInMemory
from parquet_variant.tables.opening import is_delta, is_iceberg, is_json, is_vortex, refuse_versions
from parquet_variant.tables.table.scan import Scan
from parquet_variant.tables.table.table import Table
from parquet_variant.types.targets import VARIANT_STORAGE

if TYPE_CHECKING:
    from parquet_variant.files.parquet.format.files import ParquetSource
    from parquet_variant.sql_query.json_table import JsonTable
    from parquet_variant.tables.delta.log.snapshot import Snapshot
    from parquet_variant.tables.iceberg.reading.snapshot import Snapshot as IcebergSnapshot


MOST_COLUMNS = 2_000  # The most fields of an object that become columns.
_SCANNED_ROWS = 200_000  # The rows of files without shredding whose fields are listed.
_INFERRED_ROWS = 20_000  # The rows from which the paths of unshredded data are inferred.
# The most compressed bytes of columns, or of Vortex files, that are read before a query to find the type of a path.
_INSPECTED_BYTES, _INSPECTED_VORTEX_BYTES = 8 << 20, 64 << 20
Plan = Callable[[Mapping[str, NeededColumn], Predicate | None, ScanOptions], Batches]


@dataclass(frozen=True)
class Fields:
    """The fields of the objects at a path."""

    names: tuple[str, ...]
    unread: int = 0  # The number of keys of which it is not known whether these objects have them.

    def selected(self, text: str) -> tuple[tuple[str, ...], str | None]:
        """Return the fields that become columns, and a line that says which are missing.

        `text`: the objects, as a query writes them.
        """
        missing = len(self.names) - MOST_COLUMNS
        if missing > 0:
            line = f"{text} has {len(self.names):,} fields, and {missing:,} of them are not among the columns"
            return self.names[:MOST_COLUMNS], f"{line}: select {self.names[-1]} and others by name, or the whole {text}"
        line = f"up to {self.unread:,} fields that only later rows of {text} have are not among the columns"
        return self.names, f"{line}: select them by name, or the whole {text}" if self.unread else None


@dataclass(frozen=True)
class BoundTable:
    """A table that a query names."""

    name: str  # Its name in messages.
    columns: TableColumns  # Its columns.
    order: tuple[str, ...]  # The names of the columns, in the table's order.
    scan: Plan  # Plans a scan of some columns, given by output name, with a filter over those names.
    skips: bool = True  # Whether its scans can use a filter to skip data.
    files: Sequence[str] = ()  # The files that a scan opens by name, which other processes can replace.
    path: Any = field(default=None, kw_only=True)  # Its path, or the snapshot of an Iceberg table, if given as such.
    # The requested version of a Delta table.
    version: int | None = field(default=None, kw_only=True)
    timestamp: Any = field(default=None, kw_only=True)
    # The Parquet files that hold its rows; empty for other formats and rows in memory.
    parquet_files: Callable[[], Sequence[ParquetSource]] = field(default=tuple, kw_only=True)
    # Facts about its values, if they are in memory or in JSON files.
    values: ValuesInMemory | JsonTable | None = field(default=None, kw_only=True)
    # The only types of paths whose values were inspected.
    inspected: dict[tuple[str, VariantPath], pa.DataType | None] = field(default_factory=dict, kw_only=True)
    # The elements and fields of the values at paths that a query explodes.
    entries: dict[tuple[str, VariantPath], ValuesInMemory | None] = field(default_factory=dict, kw_only=True)
    # Columns that are paths into other columns.
    derived: Mapping[str, NeededColumn] = field(default_factory=dict, kw_only=True)

    def needs(self, name: str, path: VariantPath | None = None, kind: pa.DataType | None = None) -> NeededColumn:
        """Return the column of the scan for a column, or for a path into it."""
        derived = self.derived.get(name)
        if derived is None:
            if is_variant(self.columns.ordinary.get(name)):
                # The engine returns Variants as structs, so such a struct would become a Variant.
                raise VariantError(
                    f"column {name} of {self.name} has the fields of a Variant, but is not marked as one: select other "
                    "columns, or give it the extension type arrow.parquet.variant",
                    reason="not-a-variant",
                )
            return NeededColumn(name, path, kind)
        if path is None or derived.path is None:
            return derived
        return NeededColumn(derived.column, VariantPath((*derived.path.segments, *path.segments)), kind)

    def common_type(self, name: str, path: VariantPath, *, nulls: bool = True) -> pa.DataType | None:
        """Return the type of every value at a path of a Variant column; None if there is none, or it is not known.

        Footers prove it of shredded paths; otherwise values are inspected if they are few.

        `nulls`: whether values may also be Variant null, which the typed column has as NULL. Without them, values of
          files are not inspected.
        """
        from parquet_variant.files.parquet.scanning.path_facts import common_type

        place = self._stored_place(name, path)
        if place is None:
            return None
        name, path = place
        try:
            if self.values is not None:
                return self.values.common_type(name, path, nulls=nulls)
            proved = common_type(self.parquet_files(), name, path, nulls=nulls)
            return proved if proved is not None or not nulls else self._type_of_few_values(name, path)
        except VariantError:  # whoever reads the file reports it
            return None

    def type_of_entries(self, name: str, path: VariantPath, below: VariantPath) -> pa.DataType | None:
        """Return the type of every value at a path of the elements or fields of values; None if it is not known.

        `path`: the path of the arrays or objects.
        `below`: the path inside each element or field.
        """
        place = self._stored_place(name, path)
        if place is None:
            return None
        try:
            if place not in self.entries:
                values = self._few_values(*place)
                chunks = (
                    [] if values is None else [variant_explode(VariantArray(c))["value"] for c in values["v"].chunks]
                )
                arrays = [chunk for column in chunks for chunk in column.chunks]
                table = pa.table({"v": pa.chunked_array(arrays)}) if arrays else None
                self.entries[place] = None if table is None else ValuesInMemory(table)
        except VariantError:  # whoever reads the values reports it
            return None
        entries = self.entries[place]
        return None if entries is None else entries.common_type("v", below)

    def _type_of_few_values(self, name: str, path: VariantPath) -> pa.DataType | None:
        if (name, path) not in self.inspected:
            values = self._few_values(name, path)
            kind = None if values is None else ValuesInMemory(values).common_type("v", VariantPath())
            self.inspected[name, path] = kind
        return self.inspected[name, path]

    def _few_values(self, name: str, path: VariantPath) -> pa.Table | None:
        """Return the Variants at a path as the column ``v``; None if too many bytes of files would be read."""
        plan: Any = self.scan({"v": NeededColumn(name, path)}, None, ScanOptions())
        if self.values is None:
            report = plan.explain() if hasattr(plan, "explain") and not path.has_wildcard else None
            report = getattr(report, "inside", report)  # that of a table has the counts of its files inside
            read_bytes, most = getattr(report, "bytes_read", None), _INSPECTED_BYTES
            if read_bytes is None:  # Vortex knows the size of its files only
                read_bytes, most = getattr(report, "bytes", None), _INSPECTED_VORTEX_BYTES
            if read_bytes is None or read_bytes > most:
                return None
        parts = list(plan.batches())
        return pa.concat_tables(parts) if parts else None

    def leaf_of_elements(self, name: str, path: VariantPath) -> tuple[VariantPath, pa.DataType] | None:
        """Return a typed path inside the elements of the arrays at a path; None if the files do not prove there is one.

        The path is relative to the Variant column.
        """
        from parquet_variant.files.parquet.scanning.path_facts import leaf_of_elements

        place = self._stored_place(name, path)
        if place is None:
            return None
        try:
            leaf = leaf_of_elements(self.parquet_files(), *place)
        except VariantError:  # whoever reads the file reports it
            return None
        above = len(place[1].segments) - len(path.segments)
        return None if leaf is None else (VariantPath(leaf[0].segments[above:]), leaf[1])

    def _stored_place(self, name: str, path: VariantPath) -> tuple[str, VariantPath] | None:
        """Return the stored column and the path of values; None for an ordinary column."""
        derived = self.derived.get(name)
        if derived is None:
            return name, path
        if derived.path is None:
            return None
        return derived.column, VariantPath((*derived.path.segments, *path.segments))

    def keys(self, variant: str) -> frozenset[str] | None:
        """Return every key of the objects in a Variant column; None if they are unknown without reading values."""
        from parquet_variant.files.parquet.scanning.path_facts import keys_of_files

        derived = self.derived.get(variant)
        try:
            if self.values is not None:
                return self.values.keys(variant if derived is None else derived.column)
            files = self.parquet_files()
            return keys_of_files(files, variant if derived is None else derived.column) if files else None
        except VariantError:  # whoever reads the values reports it
            return None

    def schema_of(self, variant: str) -> ShreddingSchema:
        """Return the shredded paths of all files together, or those inferred from some rows if nothing is shredded."""
        return self._shredded_schema(variant) or self._inferred_schema(variant)

    def fields_at(self, variant: str, path: VariantPath = VariantPath()) -> Fields:  # noqa: B008 - immutable
        """Return the fields of the objects at a path of a Variant column: the shredded ones, then all others.

        Values of files are read for it as far as they are few; the keys that only other rows have may be missing.
        """
        shredded = self._shredded_schema(variant)
        node = None if shredded is None else shredded.get(path)
        names = [key for key, _ in node.fields] if node is not None and node.kind == "object" else []
        place = self._stored_place(variant, path)
        assert place is not None
        found, is_complete = self._other_fields(*place, is_shredded=bool(names))
        names += sorted(found - set(names), key=lambda key: (key.lower(), key != key.lower(), key))
        unread = 0 if is_complete else len((self.keys(variant) or frozenset()) - set(names))
        return Fields(tuple(names), unread)

    def _other_fields(self, name: str, path: VariantPath, *, is_shredded: bool) -> tuple[set[str], bool]:
        """Return names of fields at a path that are not shredded, and whether these are all."""
        from parquet_variant.files.parquet.scanning.path_facts import residual_objects

        groups = residual_objects(self.parquet_files(), name, path) if is_shredded else None
        if groups is not None:
            sizes = list(accumulate(size for size, _ in groups))
            read = [values for (_, values), size in zip(groups, sizes, strict=True) if size <= _INSPECTED_VORTEX_BYTES]
            return {key for values in read for key in field_names(VariantArray(values()))}, len(read) == len(groups)
        found: set[str] = set()
        rows = 0
        plan = self.scan({"v": NeededColumn(name, path)}, None, ScanOptions())
        for part in plan.batches():
            found |= {key for chunk in part["v"].chunks for key in field_names(VariantArray(chunk))}
            rows += len(part)
            if self.values is None and rows > _SCANNED_ROWS:
                return found, False
        return found, True

    def _shredded_schema(self, variant: str) -> ShreddingSchema | None:
        schemas = [
            ShreddingSchema.from_parquet(source.path, variant, filesystem=source.filesystem)
            for source in self.parquet_files()
        ]
        shredded = [schema for schema in schemas if schema.kind != "variant"]
        return reduce(ShreddingSchema.merge, shredded) if shredded else None

    def _inferred_schema(self, variant: str) -> ShreddingSchema:
        from parquet_variant.inference.policies.auto import AutoPolicy
        from parquet_variant.ops.shred_variant import infer_shredding_schema

        plan = self.scan({"v": self.needs(variant, VariantPath())}, None, ScanOptions())
        rows = next(iter(plan.batches()), None)
        values = (
            VariantArray.from_arrow(rows, "v")[:_INFERRED_ROWS] if rows is not None else VariantArray.from_pylist([])
        )
        return infer_shredding_schema(values, AutoPolicy(min_row_share=0.0, max_columns=MOST_COLUMNS))

    def kind(self, name: str) -> Kind:
        """Return the Variants in a column."""
        return VARIANT_STORAGE if name in self.columns.variants else only_variants(self.columns.ordinary.get(name))

    def with_columns(self, columns: Mapping[str, Any], variant: str | None = None) -> BoundTable:
        """Return the table with additional columns, given as for `Table.scan`.

        `columns`: by name: ``("$.path", "type")``, ``"$.path:type"``, or the name of a column.
        `variant`: the Variant column of the paths, if there are several.
        """
        derived = dict(self.derived)
        variants, ordinary = list(self.columns.variants), dict(self.columns.ordinary)
        for added in read_selection(columns):
            if added.path is None:
                if added.column is None or added.column not in self.order:
                    raise VariantFileError(
                        f"unknown column {added.column}: choose from {', '.join(self.order)}", reason="no-such-column"
                    )
                derived[added.name] = self.needs(added.column)
                kind = ordinary.get(added.column)
            else:
                if variant is None and len(self.columns.variants) != 1:
                    raise VariantFileError(
                        f"{self.name} has {len(self.columns.variants)} Variant columns: name that of {added.path}",
                        reason="several-variant-columns",
                    )
                derived[added.name] = NeededColumn(variant or self.columns.variants[0], added.path, added.type)
                kind = added.output
            if kind is None:
                variants.append(added.name)
            else:
                ordinary[added.name] = kind
        order = tuple(dict.fromkeys((*self.order, *derived)))
        tabled = TableColumns(variants, ordinary, self.columns.nested)
        return replace(self, columns=tabled, order=order, derived=derived)


def bind_table(source: Any, name: str, *, version: int | None = None, timestamp: Any = None) -> BoundTable:
    """Bind a value to the table that it is.

    `source`: a path, glob, URI or list of them; a path or `Snapshot` of a Delta or Iceberg table; Vortex files; a
      planned scan; a `VariantArray` (the column ``v`` of a table); a pyarrow table, or anything that gives an Arrow
      stream.
    `name`: its name in messages.
    `version` and `timestamp`: the version of a Delta table, or the snapshot of an Iceberg table.
    Raises `VariantError` if it is none of these, does not exist, or has no versions.
    """
    if isinstance(source, BoundTable):
        return source
    if isinstance(source, Scan):
        return _scanned_table(source.plan, name)
    if isinstance(source, Table):
        return _opened_table(source, name)
    if isinstance(source, (str, os.PathLike)) or (
        isinstance(source, (list, tuple)) and source and all(isinstance(path, (str, os.PathLike)) for path in source)
    ):
        table = _of_path(source, name, version, timestamp)
        return replace(table, path=source, version=version, timestamp=timestamp)
    if hasattr(source, "protocol") and hasattr(source, "tombstones"):  # a Delta snapshot; delta is not imported for it
        return _delta_table(source, name)
    if hasattr(source, "live_entries") and hasattr(source, "snapshot_id"):  # an Iceberg snapshot, likewise
        return replace(_iceberg_table(source, name), path=source)
    if hasattr(source, "batches") and (hasattr(source, "selection") or hasattr(source, "scans")):
        return _scanned_table(source, name)
    if isinstance(source, (VariantArray, Mapping)) or hasattr(source, "__arrow_c_stream__"):
        return _arrow_table(table_of(source), name)
    raise VariantError(
        f"the table {name} is a {type(source).__name__}: give a path, a scan, a VariantArray or Arrow data",
        reason="not-a-table",
    )


def _opened_table(table: Table, name: str) -> BoundTable:
    options = table.options
    if table.format in ("delta", "iceberg"):
        current = table.snapshot
        bound = _delta_table(current, name) if table.format == "delta" else _iceberg_table(current, name)
        path = table.source if options.catalog is None else current
        return replace(bound, path=path, version=options.version, timestamp=options.at)
    if table.format == "memory":
        return _arrow_table(table_of(table.source), name)
    if table.format == "json":
        return replace(_json_table(table.source, name, options.text), path=table.source)
    if table.format == "vortex":
        return replace(_vortex_table(os.fspath(table.source), name), path=table.source)
    return replace(_parquet_table(table.source, name, options.filesystem), path=table.source)


def _of_path(source: Any, name: str, version: int | None, timestamp: Any) -> BoundTable:
    single = source if isinstance(source, (str, os.PathLike)) else None
    if single is not None and is_delta(single):
        from parquet_variant.tables.delta.log.snapshot import snapshot

        return _delta_table(snapshot(single, version=version, timestamp=timestamp), name)
    if single is not None and is_iceberg(single):
        from parquet_variant.tables.iceberg.reading.snapshot import snapshot as iceberg_snapshot

        return _iceberg_table(iceberg_snapshot(single, snapshot_id=version, timestamp=timestamp), name)
    refuse_versions(source, version, timestamp)
    if single is not None and is_vortex(single):
        return _vortex_table(os.fspath(single), name)
    if is_csv(source):
        return _arrow_table(read_csv(source), name)
    if is_json(source):
        return _json_table(source, name)
    return _parquet_table(source, name)


def _parquet_table(source: Any, name: str, filesystem: Any = None) -> BoundTable:
    from parquet_variant.files.parquet.format.columns import find_variants
    from parquet_variant.files.parquet.format.files import locate, open_file
    from parquet_variant.files.parquet.scanning.scan import with_types

    sources = tuple(locate(source, filesystem))
    with open_file(sources[0]) as file:
        columns_found = [variant for variant in find_variants(file.schema) if not variant.repeated]
        nested = {variant.name: tuple(variant.path) for variant in columns_found if len(variant.path) > 1}
        variants = [variant.name for variant in columns_found]
        order = tuple(dict.fromkeys([*(node.name for node in file.schema.children), *dict(sources[0].partition)]))
    plain_columns = tuple(Selected(column, None, column=column) for column in order if column not in variants)
    ordinary = {column.name: column.type for column in with_types(sources[0], plain_columns) if column.type is not None}
    scan = partial(_scan_parquet, sources, ordinary)
    columns = TableColumns(variants, ordinary, nested)
    names = [source.path for source in sources]
    return BoundTable(name, columns, order, scan, files=names, parquet_files=lambda: sources)


def _scan_parquet(
    sources: tuple[ParquetSource, ...],
    types: Mapping[str, pa.DataType],
    needed: Mapping[str, NeededColumn],
    predicate: Predicate | None,
    options: ScanOptions,
) -> Batches:
    from parquet_variant.files.parquet.scanning.bounds import BoundsScan
    from parquet_variant.files.parquet.scanning.scan import Scan

    def plan(column: str | None, group: Mapping[str, NeededColumn], predicate: Predicate | None) -> Batches:
        named = {name: replace(column.select, name=name) for name, column in group.items()}
        selection = tuple(
            output if output.column is None else replace(output, type=types[output.column]) for output in named.values()
        )
        bound = (
            None if predicate is None else bind(predicate, {output.name: output.output for output in selection}, zone)
        )
        scan = Scan(
            sources, selection, predicate=bound, column=column, errors=options.errors, zone=zone,
            threads=options.threads, coarse=True,
        )  # fmt: skip
        return replace(scan, dictionaries=scan.strings_with_dictionary()) if options.dictionaries else scan

    zone = options.zone
    planned = side_by_side(needed, predicate, plan) if needed else FileRows(sources)
    if options.only_bounds and options.errors == "null" and isinstance(planned, Scan):
        return BoundsScan(planned)
    return planned


def _delta_table(current: Snapshot, name: str) -> BoundTable:
    from parquet_variant.tables.delta.reading.read import parquet_files, scan
    from parquet_variant.tables.expressions import columns_of_table

    columns, order = columns_of_table(current.schema), tuple(column.name for column in current.schema.fields)
    scan_table = partial(_scan_paths, "Delta tables", partial(scan, current), columns)
    return BoundTable(name, columns, order, scan_table, parquet_files=cache(partial(parquet_files, current)))


def _iceberg_table(current: IcebergSnapshot, name: str) -> BoundTable:
    from parquet_variant.tables.expressions import columns_of_table
    from parquet_variant.tables.iceberg.metadata.schema import shared_schema
    from parquet_variant.tables.iceberg.reading.planning import parquet_files
    from parquet_variant.tables.iceberg.reading.scan import scan

    schema = shared_schema(current.schema)
    columns, order = columns_of_table(schema), tuple(f.name for f in schema.fields)
    scan_table = partial(_scan_paths, "Iceberg tables", partial(scan, current), columns)
    return BoundTable(name, columns, order, scan_table, parquet_files=cache(partial(parquet_files, current)))


def _vortex_table(path: str, name: str) -> BoundTable:
    from parquet_variant.files.vortex.library import open_file
    from parquet_variant.files.vortex.paths import vortex_files
    from parquet_variant.files.vortex.scanner import scan_files

    file = open_file(vortex_files(path)[0])
    variants = [*file.layouts, *file.json_columns]
    ordinary = {field.name: field.type for field in file.schema if field.name not in variants}
    columns = TableColumns(variants, ordinary)
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
    """Plan a scan of a format whose public ``scan`` takes paths and types."""
    if options.errors == "raise":
        raise VariantFileError(f"strict casts are supported for Parquet files, not for {formats}", reason="bad-option")

    def plan(column: str | None, group: Mapping[str, NeededColumn], predicate: Predicate | None) -> Batches:
        select = {name: column.select for name, column in group.items()}
        return scan(select, predicate, column=column, zone=options.zone, threads=options.threads)

    return side_by_side(needed or _any_row(columns), predicate, plan)


def _any_row(columns: TableColumns) -> dict[str, NeededColumn]:
    """Return the cheapest column, for a query that needs rows but no column."""
    fixed = [name for name, kind in columns.ordinary.items() if pa.types.is_primitive(kind)]
    for name in (*fixed, *columns.ordinary):
        return {name: NeededColumn(name)}
    return {"": NeededColumn(columns.variants[0], VariantPath(("_",)), pa.bool_())}


# ---- planned scans


def _scanned_table(plan: Any, name: str) -> BoundTable:
    variants = [field.name for field in plan.schema if is_variant_field(field)]
    ordinary = {field.name: field.type for field in plan.schema if not is_variant_field(field)}
    return BoundTable(name, TableColumns(variants, ordinary), tuple(plan.schema.names), partial(_scan_again, plan))


def _scan_again(
    plan: Any, needed: Mapping[str, NeededColumn], predicate: Predicate | None, options: ScanOptions
) -> Any:
    """Return a scan with other output columns: paths are appended to its own paths, and its filter is kept."""
    if hasattr(plan, "scans"):
        return replace(plan, scans=tuple(_scan_again(scan, needed, predicate, options) for scan in plan.scans))
    first = plan.selection[0].name
    by_name = {column.name: column for column in plan.selection}
    outputs = tuple(
        _extend_path(name, by_name[column.column], column)
        for name, column in (needed or {first: NeededColumn(first)}).items()
    )
    # The filter of the scan needs its columns, which get names that no output has.
    hidden_names = {column.name: f"\x00{number}" for number, column in enumerate((*plan.selection, *plan.hidden))}
    hidden = tuple(replace(column, name=hidden_names[column.name]) for column in (*plan.selection, *plan.hidden))
    filter_of_scan = None if plan.predicate is None else _rename_columns(plan.predicate, hidden_names)
    types = {column.name: column.output for column in outputs}
    filter_of_query = None if predicate is None else bind(predicate, types, plan.zone)
    filters = [part for part in (filter_of_scan, filter_of_query) if part is not None]
    both = joined(And, filters) if filters else None
    return replace(plan, selection=outputs, hidden=hidden if filter_of_scan is not None else (), predicate=both)


def _extend_path(key: str, selected: Selected, needed: NeededColumn) -> Selected:
    if needed.path is None or selected.path is None:
        return replace(selected, name=key)
    return Selected(key, VariantPath((*selected.path.segments, *needed.path.segments)), needed.type)


def _rename_columns(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    if isinstance(predicate, (And, Or)):
        return type(predicate)(tuple(_rename_columns(part, names) for part in predicate.parts))
    if isinstance(predicate, Not):
        return Not(_rename_columns(predicate.part, names))
    assert not isinstance(predicate, Not)
    return replace(predicate, column=names[predicate.column])


# ---- JSON and Arrow data


def _json_table(source: Any, name: str, text: Mapping[str, Any] | None = None) -> BoundTable:
    from parquet_variant.ingestion.json_files import JsonFiles
    from parquet_variant.ingestion.request import TextOptions
    from parquet_variant.sql_query.json_table import COLUMN, JsonTable

    files = JsonFiles.of(source, TextOptions.of(**(text or {})))
    table = JsonTable(files)
    names = [split.file.name for split in files.splits]
    columns = TableColumns([COLUMN], {})
    return BoundTable(name, columns, (COLUMN,), table.scan, skips=False, files=names, values=table)


def _arrow_table(table: pa.Table, name: str) -> BoundTable:
    def scan(needed: Mapping[str, NeededColumn], _: Predicate | None, options: ScanOptions) -> Batches:
        return ArrowScan(table, dict(needed), options)

    variants = named_variants(field for field in table.schema if is_variant_field(field) or _has_metadata(field.type))
    ordinary = {field.name: field.type for field in table.schema if field.name not in variants}
    columns = TableColumns(variants, ordinary)
    return BoundTable(name, columns, tuple(table.column_names), scan, skips=False, values=ValuesInMemory(table))


def _has_metadata(kind: pa.DataType) -> bool:
    """Return whether a type has a field ``metadata``, as every Variant except those of an old draft of the format."""
    return pa.types.is_struct(kind) and kind.get_field_index("metadata") >= 0
