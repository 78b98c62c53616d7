"""`scan`: typed columns by path from a Vortex file, reading only what the paths and the filter need.

Owns the public operation, and which parts of a stored column a path needs. Leaves the cast to `extract_path`, the
meaning of filters to `parquet.predicate`, and which of them Vortex may apply to `pushdown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from parquet_variant.array.capsules import without_views
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import VariantFileError
from parquet_variant.functions.extract_path import extract_path
from parquet_variant.parquet.reading.read_table import plain_storage
from parquet_variant.query.predicate import Predicate, evaluate
from parquet_variant.query.question import Question
from parquet_variant.query.selection import Selected
from parquet_variant.vortex.library import arrow_reader, batches_of, open_file, vortex, vortex_errors
from parquet_variant.vortex.pushdown import Part, part_of, pushed_filter, storage_of_part
from parquet_variant.vortex.reader import choose_variant
from parquet_variant.vortex.storing import variant_names

__all__ = ["VortexScan", "scan"]


@dataclass(frozen=True)
class VortexScan:
    """A planned query.

    Parameters
    ----------
    path
        The file.
    selection, hidden
        Output columns, and those that only the filter looks at.
    predicate
        The filter, bound; None for all rows.
    column
        The Variant column; None if no path is asked for.
    kind
        Its storage type in the file; None likewise.
    pushdown
        Whether Vortex may leave out rows by itself; the answer is the same without.
    zone
        The session time zone of casts.
    """

    path: Any
    selection: tuple[Selected, ...]
    hidden: tuple[Selected, ...]
    predicate: Predicate | None
    column: str | None
    kind: pa.StructType | None
    pushdown: bool
    zone: str

    @property
    def schema(self) -> pa.Schema:
        """The schema of the answer."""
        return pa.schema([each.field for each in self.selection])

    @cached_property
    def parts(self) -> dict[str, Part | str]:
        """What is read, by a short name each: parts of the Variant column, and ordinary columns."""
        wanted: dict[Part | str, None] = {}
        for each in (*self.selection, *self.hidden):
            wanted[self._wanted(each)] = None
        return {f"p{number}": part for number, part in enumerate(wanted)}

    def _wanted(self, each: Selected) -> Part | str:
        if each.path is None:
            assert each.column is not None
            return each.column
        assert self.kind is not None
        return part_of(self.kind, each.path, each.type)

    @property
    def filters_in_file(self) -> bool:
        """Whether Vortex applies a part of the filter, and so may skip zones of the file."""
        return self._filter() is not None

    def _filter(self) -> Any:
        if self.predicate is None or not self.pushdown or self.kind is None:
            return None
        named = {each.name: each for each in (*self.selection, *self.hidden)}
        return pushed_filter(self.predicate, named, self.column, self.kind)

    def batches(self) -> Iterator[pa.Table]:
        """The answer, some thousand rows at a time.

        Raises
        ------
        VariantFileError
            If the file cannot be read.
        MalformedVariantError
            If bytes that are read are malformed.
        """
        expr = vortex().expr
        pieces = {
            name: expr.column(part) if isinstance(part, str) else part.expression(self.column)
            for name, part in self.parts.items()
        }
        with vortex_errors(self.path):
            reader = arrow_reader(open_file(self.path), projection=expr.pack(pieces), expr=self._filter())
        for batch in batches_of(reader, self.path):
            yield self._answer(batch)

    def to_table(self) -> pa.Table:
        """The whole answer."""
        return pa.concat_tables([self.schema.empty_table(), *self.batches()])

    def _answer(self, batch: pa.RecordBatch) -> pa.Table:
        names = {part: name for name, part in self.parts.items()}
        storages: dict[str, Any] = {}
        columns = {}
        for each in (*self.selection, *self.hidden):
            name = names[self._wanted(each)]
            part = self.parts[name]
            if isinstance(part, str) or each.path is None:
                array = batch.column(name)
                if each.type is None:  # a Variant, whole
                    columns[each.name] = plain_storage(VariantArray.from_arrow(array))
                    continue
                columns[each.name] = array.cast(without_views(array.type, large=False))
                continue
            if name not in storages:
                storages[name] = storage_of_part(part, batch.column(name))
            target = VARIANT_STORAGE if each.type is None else each.type
            columns[each.name] = extract_path(storages[name], each.path, target, safe=False, zone=self.zone)
        table = pa.table([columns[each.name] for each in self.selection], schema=self.schema)
        if self.predicate is None:
            return table
        keep = evaluate(self.predicate, columns)
        return table.filter(pc.fill_null(keep, False))


def scan(
    path: Any,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    column: str | None = None,
    pushdown: bool = True,
    zone: str = "UTC",
) -> VortexScan:
    """Plan a query by path over a Vortex file; the answer is that of `pv.parquet.scan` over the same rows.

    Parameters
    ----------
    path
        The file.
    columns
        Output columns by name: ``("$.path", "type")``, ``"$.path:type"``, ``"$.path"`` (a Variant), or the name of an
        ordinary column of the file.
    where
        A filter: text such as ``"mag > 5 and place like 'x%'"``; tuples such as ``[("mag", ">", 5)]``; or a predicate.
    column
        The Variant column, if there are several.
    pushdown
        Whether Vortex may skip rows by the filter.
    zone
        The session time zone of casts.

    Raises
    ------
    VariantFileError
        If the file or a column is not there.
    PathError, PredicateError, SchemaError
        If a path, the filter or a type cannot be read.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.vortex.write(f"{folder}/a.vortex", pv.parse_json(['{"mag": 5.5}', '{"mag": 1}']))
    ...     scan(f"{folder}/a.vortex", {"mag": "$.mag:double"}, "mag > 2").to_table().to_pydict()
    {'mag': [5.5]}
    """
    question = Question.of(columns, where)
    with vortex_errors(path):
        schema = open_file(path).to_arrow().schema
    asked = question.bound(_with_types(schema, question.columns, path), zone)
    name = choose_variant(schema, column, path) if any(each.path is not None for each in asked.columns) else None
    kind = None if name is None else without_views(schema.field(name).type, large=False)
    return VortexScan(path, asked.selection, asked.hidden, asked.predicate, name, kind, pushdown, zone)


def _with_types(schema: pa.Schema, selection: tuple[Selected, ...], path: Any) -> tuple[Selected, ...]:
    """The selection with the types that ordinary columns have in the file."""
    typed, variants = [], variant_names(schema)
    for each in selection:
        if each.path is None:
            if each.column not in schema.names:
                raise VariantFileError(
                    f"there is no column {each.column!r} in {', '.join(schema.names)}; a path starts with $",
                    file=str(path),
                    reason="no-such-column",
                )
            kind = None
            if each.column not in variants:
                kind = without_views(schema.field(each.column).type, large=False)
            each = Selected(each.name, None, kind, each.column)
        typed.append(each)
    return tuple(typed)
