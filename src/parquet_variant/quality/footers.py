"""Facts about the paths of a shredded column that the footer of a file proves: counts, types, bounds and lengths.

Owns the sum of the facts of row groups by path, and reading ``value`` columns: in a well-shredded file they are a small
part of the bytes, and together with the footer they describe every value. Leaves row groups and column chunks to
`files.parquet.format.facts`, and combining files to `summaries`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.format.columns import ShreddedGroup, VariantColumn, shredded_groups
from parquet_variant.files.parquet.format.facts import FileFacts
from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.path import WILDCARD, VariantPath

# Names of the levels of a list in the schema of a file.
_LIST_LEVELS = 2


class Residual(Enum):
    """The values in the ``value`` column of a shredded group."""

    # No value: every value is in ``typed_value``.
    EMPTY = auto()
    # Only Variant nulls.
    NULLS = auto()
    # Values that the footer does not describe: of other types, or objects with further fields.
    OPEN = auto()


@dataclass(frozen=True, slots=True)
class PathFacts:
    """Facts about the values of a path in one file; a count is None if it is unknown."""

    group: ShreddedGroup  # The columns of the path.
    typed: int | None  # Values in the typed column or group.
    elements: int | None  # Elements of the typed arrays.
    text_bytes: int | None  # Bytes of the strings in the typed column.
    stored: int | None  # Values in the ``value`` column, with objects that are partly shredded.
    residual: Residual
    open_groups: tuple[int, ...]  # The row groups whose ``value`` column is `Residual.OPEN`.

    @property
    def is_leaf(self) -> bool:
        """Whether the path is shredded as a primitive type."""
        return self.group.typed is not None and self.group.typed.leaf is not None

    @property
    def is_object(self) -> bool:
        """Whether the path is shredded as an object."""
        return self.group.typed is not None and self.group.typed.leaf is None and not self.group.typed.is_list


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """Facts about a Variant column in one file."""

    file: OpenFile  # Closed: to be opened again with `OpenFile.reopened`.
    column: VariantColumn
    columns: FileFacts  # By leaf column and row group.
    null_rows: int | None  # SQL NULL rows; None if unknown.
    paths: dict[VariantPath, PathFacts]  # Parents first.

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.columns.rows()

    def places(self, path: VariantPath) -> int | None:
        """Return the number of places for a value at a path whose parent is shredded; None if unknown."""
        if not path.segments:
            return None if self.null_rows is None else self.rows - self.null_rows
        parent = self.paths.get(path.parent)
        if parent is None:
            return None
        return parent.elements if path.segments[-1] is WILDCARD else parent.typed

    def open_paths(self) -> dict[VariantPath, int]:
        """Return the paths whose ``value`` columns the footer does not describe, with the bytes of these columns."""
        return {
            path: self.columns.size([facts.group.residual], facts.open_groups)
            for path, facts in self.paths.items()
            if facts.residual is Residual.OPEN and facts.group.residual is not None
        }


def variant_facts(opened: OpenFile, column: VariantColumn) -> VariantFacts | None:
    """Return what the footer of an open file proves about a Variant column; None for the layouts of the drafts."""
    if column.layout not in ("unshredded", "final") or column.repeated:
        return None
    facts = opened.facts
    paths = {group.path: _path_facts(group, facts) for group in shredded_groups(column)}
    present = total(facts.present(column.node, number) for number in facts.groups)
    null_rows = None if present is None else facts.rows() - present
    return VariantFacts(replace(opened, _reader=None), column, facts, null_rows, paths)


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown.

    >>> total([1, 2]), total([1, None])
    (3, None)
    """
    known_counts = list(counts)
    return None if None in known_counts else sum(count or 0 for count in known_counts)


def _path_facts(group: ShreddedGroup, facts: FileFacts) -> PathFacts:
    typed: int | None = 0
    elements: int | None = 0
    text_bytes: int | None = 0
    if group.typed is not None and group.typed.is_list:
        lists = [facts.lists(group.typed, number) for number in facts.groups]
        typed, elements = total(count for count, _ in lists), total(count for _, count in lists)
    elif group.typed is not None:
        typed = total(facts.present(group.typed, number) for number in facts.groups)
        if group.typed.leaf is not None:
            text_bytes = total(facts.level_counts(group.typed, number).text_bytes for number in facts.groups)
    residual = group.residual
    if residual is None:
        return PathFacts(group, typed, elements, text_bytes, 0, Residual.EMPTY, ())
    stored = total(facts.present(residual, number) for number in facts.groups)
    filled = [number for number in facts.groups if not facts.is_empty(residual, groups=[number])]
    open_groups = [number for number in filled if not facts.is_empty(residual, variant_nulls=True, groups=[number])]
    kind = Residual.OPEN if open_groups else Residual.NULLS if filled else Residual.EMPTY
    return PathFacts(group, typed, elements, text_bytes, stored, kind, tuple(open_groups))


# ---- values in ``value`` columns


class ResidualValues(NamedTuple):
    """Values of one path in the ``value`` column, without nulls, and their row in the file."""

    path: VariantPath
    values: VariantArray
    rows: npt.NDArray[np.int64]


def has_old_list(facts: VariantFacts, path: VariantPath) -> bool:
    """Return whether a path is in a list without the three levels of the specification."""
    residual = facts.paths[path].group.residual
    if residual is None or not path.has_wildcard:
        return False
    names = residual.path
    return any(names[at + 1] != "element" for at, name in enumerate(names[:-1]) if name == "list" and at)


def read_residuals(facts: VariantFacts, paths: Collection[VariantPath]) -> Iterator[ResidualValues]:
    """Yield the values at some paths that the footer does not describe."""
    chosen = [(path, facts.paths[path]) for path in facts.open_paths() if path in paths]
    metadata = facts.column.node.child("metadata")
    if not chosen or metadata is None:
        return
    with facts.file.reopened() as file:
        for number in facts.columns.groups:
            nodes = {path: of.group.residual for path, of in chosen if number in of.open_groups and of.group.residual}
            if not nodes:
                continue
            leaves = [node.leaf for node in (metadata, *nodes.values()) if node.leaf is not None]
            column = nested_array(file.read_leaves([number], sorted(leaves)), facts.column.path)
            names, first_row = pc.struct_field(column, ["metadata"]), facts.columns.rows(range(number))
            for path, node in nodes.items():
                values, rows = _flattened(column, node.path[len(facts.column.path) :])
                storage = pa.StructArray.from_arrays([names.take(pa.array(rows)), values], ["metadata", "value"])
                yield ResidualValues(path, VariantArray.from_storage(storage), rows + first_row)


def _flattened(array: pa.Array, names: Sequence[str]) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the values of a nested column, without nulls, and the row of each."""
    rows = np.arange(len(array), dtype=np.int64)
    at = 0
    while at < len(names):
        if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            rows = rows[np.asarray(pc.list_parent_indices(array))]
            array = pc.list_flatten(array)
            at += _LIST_LEVELS
        else:
            array = pc.struct_field(array, [names[at]])
            at += 1
    is_value = array.is_valid()
    return array.filter(is_value), rows[np.asarray(is_value)]
