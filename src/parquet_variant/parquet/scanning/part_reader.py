"""The columns of an answer from row groups of one file: leaf columns, spans of values, or what pyarrow reads.

Owns choosing among the three, column by column. Leaves which leaves a column needs to `scan_plan`, and the cast of a
value to `functions.variant_get`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from parquet_variant.array.parts import nested_array
from parquet_variant.encoding.cast.forms import cast_values
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import SchemaError
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.parquet.format.columns import find_variants
from parquet_variant.parquet.format.files import OpenFile
from parquet_variant.parquet.reading.read_table import plain_storage, plain_variants
from parquet_variant.parquet.scanning.scan_plan import FilePlan, GroupPlan
from parquet_variant.query.selection import Selected

if TYPE_CHECKING:
    from parquet_variant.compute.shredded_walk import Group
    from parquet_variant.compute.value_positions import ValuePositions
    from parquet_variant.parquet.reading.leaf_values import Spans

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_SMALL_DICTIONARY = 1 << 10


@dataclass(slots=True)
class PartReader:
    """Reads row groups of an open file that are read at once."""

    # What is read.
    file: OpenFile
    plan: FilePlan
    groups: list[GroupPlan]
    # The output columns and those that only the filter looks at; columns go by their number in it.
    selected: tuple[Selected, ...]
    safe: bool  # Whether a value that cannot be cast is an error.
    zone: str  # The session time zone of casts.
    dictionaries: frozenset[int]  # The numbers of the columns whose texts may be dictionaries.
    bytes_read: int = 0  # Compressed bytes of the column chunks that were read.

    def columns(self, outputs: list[int], kept: pa.BooleanArray | None = None) -> dict[int, pa.Array]:
        """The selected columns of some numbers, of the rows that are kept."""
        direct = {} if len(self.groups) > 1 else self._direct(outputs, kept)
        others = self._nested([number for number in outputs if number not in direct])
        if kept is not None:
            others = {number: column.filter(kept) for number, column in others.items()}
        return direct | others

    def _direct(self, outputs: list[int], kept: pa.BooleanArray | None) -> dict[int, pa.Array]:
        """The columns whose answers are the values of one leaf column, as far as we read its pages."""
        plan, group = self.plan, self.groups[0]
        if not plan.direct:
            return {}
        from parquet_variant.parquet.reading.leaf_values import leaf_values

        columns = {}
        rows = None if kept is None else to_numpy(kept)
        for number in outputs:
            leaf = plan.direct.get(number)
            if leaf is None or group.leaves[number] != (leaf.leaf,):
                continue
            kind = self.selected[number].type
            if number in self.dictionaries and kind == pa.string():
                kind = DICTIONARY
            assert kind is not None
            column = leaf_values(self.file, group.number, leaf, kind, rows)
            if column is not None:
                self.bytes_read += plan.chunk_bytes(self.file, [group], [number])
                columns[number] = column
        return columns

    def _nested(self, outputs: list[int]) -> dict[int, pa.Array]:
        """The selected columns of some numbers, as pyarrow reads them."""
        from parquet_variant.compute.extract_path import storage_group

        file, plan, first = self.file, self.plan, self.groups[0]
        rows = sum(file.metadata.row_group(group.number).num_rows for group in self.groups)
        storage: pa.StructArray | None = None
        group: Group | ValuePositions | None = None  # One for all paths: each distinct metadata is looked at once.
        table: pa.Table | None = None
        spans, leaves = self._spans(outputs, first.leaves_of(outputs))
        if leaves:
            table = file.read_leaves([group.number for group in self.groups], leaves)
            self.bytes_read += plan.chunk_bytes(file, self.groups, outputs)
        columns: dict[int, pa.Array] = {}
        for number in outputs:
            each = self.selected[number]
            if number in plan.constants:
                columns[number] = pa.repeat(plan.constants[number], rows)
            elif table is None or first.leaves[number] is None:
                columns[number] = pa.nulls(rows, each.field.type)
            elif each.path is None:
                columns[number] = self._ordinary(nested_array(table, [each.column or each.name]), each)
            else:
                assert plan.column is not None
                if storage is None:
                    storage = nested_array(table, plan.column.path)
                    if spans is None:
                        group = storage_group(storage)
                    else:
                        group = spans.value_positions(storage.field("metadata"))
                        paths = [self.selected[number].path for number in outputs]
                        group.look_up(path.segments for path in paths if path is not None)
                columns[number] = self._answer(storage, group, each)
        return columns

    def _spans(self, outputs: list[int], leaves: list[int]) -> tuple[Spans | None, list[int]]:
        """Where the values of an unshredded column lie, if they need not be copied, and the leaves left to read."""
        plan, selected = self.plan, [self.selected[number] for number in outputs]
        if plan.column is None or not plan.is_unshredded or len(self.groups) > 1:
            return None, leaves
        if any(each.path is not None and each.output is None for each in selected):
            return None, leaves
        metadata, value = plan.column.node.child("metadata"), plan.column.node.child("value")
        if metadata is None or value is None or not {metadata.leaf, value.leaf} <= set(leaves):
            return None, leaves
        from parquet_variant.parquet.reading.leaf_values import value_spans

        spans = value_spans(self.file, self.groups[0].number, plan.column)
        return spans, leaves if spans is None else [leaf for leaf in leaves if leaf != value.leaf]

    def _ordinary(self, column: pa.Array, each: Selected) -> pa.Array:
        name = each.column or each.name
        if any(variant.path[0] == name for variant in find_variants(self.file.schema)):
            column = nested_array(plain_variants(pa.table({name: column}), self.file), [name])
        if each.type is None or column.type == each.type:
            return column
        try:
            return cast_values(column, each.type)
        except pa.ArrowException:
            raise SchemaError(
                f"column {name} is {column.type} here, not {each.type} as in the first file",
                reason="files-differ",
            ) from None

    def _answer(self, storage: pa.StructArray, group: Group | ValuePositions | None, each: Selected) -> pa.Array:
        from parquet_variant.compute.extract_path import extract_from, extract_variant

        assert each.path is not None and group is not None
        if each.type is None and each.output is None:
            return plain_storage(extract_variant(storage, each.path))
        target = VARIANT_STORAGE if each.type is None else each.type
        return extract_from(group, each.path, target, safe=self.safe, zone=self.zone)


def in_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts as strings, or as a dictionary that is not much larger than they are."""
    from parquet_variant.parquet.reading.leaf_values import without_dictionary

    is_dictionary = pa.types.is_dictionary(column.type)
    if pa.types.is_dictionary(kind):
        if is_dictionary and len(column.dictionary) <= max(len(column), _SMALL_DICTIONARY):
            return column
        return (without_dictionary(column) if is_dictionary else column).dictionary_encode()
    return without_dictionary(column) if is_dictionary else column
