"""Scans of the tables of a query with columns of JSON text.

Of JSON text each row is parsed once, in threads, and paths are read as from a Variant column. Leaves planning scans to
`binding`, and paths to `tables.table.files`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.interop.tables import with_json_as_variants
from parquet_variant.ops.parse_json import parse_paths
from parquet_variant.query.selection import PlannedQuery, Question, Selected
from parquet_variant.support.options import Errors
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.table.files import MemoryScan, typed_paths
from parquet_variant.types.forms import is_json_type
from parquet_variant.types.path import VariantPath


class ScanOptions(Record):
    """Options for reading the tables of a query."""

    errors: Literal["null", "raise"] = "null"  # What a failed cast gives: NULL or an error.
    zone: str = "UTC"  # The session time zone of casts.
    threads: int | None = None  # Number of worker threads.
    dictionaries: bool = False  # Whether the engine accepts dictionary-encoded strings.
    only_bounds: bool = False  # Whether only the least and the greatest value of each column are needed.


_WITHOUT_ZONE = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
# Bytes of the columns that a thread parses at a time.
_PART_BYTES = 4 << 20


def has_casts(needed: Mapping[str, Selected], *, in_zone: bool = False) -> bool:
    """Return whether paths are cast, with `in_zone` to a type for which the time zone may matter."""
    types = [column.type for column in needed.values() if column.path is not None and column.type is not None]
    return any(not (in_zone and any(test(kind) for test in _WITHOUT_ZONE)) for kind in types)


class TextScan(PlannedQuery, Record):
    """A scan with columns of JSON text, or of Variants, and the query over each part of its result."""

    stored: PlannedQuery  # The scan of the columns as they are stored.
    rows: MemoryScan  # The query over these columns, and those that are made of text.
    # For each column of text in `stored`, the outputs that are made of it: Variants, and text that is not JSON.
    made: Mapping[str, Sequence[Selected]]
    threads: int | None
    question: Question  # The output columns; the stored columns are filtered.

    @classmethod
    def plan(
        cls,
        needed: Mapping[str, Selected],
        sources: Mapping[str, Selected],
        scan: Callable[[Mapping[str, Selected], ScanOptions], PlannedQuery],
        options: ScanOptions,
    ) -> TextScan:
        """Return the scan of some columns, given by output name.

        `sources`: the columns that are made of text, with the stored column of the text.
        `scan`: plans a scan of stored columns.
        """
        made: dict[Selected, list[Selected]] = {}
        for column in needed.values():
            if column.stored_name in sources:
                made.setdefault(sources[column.stored_name], []).append(column)
        unparsed = {name: column for name, column in needed.items() if column.stored_name not in sources}
        names = {column: name for name, column in unparsed.items()}
        inputs = {text: names.get(text, f"\x00{number}") for number, text in enumerate(made)}
        stored = unparsed | {name: text for text, name in inputs.items()}
        plan = scan(stored, replace(options, only_bounds=False))
        fields = [pa.field(column.stored_name, pa.binary()) for columns in made.values() for column in columns]
        parts = pa.schema(
            [*with_json_as_variants(empty_table(plan.schema), inputs.values()).schema, *dict.fromkeys(fields)]
        )
        outputs = dict(needed) | {name: Selected.of(name) for name in unparsed}
        rows = MemoryScan.plan(empty_table(parts), outputs, errors=options.errors, zone=options.zone)
        named = {inputs[text]: columns for text, columns in made.items()}
        return cls(plan, rows, named, options.threads, rows.question)

    @classmethod
    def with_casts(
        cls, question: Question, scan: Callable[[Mapping[str, Selected]], PlannedQuery], options: ScanOptions
    ) -> TextScan:
        """Return a scan that casts values as `options` say, and then filters: the stored columns are Variants.

        `scan`: plans the scan of stored columns, given by output name.
        """
        stored, outputs = {column.name: column for column in question.columns}, list[Selected]()
        for name, column in stored.items():
            output = Selected.of(name)
            if column.path is not None and column.type is not None:
                is_whole = column.path.has_wildcard
                path, inner_path = (VariantPath(), column.path) if is_whole else (column.path, VariantPath())
                stored[name] = replace(column, path=path, type=None)
                output = replace(column, path=inner_path, column=name)
            outputs.append(output)
        plan, count = scan(stored), len(question.selection)
        types = {field.name: None if is_variant_field(field) else field.type for field in plan.schema}
        bound = Question(tuple(outputs[:count]), tuple(outputs[count:]), question.predicate).bound(types, options.zone)
        rows = MemoryScan(empty_table(plan.schema), bound, options.errors, options.zone)
        return cls(plan, rows, {}, options.threads, bound)

    @property
    def bytes_read(self) -> int:
        """The bytes of stored columns that the query has read so far in this process."""
        return self.stored.bytes_read

    def explain(self) -> Any:
        """Return what the scan of the stored columns reads and skips; None if that is not known."""
        return self.stored.explain()

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows in batches."""
        return filter(len, in_order(self._result, self._parts(), thread_count(self.threads), read_ahead=True))

    def tasks(self, task_bytes: int) -> list[Any]:
        """Return the tasks of the scan of the stored columns."""
        return self.stored.tasks(task_bytes)

    def read(self, task: Any) -> Iterator[pa.Table]:
        """Yield the part of the result that belongs to a task."""
        return filter(len, map(self._result, self.stored.read(task)))

    def _parts(self) -> Iterator[pa.Table]:
        for table in self.stored.batches():
            rows = max(1, len(table) * _PART_BYTES // max(table.nbytes, 1))
            yield from (table.slice(start, rows) for start in range(0, len(table), rows))

    def _result(self, part: pa.Table) -> pa.Table:
        parsed = with_json_as_variants(part, self.made)
        columns = dict(zip(parsed.column_names, parsed.columns, strict=True))
        for name, made in self.made.items():
            text = one_chunk(part[name])
            paths = [column.path for column in made if column.path is not None]
            errors: Errors = "raise" if is_json_type(text.type) else "null"
            values, malformed = parse_paths(text, paths, self._schemas[name], errors)
            columns |= {column.stored_name: malformed if column.path is None else values for column in made}
        return self.rows.result_of(pa.table(columns))

    @cached_property
    def _schemas(self) -> dict[str, ShreddingSchema | None]:
        """For each column of text, the schema of the typed paths into its values."""
        return {name: typed_paths(made) for name, made in self.made.items()}
