"""What a name of a query can stand for: files, Delta tables, Vortex files, scans, Arrow data; one class for all.

Owns telling them apart, the columns that each has, and asking each for typed columns. Leaves the reading to the rooms
that own the formats.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import And, Compare, Constant, IsNull, Like, Not, Or, Predicate, bind
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.query.sql_expression import NeededColumn, TableColumns
from parquet_variant.sql_query.paths import is_delta, is_json, is_vortex

__all__ = ["BoundTable", "bind_table", "variant_field"]


class Batches(Protocol):
    """What every planned scan has."""

    @property
    def schema(self) -> pa.Schema: ...

    def batches(self) -> Iterator[pa.Table]: ...


@dataclass(frozen=True)
class BoundTable:
    """A table that a query names.

    Parameters
    ----------
    name
        What messages call it.
    columns
        Its columns.
    order
        The names of all of them, in the table's order.
    path
        Where it is, if it was given by its path.
    version, timestamp
        Which version of a Delta table was asked for.
    derived
        Columns that are paths into others.
    """

    name: str
    columns: TableColumns
    order: tuple[str, ...]
    path: Any = field(default=None, kw_only=True)
    version: int | None = field(default=None, kw_only=True)
    timestamp: Any = field(default=None, kw_only=True)
    derived: Mapping[str, NeededColumn] = field(default_factory=dict, kw_only=True)

    def needs(self, name: str, path: VariantPath | None = None, kind: pa.DataType | None = None) -> NeededColumn:
        """What is read for a column, or for a path into it."""
        found = self.derived.get(name)
        if found is None:
            return NeededColumn(name, path, kind)
        if path is None or found.path is None:
            return found
        return NeededColumn(found.column, VariantPath((*found.path.segments, *path.segments)), kind)

    def with_columns(self, columns: Mapping[str, Any], variant: str | None = None) -> BoundTable:
        """The table with further columns, given as `parquet.scan` takes them.

        Parameters
        ----------
        columns
            By name: ``("$.path", "type")``, ``"$.path:type"``, or the name of a column.
        variant
            The Variant column that paths go into, if there are several.
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
        return replace(self, columns=TableColumns(variants, ordinary), order=order, derived=derived)

    def scan(
        self, needed: Mapping[str, NeededColumn], predicate: Predicate | None, options: Mapping[str, Any]
    ) -> Batches:
        """Plan reading some columns, by the names that they are to have; with a filter over those names."""
        raise NotImplementedError

    @property
    def skips(self) -> bool:
        """Whether a filter is of any use to it."""
        return True


def bind_table(given: Any, name: str, *, version: int | None = None, timestamp: Any = None) -> BoundTable:
    """The table that a value stands for.

    Parameters
    ----------
    given
        A path, glob, URI or list of them; a Delta table's path or `Snapshot`; Vortex files; a planned scan; a
        `VariantArray` (the column ``v`` of a table); a pyarrow table, or anything that gives an Arrow stream.
    name
        What messages call it.
    version, timestamp
        Which version of a Delta table.

    Raises
    ------
    VariantError
        If it is none of these, is not there, or has no versions.
    """
    if isinstance(given, BoundTable):
        return given
    if isinstance(given, VariantArray):
        return _ArrowTable.over(
            pa.table([given.storage], schema=pa.schema([variant_field("v", given.storage.type)])), name
        )
    if isinstance(given, (str, os.PathLike)) or (
        isinstance(given, (list, tuple)) and given and all(isinstance(each, (str, os.PathLike)) for each in given)
    ):
        found = _of_path(given, name, version, timestamp)
        return replace(found, path=given, version=version, timestamp=timestamp)
    if type(given).__name__ == "Snapshot":
        return _delta_table(given, name)
    if hasattr(given, "selection") and hasattr(given, "batches"):
        return _ScannedTable.over(given, name)
    if hasattr(given, "scans") and hasattr(given, "batches"):
        return _ScannedTable.over(given, name)
    if isinstance(given, pa.Table):
        return _ArrowTable.over(given, name)
    if isinstance(given, Mapping):
        return _ArrowTable.over(_from_mapping(given), name)
    if isinstance(given, pa.RecordBatch) or hasattr(given, "__arrow_c_stream__"):
        return _ArrowTable.over(pa.table(given), name)
    raise VariantError(
        f"{name} is a {type(given).__name__}: give a path, a scan, a VariantArray or Arrow data", reason="not-a-table"
    )


def _from_mapping(given: Mapping[str, Any]) -> pa.Table:
    fields, columns = [], []
    for key, value in given.items():
        array = (
            value.storage if isinstance(value, VariantArray) else pa.array(value) if isinstance(value, list) else value
        )
        fields.append(variant_field(key, array.type) if isinstance(value, VariantArray) else pa.field(key, array.type))
        columns.append(array)
    return pa.table(columns, schema=pa.schema(fields))


def variant_field(name: str, kind: pa.DataType = VARIANT_STORAGE) -> pa.Field:
    """An Arrow field that says that it is a Variant."""
    return pa.field(name, kind, metadata=EXTENSION_METADATA)


# ---- paths


def _of_path(given: Any, name: str, version: int | None, timestamp: Any) -> BoundTable:
    single = given if isinstance(given, (str, os.PathLike)) else None
    if single is not None and is_delta(single):
        from parquet_variant.delta import snapshot

        return _delta_table(snapshot(single, version=version, timestamp=timestamp), name)
    if version is not None or timestamp is not None:
        raise VariantFileError(
            f"{given} is no Delta table, so it has no versions", reason="not-a-table", file=str(given)
        )
    if single is not None and is_vortex(single):
        return _VortexTable.at(os.fspath(single), name)
    if is_json(given):
        from parquet_variant.ingest.read_json import read_json

        return bind_table(read_json(given), name)
    return _ParquetTable.at(given, name)


@dataclass(frozen=True)
class _ParquetTable(BoundTable):
    sources: tuple[Any, ...] = ()

    @classmethod
    def at(cls, given: Any, name: str) -> _ParquetTable:
        from parquet_variant.parquet.format.columns import find_variants
        from parquet_variant.parquet.format.files import locate, open_file
        from parquet_variant.parquet.scanning.scan import with_types

        sources = tuple(locate(given))
        with open_file(sources[0]) as file:
            variants = [found.name for found in find_variants(file.schema) if not found.repeated]
            order = list(dict.fromkeys([*(node.name for node in file.schema.children), *dict(sources[0].partition)]))
        others = read_selection([each for each in order if each not in variants])
        ordinary = {each.name: each.type for each in with_types(sources[0], others) if each.type is not None}
        return cls(name, TableColumns(variants, ordinary), tuple(order), sources)

    def scan(
        self, needed: Mapping[str, NeededColumn], predicate: Predicate | None, options: Mapping[str, Any]
    ) -> Batches:
        from parquet_variant.parquet.scanning.scan import Scan

        if not needed:
            return _FileRows(self.sources)
        plans = []
        groups = _by_variant(needed)
        predicate = predicate if len(groups) == 1 else None
        for column, group in groups:
            selection = tuple(self._selected(key, each) for key, each in group.items())
            bound = _bound(predicate, selection, options)
            plan = Scan(
                self.sources, selection, predicate=bound, column=column, errors=options.get("on_error", "null"),
                zone=options.get("zone", "UTC"), threads=options.get("threads"), coarse=True,
            )  # fmt: skip
            plans.append(
                replace(plan, dictionaries=plan.texts_with_dictionary()) if options.get("dictionaries") else plan
            )
        return plans[0] if len(plans) == 1 else _SideBySide(plans, tuple(needed))

    def _selected(self, key: str, each: NeededColumn) -> Selected:
        if each.path is None:
            return Selected(key, None, self.columns.ordinary[each.column], each.column)
        return Selected(key, each.path, each.type)


def _below(variants: Sequence[str], top: str) -> list[str]:
    return [each for each in variants if each.split(".")[0] == top]


def _delta_table(current: Any, name: str) -> BoundTable:
    from parquet_variant.delta.protocol.schema import arrow_type, variant_paths

    variants = [".".join(path) for path in variant_paths(current.schema) if not {"element", "key"} & set(path)]
    fields = current.schema.fields
    ordinary = {each.name: arrow_type(each.type) for each in fields if not any(True for _ in variant_paths(each.type))}
    order = [each for field in fields for each in (_below(variants, field.name) or [field.name])]
    return _DeltaTable(name, TableColumns(variants, ordinary), tuple(order), current)


@dataclass(frozen=True)
class _DeltaTable(BoundTable):
    current: Any = None

    def scan(
        self, needed: Mapping[str, NeededColumn], predicate: Predicate | None, options: Mapping[str, Any]
    ) -> Batches:
        from parquet_variant.delta import scan

        if options.get("on_error") == "raise":
            raise VariantFileError("strict casts are for Parquet files, not for Delta tables", reason="bad-option")
        groups = _by_variant(needed or _any_row(self.columns))
        predicate = predicate if len(groups) == 1 else None
        plans = [
            scan(self.current, {key: each.select for key, each in group.items()}, predicate, column=column,
                 zone=options.get("zone", "UTC"))
            for column, group in groups
        ]  # fmt: skip
        return plans[0] if len(plans) == 1 else _SideBySide(plans, tuple(needed))


@dataclass(frozen=True)
class _VortexTable(BoundTable):
    path: str = ""

    @classmethod
    def at(cls, path: str, name: str) -> _VortexTable:
        from parquet_variant.vortex.files.library import open_file
        from parquet_variant.vortex.files.paths import vortex_files

        file = open_file(vortex_files(path)[0])
        ordinary = {each.name: each.type for each in file.schema if each.name not in file.layouts}
        return cls(name, TableColumns(list(file.layouts), ordinary), tuple(file.schema.names), path)

    def scan(
        self, needed: Mapping[str, NeededColumn], predicate: Predicate | None, options: Mapping[str, Any]
    ) -> Batches:
        from parquet_variant.vortex import scan_files

        if options.get("on_error") == "raise":
            raise VariantFileError("strict casts are for Parquet files, not for Vortex files", reason="bad-option")
        groups = _by_variant(needed or _any_row(self.columns))
        predicate = predicate if len(groups) == 1 else None
        plans = [
            scan_files(self.path, {key: each.select for key, each in group.items()}, predicate, column=column,
                       zone=options.get("zone", "UTC"))
            for column, group in groups
        ]  # fmt: skip
        return plans[0] if len(plans) == 1 else _SideBySide(plans, tuple(needed))


def _any_row(columns: TableColumns) -> dict[str, NeededColumn]:
    """Some column, where a query asks for none but still for rows; the cheapest there is."""
    fixed = [key for key, kind in columns.ordinary.items() if pa.types.is_primitive(kind)]
    for key in (*fixed, *columns.ordinary):
        return {key: NeededColumn(key)}
    return {"": NeededColumn(columns.variants[0], VariantPath(("_",)), pa.bool_())}


def _by_variant(needed: Mapping[str, NeededColumn]) -> list[tuple[str | None, dict[str, NeededColumn]]]:
    """The needed columns by Variant column, since one scan reads paths of one; ordinary ones go with the first."""
    groups: dict[str, dict[str, NeededColumn]] = {}
    ordinary = {key: each for key, each in needed.items() if each.path is None}
    for key, each in needed.items():
        if each.path is not None:
            groups.setdefault(each.column, {})[key] = each
    if not groups:
        return [(None, ordinary)]
    found: list[tuple[str | None, dict[str, NeededColumn]]] = list(groups.items())
    found[0] = (found[0][0], ordinary | found[0][1])
    return found


def _bound(predicate: Predicate | None, selection: Sequence[Selected], options: Mapping[str, Any]) -> Predicate | None:
    if predicate is None:
        return None
    return bind(predicate, {each.name: each.output for each in selection}, options.get("zone", "UTC"))


# ---- scans that are planned already


@dataclass(frozen=True)
class _ScannedTable(BoundTable):
    plan: Any = None

    @classmethod
    def over(cls, plan: Any, name: str) -> _ScannedTable:
        from parquet_variant.parquet.writing.nested import is_tagged

        schema = plan.schema
        variants = [each.name for each in schema if is_tagged(each)]
        ordinary = {each.name: each.type for each in schema if not is_tagged(each)}
        return cls(name, TableColumns(variants, ordinary), tuple(schema.names), plan)

    def scan(
        self, needed: Mapping[str, NeededColumn], predicate: Predicate | None, options: Mapping[str, Any]
    ) -> Batches:
        needed = needed or {self.order[0]: NeededColumn(self.order[0])}
        if hasattr(self.plan, "scans"):
            return replace(self.plan, scans=tuple(self._narrowed(each, needed, predicate) for each in self.plan.scans))
        return self._narrowed(self.plan, needed, predicate)

    def _narrowed(self, plan: Any, needed: Mapping[str, NeededColumn], predicate: Predicate | None) -> Any:
        """The scan with other output columns: paths go on where its own end; its filter stays."""
        given = {each.name: each for each in plan.selection}
        outputs = tuple(self._selected(key, given[each.column], each) for key, each in needed.items())
        # The scan's own columns stay for its filter, under names that no output has.
        before = {each.name: f"\x00{number}" for number, each in enumerate((*plan.selection, *plan.hidden))}
        kept = tuple(replace(each, name=before[each.name]) for each in (*plan.selection, *plan.hidden))
        own = None if plan.predicate is None else _renamed(plan.predicate, before)
        asked = None if predicate is None else bind(predicate, {each.name: each.output for each in outputs}, plan.zone)
        both = [each for each in (own, asked) if each is not None]
        whole = None if not both else both[0] if len(both) == 1 else And(tuple(both))
        return replace(plan, selection=outputs, hidden=kept if own is not None else (), predicate=whole)

    def _selected(self, key: str, given: Selected, needed: NeededColumn) -> Selected:
        if needed.path is None or given.path is None:
            return replace(given, name=key)
        return Selected(key, VariantPath((*given.path.segments, *needed.path.segments)), needed.type)


def _renamed(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    if isinstance(predicate, (And, Or)):
        return type(predicate)(tuple(_renamed(each, names) for each in predicate.parts))
    if isinstance(predicate, Not):
        return Not(_renamed(predicate.part, names))
    assert isinstance(predicate, (Compare, Like, IsNull, Constant))
    return replace(predicate, column=names[predicate.column])


# ---- Arrow data


@dataclass(frozen=True)
class _ArrowTable(BoundTable):
    table: Any = None

    @classmethod
    def over(cls, table: pa.Table, name: str) -> _ArrowTable:
        from parquet_variant.parquet.writing.nested import is_tagged

        variants = [each.name for each in table.schema if is_tagged(each) or _is_variant(table, each)]
        ordinary = {each.name: each.type for each in table.schema if each.name not in variants}
        return cls(name, TableColumns(variants, ordinary), tuple(table.column_names), table)

    @property
    def skips(self) -> bool:
        return False

    def scan(
        self, needed: Mapping[str, NeededColumn], predicate: Predicate | None, options: Mapping[str, Any]
    ) -> Batches:
        return _ArrowScan(self.table, dict(needed), options.get("on_error") == "raise", options.get("zone", "UTC"))


def _is_variant(table: pa.Table, field: pa.Field) -> bool:
    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    if not pa.types.is_struct(kind) or not {"metadata"} <= {child.name for child in kind}:
        return False
    try:
        VariantArray(pa.nulls(0, kind))
    except VariantError:
        return False
    return True


@dataclass(frozen=True)
class _ArrowScan:
    table: pa.Table
    needed: dict[str, NeededColumn]
    strict: bool
    zone: str

    @cached_property
    def schema(self) -> pa.Schema:
        fields = []
        for key, each in self.needed.items():
            if each.path is None:
                fields.append(pa.field(key, self.table.schema.field(each.column).type))
            elif (output := each.output) is None:
                fields.append(variant_field(key))
            else:
                fields.append(pa.field(key, output))
        return pa.schema(fields or [pa.field("", pa.null())])

    def batches(self) -> Iterator[pa.Table]:
        for batch in self.table.to_batches(max_chunksize=1 << 16):
            columns = [self._column(batch.column(each.column), each) for each in self.needed.values()]
            yield pa.table(columns or [pa.nulls(len(batch))], schema=self.schema)

    def _column(self, column: pa.Array, each: NeededColumn) -> pa.Array:
        if each.path is None:
            return column
        from parquet_variant.functions.extraction.extract_variant import extract_variant
        from parquet_variant.functions.walks.extract_path import extract_path

        storage = VariantArray(column).storage
        if each.output is None:
            return plain_variants(extract_variant(storage, each.path))
        target = VARIANT_STORAGE if each.type is None else each.type
        return extract_path(storage, each.path, target, safe=self.strict, zone=self.zone)


def plain_variants(values: VariantArray) -> pa.StructArray:
    """Variants as a struct of two plain binary columns."""
    storage = values.to_unshredded().storage
    plain = [storage.field(name).cast(pa.binary()) for name in ("metadata", "value")]
    return pa.StructArray.from_arrays(plain, fields=list(VARIANT_STORAGE), mask=storage.is_null())


# ---- rows without columns, and several scans as one


@dataclass(frozen=True)
class _FileRows:
    """As many rows as files have, of which nothing is asked: the footers know."""

    sources: tuple[Any, ...]
    schema: pa.Schema = pa.schema([pa.field("", pa.null())])  # noqa: RUF009 - immutable

    def batches(self) -> Iterator[pa.Table]:
        from parquet_variant.parquet.format.files import open_file

        for source in self.sources:
            with open_file(source) as file:
                left = file.metadata.num_rows
            while left > 0:
                yield pa.table([pa.nulls(min(left, 1 << 20))], schema=self.schema)
                left -= 1 << 20


@dataclass(frozen=True)
class _SideBySide:
    """Scans of the same rows, each with some of the columns: none may leave out a row."""

    plans: Sequence[Batches]
    names: tuple[str, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        fields = {field.name: field for plan in self.plans for field in plan.schema}
        return pa.schema([fields[name] for name in self.names])

    def batches(self) -> Iterator[pa.Table]:
        streams = [plan.batches() for plan in self.plans]
        waiting: list[pa.Table | None] = [None] * len(streams)
        while True:
            for index, stream in enumerate(streams):
                table = waiting[index]
                if table is None or not len(table):
                    waiting[index] = next(stream, None)
            parts = [table for table in waiting if table is not None]
            if not parts:
                return
            if len(parts) < len(streams):
                raise VariantFileError("the files changed while they were read", reason="files-changed")
            rows = min(map(len, parts))
            columns = {name: part.column(name).slice(0, rows) for part in parts for name in part.column_names}
            yield pa.table([columns[name] for name in self.names], schema=self.schema)
            waiting = [part.slice(rows) for part in parts]
