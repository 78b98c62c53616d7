"""A table that a query names: its columns, facts about its values, and the scan that it plans.

Leaves scans to `scans`, and which values are tables to `binding`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.arrays.final_columns import keys_of_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.columns.extract_path import extract_path, extract_variant
from parquet_variant.ops.value_types import is_variant_null, variant_type
from parquet_variant.ops.variant_explode import variant_explode
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.selection import Inside, PlannedQuery, Selected, TableColumns, TableFacts, is_variant
from parquet_variant.query.variant_functions import FUNCTIONS, field_names
from parquet_variant.sql_query.scans import ScanOptions, TextScan
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.tables.row_input import types_of_paths
from parquet_variant.types import EXACT_NUMERIC, INTEGERS, TYPES, VariantType
from parquet_variant.types.forms import holds_json, plain_form
from parquet_variant.types.path import WILDCARD, VariantPath

if TYPE_CHECKING:
    from parquet_variant.files.parquet.format.files import ParquetSource
    from parquet_variant.tables.table.table import Table


_TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
_NOT_TYPED = (VariantType.NULL, VariantType.ARRAY, VariantType.OBJECT)
MOST_COLUMNS = 2_000  # The most fields of an object that become columns.
_SCANNED_ROWS = 200_000  # The rows of files without shredding whose fields are listed.
_INFERRED_ROWS = 20_000  # The rows from which the paths of unshredded data are inferred.
# The most compressed bytes of columns, or of Vortex files, that are read before a query to find the type of a path.
_INSPECTED_BYTES, _INSPECTED_VORTEX_BYTES = 8 << 20, 64 << 20
Plan = Callable[[Mapping[str, Selected], Predicate | None, ScanOptions], PlannedQuery]


class Fields(Record):
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


class BoundTable(TableFacts, Record):
    """A table that a query names."""

    name: str  # Its name in messages.
    columns: TableColumns  # Its columns.
    order: tuple[str, ...]  # The names of the columns, in the table's order.
    scan_stored: Plan  # Plans a scan of stored columns, given by output name, with a filter over those names.
    skips: bool = True  # Whether its scans can use a filter to skip data.
    files: Sequence[str] = ()  # The files that a scan opens by name, which other processes can replace.
    opened: Table | None = field(default=None, kw_only=True)  # The table, unless it is a scan, or rows in memory.
    # The Parquet files that hold its rows; empty for other formats and rows in memory.
    parquet_files: Callable[[], Sequence[ParquetSource]] = field(default=tuple, kw_only=True)
    values: pa.Table | None = field(default=None, kw_only=True)  # Its rows, if they are in memory.
    # Returns the keys of the objects in JSON files, all of whose values may be inspected; None for other tables.
    json_keys: Callable[[], frozenset[str]] | None = field(default=None, kw_only=True)
    # The types and the elements of paths whose values were inspected.
    facts: dict[Any, Any] = field(default_factory=dict, kw_only=True)
    # Columns that are paths into Variant columns.
    derived: Mapping[str, Selected] = field(default_factory=dict, kw_only=True)
    # Columns that scans make of JSON text, with the column of the text.
    parsed_columns: dict[str, str] = field(default_factory=dict, kw_only=True)

    def scan(self, needed: Mapping[str, Selected], predicate: Predicate | None, options: ScanOptions) -> PlannedQuery:
        """Plan a scan of some columns, given by output name, with a filter over names of stored columns."""
        if not any(column.stored_name in self.parsed_columns for column in needed.values()):
            plan = self.scan_stored(needed, predicate, options)
            if not any(map(holds_json, plan.schema.types)):
                return plan
        sources = {name: self.needs(text) for name, text in self.parsed_columns.items()}
        return TextScan.plan(needed, sources, lambda stored, o: self.scan_stored(stored, predicate, o), options)

    def parsed(self, name: str, function: str) -> tuple[str, str | None] | None:
        """Return the column with the Variants that ``parse_json`` or ``try_parse_json`` makes of a column of text.

        Next to it stands the column with the text that is not JSON, null in other rows; None for ``try_parse_json``.
        The result is None if the column is not text.
        """
        kind = plain_form(self.columns.ordinary.get(name, pa.null()))
        is_text = any(test(kind) for test in _TEXT_TYPES)
        names = (f"{function}({name})", f"malformed_json({name})" if function == "parse_json" else None)
        if not is_text or any(made in self.order for made in names):
            return None
        self.parsed_columns.update((made, name) for made in names if made is not None)
        return names

    def needs(self, name: str, path: VariantPath | None = None, kind: pa.DataType | None = None) -> Selected:
        """See `TableFacts.needs`."""
        derived = self.derived.get(name)
        if derived is None:
            if is_variant(self.columns.ordinary.get(name)):
                # The engine returns Variants as structs, so such a struct would become a Variant.
                raise VariantError(
                    f"column {name} of {self.name} has the fields of a Variant, but is not marked as one: select other "
                    "columns, or give it the extension type arrow.parquet.variant",
                    reason="not-a-variant",
                )
            return Selected.of(name, path, kind)
        return derived if path is None else Selected.of(*self._stored_place(name, path), kind)

    def shredding_files(self, variant: str) -> Sequence[ParquetSource]:
        """Return the Parquet files that hold a Variant column; none for Variants that are made of text."""
        return () if variant in self.parsed_columns else self.parquet_files()

    def common_type(
        self, name: str, path: VariantPath, inside: Sequence[Inside] = (), *, nulls: bool = True
    ) -> pa.DataType | None:
        """See `TableFacts.common_type`; footers prove it of shredded paths, otherwise few values are inspected."""
        from parquet_variant.files.parquet.scanning.projection import common_type

        def find(column: str, stored: VariantPath) -> pa.DataType | None:
            if not inside and self.values is None:
                proved = common_type(self.shredding_files(column), column, stored, nulls=nulls)
                if proved is not None or (not nulls and self.json_keys is None):
                    return proved
            steps = _steps(stored, inside)
            kind, json_nulls = self._inspected(column, steps)
            return kind if nulls or not (json_nulls or len(steps) > 1) else None

        return self._fact(name, path, find)

    def json_nulls(self, name: str, path: VariantPath, inside: Sequence[Inside] = ()) -> int:
        """See `TableFacts.json_nulls`."""
        return self._fact(name, path, lambda column, stored: self._inspected(column, _steps(stored, inside))[1]) or 0

    def _inspected(self, column: str, steps: Sequence[Inside]) -> tuple[pa.DataType | None, int]:
        """Return what `types_of_values` finds in the Variants that steps lead to; nothing in too many bytes."""
        is_direct = self.values is not None and column not in self.parsed_columns and len(steps) == 1
        direct = (self.values, column, steps[0][1]) if is_direct else None
        read = lambda: types_of_values(*(direct or self._values_inside(column, steps)))  # noqa: E731
        return self._once(("type", column, *steps), read)

    def _fact(self, name: str, path: VariantPath, find: Callable[..., Any]) -> Any:
        """Return what a function finds of a stored column and path; None for unreadable data."""
        try:
            return find(*self._stored_place(name, path))
        except VariantError:  # whoever reads the data reports it
            return None

    def _once(self, key: Any, find: Callable[[], Any]) -> Any:
        """Return a fact that is found once."""
        if key not in self.facts:
            self.facts[key] = find()
        return self.facts[key]

    def _values_inside(self, column: str, steps: Sequence[Inside]) -> tuple[pa.Table | None, str, VariantPath]:
        """Return the Variants that steps lead to: their table, its column, and their path in its values."""
        *outer, (how, path) = steps
        if not outer:
            rows = self._once(("rows", column), lambda: self._unshredded_values(column))
            if rows is not None:
                return rows, "v", path
            return self._few_values(column, path, is_limited=self.json_keys is None), "v", VariantPath()
        opened = self._once((column, *outer, how), lambda: _opened(*self._values_inside(column, outer), how))
        return opened, "v", path

    def _unshredded_values(self, column: str) -> pa.Table | None:
        """Return a column of which a scan for one path would read as much; None for a shredded or large column."""
        is_whole = self.json_keys is not None or self.values is not None or self.parquet_files()
        return self._few_values(column, VariantPath()) if is_whole and self.shredded_schema(column) is None else None

    def _few_values(self, name: str, path: VariantPath, *, is_limited: bool = True) -> pa.Table | None:
        """Return the Variants at a path as the column ``v``; None if too many bytes of files would be read."""
        is_ordinary = name in self.columns.ordinary and name not in self.derived
        plan = self.scan({"v": Selected.of(name, None if is_ordinary else path)}, None, ScanOptions())
        if self.values is None and is_limited:
            report = plan.explain()
            report = getattr(report, "inside", report)  # that of a table has the counts of its files inside
            read_bytes, limit = getattr(report, "bytes_read", None), _INSPECTED_BYTES
            if read_bytes is None:  # Vortex knows the size of its files only
                read_bytes, limit = getattr(report, "bytes_total", None), _INSPECTED_VORTEX_BYTES
            if read_bytes is None or read_bytes > limit:
                return None
        parts = list(plan.batches())
        return pa.concat_tables(parts) if parts else None

    def leaf_of_elements(self, name: str, path: VariantPath) -> tuple[VariantPath, pa.DataType] | None:
        """See `TableFacts.leaf_of_elements`."""
        from parquet_variant.files.parquet.scanning.projection import leaf_of_elements

        def find(column: str, stored: VariantPath) -> tuple[VariantPath, pa.DataType] | None:
            leaf = leaf_of_elements(self.shredding_files(column), column, stored)
            above = len(stored.segments) - len(path.segments)
            return None if leaf is None else (VariantPath(leaf[0].segments[above:]), leaf[1])

        return self._fact(name, path, find)

    def _stored_place(self, name: str, path: VariantPath) -> tuple[str, VariantPath]:
        """Return the stored column and the path of values."""
        derived = self.derived.get(name)
        if derived is None or derived.path is None:
            return name, path
        return derived.stored_name, VariantPath((*derived.path.segments, *path.segments))

    def keys(self, variant: str) -> frozenset[str] | None:
        """See `TableFacts.keys`."""
        return self._once(("keys", variant), lambda: self._keys(variant))

    def _keys(self, variant: str) -> frozenset[str] | None:
        from parquet_variant.files.parquet.scanning.projection import keys_of_files

        stored, _ = self._stored_place(variant, VariantPath())
        try:
            if stored not in (*self.columns.variants, *self.parsed_columns):
                return None
            if self.json_keys is not None and stored not in self.parsed_columns:
                return self.json_keys()
            if files := self.shredding_files(stored):
                return keys_of_files(files, stored)
            keys, is_complete = self._names_in(
                Selected.of(stored, VariantPath()), lambda values: keys_of_storage(values.to_unshredded().storage)
            )
            return frozenset(keys) if is_complete else None
        except VariantError:  # whoever reads the values reports it
            return None

    def path_hints(self, columns: Iterable[Selected], as_paths: bool = False) -> list[str]:
        """Return hints about paths that no row has, which are written as in SQL, or with `as_paths` as ``$.a.b``."""
        from parquet_variant.query.rewriting.scopes import missing_path

        variant = next(iter(self.columns.variants), "")
        paths = [(c.column or variant, c.path) for c in columns if c.path is not None]
        hints = (missing_path(self, *path, elsewhere=True, as_path=as_paths) for path in paths)
        return list(dict.fromkeys(filter(None, hints)))

    def path_elsewhere(self, variant: str, path: VariantPath) -> VariantPath | None:
        """See `TableFacts.path_elsewhere`; values may be read to know the fields above the path."""
        *above, key = path.segments or (None,)
        if not isinstance(key, str):
            return None
        try:
            leaves = self._once(("leaves", variant), lambda: list(self.schema_of(variant).leaves()))
            paths = [other for other, _ in leaves]
            # Without quotes, SQL ends a key at a sign such as a hyphen.
            begins = re.compile(rf"{re.escape(key)}(\W|$)").match
            ends = [other for other in paths if begins(str(*other.segments[-1:]))]
            same = [o for o in ends if tuple(step for step in o.segments if step is not WILDCARD) == path.segments]
            meant = min(same or ends, key=lambda other: (other.segments[-1] != key, len(other)), default=None)
            if meant is None or path in paths:
                return None
            fields = self.fields_at(variant, VariantPath(tuple(above)))
        except VariantError:  # whoever reads the values reports it
            return None
        return None if fields.unread or key in fields.names else meant

    def schema_of(self, variant: str) -> ShreddingSchema:
        """Return the shredded paths of all files together, or those inferred from some rows if nothing is shredded."""
        return self._once(("schema", variant), lambda: self.shredded_schema(variant) or self._inferred_schema(variant))

    def _inferred_schema(self, variant: str) -> ShreddingSchema:
        from parquet_variant.inference.policies.auto import AutoPolicy
        from parquet_variant.ops.shred_variant import infer_shredding_schema

        plan = self.scan({"v": self.needs(variant, VariantPath())}, None, ScanOptions())
        rows = next(iter(plan.batches()), None)
        values = VariantArray.from_pylist([]) if rows is None else VariantArray.from_arrow(rows, "v")[:_INFERRED_ROWS]
        return infer_shredding_schema(values, AutoPolicy(min_row_share=0.0, max_columns=MOST_COLUMNS))

    def fields_at(self, variant: str, path: VariantPath = VariantPath()) -> Fields:  # noqa: B008 - immutable
        """Return the fields of the objects at a path of a Variant column: the shredded ones, then all others.

        Values of files are read for it as far as they are few; the keys that only other rows have may be missing.
        """
        shredded = self.shredded_schema(variant)
        node = None if shredded is None else shredded.get(path)
        names = [key for key, _ in node.fields] if node is not None and node.kind == "object" else []
        stored, is_complete = self._other_fields(*self._stored_place(variant, path), is_shredded=bool(names))
        names += sorted(stored - set(names), key=lambda key: (key.lower(), key != key.lower(), key))
        unread = 0 if is_complete else len((self.keys(variant) or frozenset()) - set(names))
        return Fields(tuple(names), unread)

    def _other_fields(self, name: str, path: VariantPath, *, is_shredded: bool) -> tuple[set[str], bool]:
        """Return names of fields at a path that are not shredded, and whether these are all."""
        from parquet_variant.files.parquet.scanning.projection import residual_objects

        groups = residual_objects(self.shredding_files(name), name, path) if is_shredded else None
        if groups is not None:
            sizes = list(accumulate(size for size, _ in groups))
            read = [values for (_, values), size in zip(groups, sizes, strict=True) if size <= _INSPECTED_VORTEX_BYTES]
            return {key for values in read for key in field_names(VariantArray(values()))}, len(read) == len(groups)
        return self._names_in(Selected.of(name, path), field_names)

    def _names_in(self, column: Selected, names_of: Callable[[VariantArray], Iterable[str]]) -> tuple[set[str], bool]:
        """Return names in the values of a column, and whether all rows were read for them."""
        names: set[str] = set()
        rows = 0
        for part in self.scan({"v": column}, None, ScanOptions()).batches():
            names.update(*(names_of(VariantArray(chunk)) for chunk in part["v"].chunks))
            rows += len(part)
            if self.values is None and self.json_keys is None and rows > _SCANNED_ROWS:
                return names, False
        return names, True

    def shredded_schema(self, variant: str) -> ShreddingSchema | None:
        """Return the shredded paths of all files together; None if nothing is shredded."""
        return types_of_paths((source, variant) for source in self.shredding_files(variant))


def _steps(path: VariantPath, inside: Sequence[Inside]) -> list[Inside]:
    """Return the steps into values, the first one the start of a path, in which each wildcard is a step to elements."""
    steps: list[Inside] = []
    for how, inner in (("elements", path), *inside):
        steps.append((how, VariantPath()))
        for segment in inner.segments:
            if segment is WILDCARD:
                steps.append(("elements", VariantPath()))
            else:
                steps[-1] = (steps[-1][0], steps[-1][1] / segment)
    return steps


def _opened(rows: pa.Table | None, name: str, path: VariantPath, how: str) -> pa.Table | None:
    """Return the elements and fields of the values at a path of a column, or their text as Variants, as ``v``."""
    arrays: list[pa.Array] = []
    for chunk in [] if rows is None else rows[name].chunks:
        if how == "elements":
            arrays += variant_explode(extract_variant(VariantArray(chunk).storage, path))["value"].chunks
        else:
            is_variants = pa.types.is_struct(chunk.type)
            text = extract_path(VariantArray(chunk).storage, path, pa.string(), safe=False) if is_variants else chunk
            arrays.append(FUNCTIONS["try_parse_json"].work(text))
    return pa.table({"v": pa.chunked_array(arrays)}) if arrays else None


def types_of_values(rows: pa.Table | None, name: str, path: VariantPath) -> tuple[pa.DataType | None, int]:
    """Return the type that every value at a path has, as a shredded column would, and the number of Variant nulls.

    The type is None if the values differ.
    Raises `MalformedVariantError` if the bytes of a value are malformed.

    >>> import parquet_variant as pv
    >>> rows = pa.table({"v": pv.parse_json(['{"a": 1, "b": 1}', '{"a": null, "b": "x"}']).storage})
    >>> types_of_values(rows, "v", VariantPath.parse("$.a")), types_of_values(rows, "v", VariantPath.parse("$.b"))
    ((DataType(int64), 1), (None, 0))
    """
    if rows is None or name not in rows.column_names:
        return None, 0
    column = rows[name]
    values = [extract_variant(VariantArray(chunk).storage, path) for chunk in column.chunks]
    names = {name for part in values for name in pc.unique(variant_type(part)).to_pylist()} - {None}
    types = {VariantType(name) for name in names} - {VariantType.NULL}
    nulls = sum(pc.sum(is_variant_null(part)).as_py() or 0 for part in values) if len(types) < len(names) else 0
    if types <= set(INTEGERS):
        return pa.int64() if types else None, nulls
    if not types <= set(EXACT_NUMERIC):
        only = next(iter(types)) if len(types) == 1 else VariantType.NULL
        return None if only in _NOT_TYPED else TYPES[only].arrow, nulls
    from parquet_variant.inference.columns import best_column
    from parquet_variant.inference.profile import Profile

    profile = reduce(Profile.merge, map(Profile.of_array, values), Profile()).root
    best = None if profile is None else best_column(profile)  # decimals need the digits of all values
    return None if best is None or best.share < 1 else best.arrow, nulls
