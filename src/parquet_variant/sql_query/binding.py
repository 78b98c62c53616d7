"""Binding of values to tables: files, Delta and Iceberg tables, Vortex files, scans and Arrow data.

Owns planning scans of typed columns, also with filters for tables without filters of their own.
Leaves recognising formats to `tables.opening`, the bound table to `tables`, and reading to the packages of the formats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field, named_variants, variant_places
from parquet_variant.arrays.parts import empty_table
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import PredicateError, VariantError
from parquet_variant.ops.interop.tables import rows_of, with_json_as_variants, with_nested_as_variants
from parquet_variant.query.predicate import And, Predicate, bind, columns_of, joined, renamed
from parquet_variant.query.selection import PlannedQuery, Question, Selected, TableColumns, read_filter
from parquet_variant.sql_query.scans import ScanOptions, TextScan, has_casts
from parquet_variant.sql_query.tables import BoundTable, Plan
from parquet_variant.tables.opening import open as open_source
from parquet_variant.tables.table.files import MemoryScan
from parquet_variant.tables.table.scan import Scan
from parquet_variant.tables.table.table import Table
from parquet_variant.types.forms import holds_json, is_json_type
from parquet_variant.types.path import VariantPath, split_type


def bind_table(source: Any, name: str) -> BoundTable:
    """Bind a value to the table that it is.

    `source`: a `Table` or anything that `open` makes one of, such as a path, glob, URI, snapshot or `VariantArray`; a
      planned scan; or anything else that gives an Arrow stream.
    `name`: its name in messages.
    Raises `VariantError` if it is none of these, or does not exist.
    """
    return source if isinstance(source, BoundTable) else _with_json(_bound(source, name))


def _with_json(table: BoundTable) -> BoundTable:
    """Return a table with Variants in place of JSON text of the type ``arrow.json``, which scans parse."""
    ordinary = table.columns.ordinary
    if not any(map(holds_json, ordinary.values())):
        return table
    json = [name for name, kind in ordinary.items() if is_json_type(kind)]
    parsed = with_json_as_variants(empty_table(pa.schema(list(ordinary.items()))), json).schema
    types = {field.name: field.type for field in parsed if field.name not in json}
    columns = replace(table.columns, variants=[*table.columns.variants, *json], ordinary=types)
    return replace(table, columns=columns, parsed_columns={name: name for name in json})


def _bound(source: Any, name: str) -> BoundTable:
    plan = source.plan if isinstance(source, Scan) else source
    if isinstance(plan, PlannedQuery) and hasattr(plan, "zone"):  # scans of JSON and Vortex files are read whole
        return BoundTable(name, TableColumns.of(plan.schema), tuple(plan.schema.names), partial(_scan_again, plan))
    if not isinstance(source, (Table, VariantArray)) and hasattr(source, "__arrow_c_stream__"):
        return _arrow_table(rows_of(with_nested_as_variants(source)), name)
    table = open_source(source)
    if table.format == "memory":
        return _arrow_table(rows_of(table.source), name)
    if table.format in ("delta", "iceberg"):
        bound = _logged_table(table.snapshot, name, table.format)
    elif table.format == "json":
        bound = _json_table(table.source, name, table.options.text)
    elif table.format == "vortex":
        bound = _vortex_table(os.fspath(table.source), name)
    elif table.format == "parquet":
        bound = _parquet_table(table.source, name, table.options.filesystem)
    else:
        problem = f"the table {name} is a Spark DataFrame: give a path, a scan, a VariantArray or Arrow data"
        raise VariantError(problem, reason="not-a-table")
    return replace(bound, opened=table)


def with_common_types(
    table: Table, columns: Any, where: Any, column: str | None, zone: str
) -> tuple[Any, Predicate | None]:
    """Return the columns and the filter of a scan, in which a path without a type has that of its values, as in SQL.

    The path of a whole value remains without a type. A text that is not a filter of columns and literals is a condition
    in SQL. `column`: the Variant column of the paths.
    """
    predicate = refusal = None
    try:
        predicate = read_filter(where)
    except PredicateError as error:
        if not isinstance(where, str):
            raise
        refusal = error
    paths = {name: _untyped_path(request) for name, request in columns.items()}
    hidden = set() if predicate is None else columns_of(predicate).difference(columns)
    needs_sql = refusal is not None or any(_untyped_path(name) or ":$" in name for name in hidden)
    if not needs_sql and not any(paths.values()):
        return columns, predicate
    bound = bind_table(table, table.uri)
    variant = column or next(iter(bound.columns.variants), "")
    typed = {
        name: columns[name] if path is None else Selected(name, path, bound.common_type(variant, path))
        for name, path in paths.items()
    }
    mixed = {name for name, path in paths.items() if path is not None and typed[name].type is None}
    if not needs_sql and (predicate is None or not mixed & columns_of(predicate, compared=True)):
        return typed, predicate
    from parquet_variant.sql_query.conditions import sql_filter

    return typed, sql_filter(bound, typed, where if predicate is None else predicate, variant, zone, refusal)


def _untyped_path(request: object) -> VariantPath | None:
    if isinstance(request, str) and request.startswith("$"):
        text, kind = split_type(request)
        request = VariantPath.parse(text) if kind is None else None
    return request if isinstance(request, VariantPath) and request.segments else None


def _parquet_table(source: Any, name: str, filesystem: Any = None) -> BoundTable:
    from parquet_variant.files.parquet.format.files import locate
    from parquet_variant.files.parquet.reading.read import plain_schema
    from parquet_variant.files.parquet.scanning.scan import Scan as ParquetScan
    from parquet_variant.files.parquet.scanning.scan import schema_of_files

    # Small remote files are kept for the scan, which would request them again.
    sources = tuple(
        replace(file, content=[] if number < 1024 else None) for number, file in enumerate(locate(source, filesystem))
    )
    schema = schema_of_files(sources)
    ordinary = plain_schema(pa.schema([field for field in schema if not is_variant_field(field)]))
    variants = {".".join(place): place for place in variant_places(schema, is_variant_field)}
    nested = {name: place for name, place in variants.items() if len(place) > 1}
    columns = replace(TableColumns.of(ordinary), variants=list(variants), nested=nested)

    def scan(needed: Mapping[str, Selected], predicate: Predicate | None, options: ScanOptions) -> PlannedQuery:
        # For a query that needs rows but no column, a column that no file has.
        needed = needed or {"": Selected.of("", kind=pa.null())}
        bound = _question(needed, predicate).bound(columns.ordinary, options.zone)
        arguments = options.errors, options.zone, options.threads
        planned = ParquetScan(sources, bound, True, *arguments, coarse=True)
        if options.dictionaries:
            planned = replace(planned, dictionaries=planned.strings_with_dictionary())
        return replace(planned, only_bounds=options.only_bounds and options.errors == "null")

    files = [file.path for file in sources]
    return BoundTable(name, columns, tuple(schema.names), scan, files=files, parquet_files=lambda: sources)


def _logged_table(snapshot: Any, name: str, table_format: str) -> BoundTable:
    """Bind a snapshot of a Delta or Iceberg table."""
    from parquet_variant.tables.expressions import columns_of_table

    plan: Callable[..., PlannedQuery]
    if table_format == "delta":
        from parquet_variant.tables.delta.reading.read import DeltaScan, parquet_files

        schema, plan, files = snapshot.schema, DeltaScan.plan, partial(parquet_files, snapshot)
    else:
        from parquet_variant.tables.iceberg.reading import planning
        from parquet_variant.tables.iceberg.reading.scan import IcebergScan

        schema, plan, files = snapshot.schema.struct, IcebergScan.plan, partial(planning.parquet_files, snapshot)
    columns, order = columns_of_table(schema), tuple(column.name for column in schema.fields)
    scan = _plan_of_paths(partial(plan, snapshot), columns)
    return BoundTable(name, columns, order, scan, parquet_files=cache(files))


def _vortex_table(path: str, name: str) -> BoundTable:
    from parquet_variant.files.vortex.reader import read_schema
    from parquet_variant.files.vortex.scanner import scan as scan_files

    schema = read_schema(path)
    variants = [field.name for field in schema if is_variant_field(field) or is_json_type(field.type)]
    columns = TableColumns(variants, {field.name: field.type for field in schema if field.name not in variants})
    scan = _plan_of_paths(partial(scan_files, path), columns)
    return BoundTable(name, columns, tuple(schema.names), scan)


def _plan_of_paths(scan: Callable[..., PlannedQuery], columns: TableColumns) -> Plan:
    """Return the function that plans scans of a format whose public ``scan`` takes paths and types."""

    def plan(needed: Mapping[str, Selected], predicate: Predicate | None, options: ScanOptions) -> PlannedQuery:
        if options.errors == "raise" and has_casts(needed):
            stored = partial(plan, predicate=None, options=replace(options, errors="null"))
            return TextScan.with_casts(_question(needed), stored, options)
        if not needed:  # the cheapest column, for a query that needs rows but no column
            names = sorted(columns.ordinary, key=lambda name: not pa.types.is_primitive(columns.ordinary[name]))
            needed = {names[0]: Selected.of(names[0])} if names else {"": _any_row(columns.variants[0])}
        return scan(needed, predicate, zone=options.zone, threads=options.threads)

    return plan


def _any_row(variant: str) -> Selected:
    """Return a column that is null in every row."""
    return Selected.of(variant, VariantPath(("_",)), pa.bool_())


def with_cast_errors(
    columns: Any, where: Any, scan: Callable[..., PlannedQuery], *, column: str | None, zone: str, threads: int | None
) -> PlannedQuery:
    """Return a scan that raises for failed casts, of a format whose scans cannot; deleted rows are not cast.

    `scan`: the scan of the format.
    """
    options = ScanOptions("raise", zone, threads)
    stored = partial(scan, column=column, zone=zone, threads=threads)
    return TextScan.with_casts(Question.of(columns, where), stored, options)


def _question(needed: Mapping[str, Selected], predicate: Predicate | None = None) -> Question:
    """Return the request of columns, given by output name."""
    return Question(tuple(replace(column, name=name) for name, column in needed.items()), (), predicate)


def _scan_again(plan: Any, needed: Mapping[str, Selected], predicate: Predicate | None, options: ScanOptions) -> Any:
    """Return a scan with other output columns: paths are appended to its own paths, and its filter is kept.

    Where the query has another zone, or other errors, the casts of the query are not left to the scan.
    """
    has_own_errors = options.errors == getattr(plan, "errors", "null")
    if has_casts(needed, in_zone=has_own_errors) and not (has_own_errors and options.zone == plan.zone):
        again = partial(_scan_again, plan, predicate=None, options=options)
        return TextScan.with_casts(_question(needed), again, options)
    first = plan.selection[0].name
    by_name = {column.name: column for column in plan.selection}
    outputs = []
    for name, column in (needed or {first: Selected.of(first)}).items():
        output = replace(by_name[column.column], name=name)
        if column.path is not None:
            above = () if output.path is None else output.path.segments
            path = VariantPath((*above, *column.path.segments))
            output = Selected(name, path, column.type, output.column, exact=column.exact)
        outputs.append(output)
    # The filter of the scan needs its columns, which get names that no output has.
    names = () if plan.predicate is None else columns_of(plan.predicate)
    of_filter = [column for column in plan.question.columns if column.name in names]
    hidden_names = {column.name: f"\x00{number}" for number, column in enumerate(of_filter)}
    hidden = tuple(replace(column, name=hidden_names[column.name]) for column in of_filter)
    filter_of_scan = None if plan.predicate is None else renamed(plan.predicate, hidden_names)
    types = {column.name: column.output for column in outputs}
    filter_of_query = None if predicate is None else bind(predicate, types, options.zone)
    filters = [part for part in (filter_of_scan, filter_of_query) if part is not None]
    both = joined(And, filters) if filters else None
    return replace(plan, question=Question(tuple(outputs), hidden, both))


def _json_table(source: Any, name: str, text: Mapping[str, Any]) -> BoundTable:
    from parquet_variant.ingestion.json_files import JsonFiles, JsonScan
    from parquet_variant.ingestion.request import TextOptions

    files = JsonFiles.of(source, TextOptions.of(**text))

    def scan(needed: Mapping[str, Selected], _: Predicate | None, options: ScanOptions) -> PlannedQuery:
        columns, arguments = needed or {"": _any_row("v")}, {"errors": options.errors, "zone": options.zone}
        return JsonScan.of(files, columns, threads=options.threads, **arguments)

    names = [split.file.name for split in files.splits]
    return BoundTable(name, TableColumns(["v"]), ("v",), scan, skips=False, files=names, json_keys=files.keys)


def _arrow_table(table: pa.Table, name: str) -> BoundTable:
    def scan(needed: Mapping[str, Selected], _: Predicate | None, options: ScanOptions) -> PlannedQuery:
        # Without columns only the number of rows counts.
        rows, columns = (table, needed) if needed else (pa.table({"": pa.nulls(len(table))}), {"": Selected.of("")})
        return MemoryScan.plan(rows, columns, errors=options.errors, zone=options.zone)

    # Every Variant, except those of an old draft of the format, has a field ``metadata``.
    variants = named_variants(
        field
        for field in table.schema
        if is_variant_field(field) or (pa.types.is_struct(field.type) and field.type.get_field_index("metadata") >= 0)
    )
    ordinary = {field.name: field.type for field in table.schema if field.name not in variants}
    columns = TableColumns(variants, ordinary)
    return BoundTable(name, columns, tuple(table.column_names), scan, skips=False, values=table)
