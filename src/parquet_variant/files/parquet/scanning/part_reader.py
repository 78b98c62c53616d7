"""Reading the selected columns from row groups of one file: leaf columns, spans of values, or pyarrow's tables.

Owns the choice among these three for each column. Leaves the leaf columns that a selected column needs to `scan_plan`,
and extraction and casts of values to `compute`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from parquet_variant.arrays.parts import nested_array
from parquet_variant.errors import SchemaError
from parquet_variant.files.parquet.format.columns import find_variants
from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.files.parquet.reading.column_values import DICTIONARY
from parquet_variant.files.parquet.reading.read import plain_storage, plain_variants, variant_storage
from parquet_variant.files.parquet.scanning.scan_plan import FilePlan, GroupPlan
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.query.selection import Selected
from parquet_variant.types.forms import cast_values
from parquet_variant.types.targets import VARIANT_STORAGE

if TYPE_CHECKING:
    from parquet_variant.files.parquet.reading.column_values import Spans
    from parquet_variant.ops.columns.extract_path import Group
    from parquet_variant.ops.columns.value_positions import ValuePositions

_SMALL_DICTIONARY = 1 << 10


@dataclass(slots=True)
class PartReader:
    """A reader of row groups of an open file that are read together."""

    file: OpenFile
    plan: FilePlan
    groups: list[GroupPlan]
    # The output columns and the columns that only the filter needs; methods take their numbers in this tuple.
    selected: tuple[Selected, ...]
    safe: bool  # Whether a value that cannot be cast is an error.
    zone: str  # The session time zone of casts.
    dictionaries: frozenset[int]  # Numbers of string columns that may be read as dictionaries.
    bytes_read: int = 0  # Compressed bytes of the column chunks that were read.

    def columns(self, outputs: list[int], mask: pa.BooleanArray | None = None) -> dict[int, pa.Array]:
        """Return some selected columns by number, of the rows where `mask` is true."""
        direct = {} if len(self.groups) > 1 else self._columns_of_pages(outputs, mask)
        nested = self._columns_of_tables([number for number in outputs if number not in direct])
        if mask is not None:
            nested = {number: column.filter(mask) for number, column in nested.items()}
        return direct | nested

    def _columns_of_pages(self, outputs: list[int], mask: pa.BooleanArray | None) -> dict[int, pa.Array]:
        """Return the columns that are the values of one leaf column, if `column_values` can read its pages."""
        plan, group = self.plan, self.groups[0]
        if not plan.direct:
            return {}
        from parquet_variant.files.parquet.reading.column_values import column_values

        columns = {}
        rows = None if mask is None else to_numpy(mask)
        for number in outputs:
            leaf = plan.direct.get(number)
            if leaf is None or group.leaves[number] != (leaf.leaf,):
                continue
            kind = self.selected[number].type
            if number in self.dictionaries and kind == pa.string():
                kind = DICTIONARY
            assert kind is not None
            column = column_values(self.file, group.number, leaf, kind, rows)
            if column is not None:
                self.bytes_read += plan.chunk_bytes(self.file, [group], [number])
                columns[number] = column
        return columns

    def _columns_of_tables(self, outputs: list[int]) -> dict[int, pa.Array]:
        """Return some selected columns by number, from tables that pyarrow reads."""
        from parquet_variant.ops.columns.extract_path import extract_from, extract_variant, storage_group

        file, plan, first = self.file, self.plan, self.groups[0]
        rows = file.facts.rows(group.number for group in self.groups)
        storage: pa.StructArray | None = None
        # Shared by all paths, so that each distinct metadata is decoded once.
        group: Group | ValuePositions | None = None
        table: pa.Table | None = None
        spans, leaves = self._spans(outputs, first.leaves_of(outputs))
        if leaves:
            table = file.read_leaves([group.number for group in self.groups], leaves)
            self.bytes_read += plan.chunk_bytes(file, self.groups, outputs)
        columns: dict[int, pa.Array] = {}
        for number in outputs:
            selected = self.selected[number]
            if number in plan.constants:
                columns[number] = pa.repeat(plan.constants[number], rows)
            elif table is None or first.leaves[number] is None:
                columns[number] = pa.nulls(rows, selected.field.type)
            elif selected.path is None:
                columns[number] = self._ordinary_column(nested_array(table, [selected.stored_name]), selected)
            else:
                assert plan.column is not None
                if storage is None:
                    storage = variant_storage(table, plan.column)
                    if spans is None:
                        group = storage_group(storage)
                    else:
                        group = spans.value_positions(storage.field("metadata"))
                        paths = [self.selected[number].path for number in outputs]
                        group.look_up(path.segments for path in paths if path is not None)
                assert group is not None
                if selected.output is None and selected.type is None:
                    columns[number] = plain_storage(extract_variant(storage, selected.path))
                else:
                    target = VARIANT_STORAGE if selected.type is None else selected.type
                    columns[number] = extract_from(
                        group, selected.path, target, safe=self.safe, zone=self.zone, lossless=selected.lossless
                    )
        return columns

    def _spans(self, outputs: list[int], leaves: list[int]) -> tuple[Spans | None, list[int]]:
        """Return the spans of unshredded values, if they need not be copied, and the leaves that pyarrow must read."""
        plan, selected = self.plan, [self.selected[number] for number in outputs]
        if plan.column is None or not plan.is_unshredded or len(self.groups) > 1:
            return None, leaves
        # Whole values, of a path or of the column, are copied.
        if any(
            item.output is None if item.path is not None else item.stored_name == plan.column.path[0]
            for item in selected
        ):
            return None, leaves
        metadata, value = plan.column.node.child("metadata"), plan.column.node.child("value")
        if metadata is None or value is None or not {metadata.leaf, value.leaf} <= set(leaves):
            return None, leaves
        from parquet_variant.files.parquet.reading.column_values import value_spans

        spans = value_spans(self.file, self.groups[0].number, plan.column)
        return spans, leaves if spans is None else [leaf for leaf in leaves if leaf != value.leaf]

    def _ordinary_column(self, column: pa.Array, selected: Selected) -> pa.Array:
        name = selected.stored_name
        if any(variant.path[0] == name for variant in find_variants(self.file.schema)):
            column = nested_array(plain_variants(pa.table({name: column}), self.file), [name])
        if selected.type is None or column.type == selected.type:
            return column
        try:
            return cast_values(column, selected.type)
        except pa.ArrowException:
            raise SchemaError(
                f"column {name} is {column.type}, but {selected.type} in the first file: cast it in one of the files",
                reason="files-differ",
            ) from None


def in_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return strings as plain strings, or as a dictionary that is not much larger than the rows."""
    from parquet_variant.files.parquet.reading.column_values import without_dictionary

    is_dictionary = pa.types.is_dictionary(column.type)
    if pa.types.is_dictionary(kind):
        if is_dictionary and len(column.dictionary) <= max(len(column), _SMALL_DICTIONARY):
            return column
        return (without_dictionary(column) if is_dictionary else column).dictionary_encode()
    return without_dictionary(column) if is_dictionary else column
