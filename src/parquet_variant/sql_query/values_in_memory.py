"""Facts about the Variants of an Arrow table or of JSON files: the keys of objects, and the only type of a path.

Owns conclusions from values, and scans of JSON files: a scan keeps the fields of its paths and skips the others. Leaves
conclusions from footers to `files.parquet.scanning.projection`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.field_names import keys_of_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.inference.columns import best_column
from parquet_variant.inference.profile import Profile
from parquet_variant.kernels.operations import get
from parquet_variant.kernels.records import KIND
from parquet_variant.ops.columns.extract_path import extract_variant
from parquet_variant.ops.columns.value_positions import ValuePositions
from parquet_variant.ops.value_types import variant_type
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.sql_query.batches import ArrowScan, ScanOptions
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types import EXACT_NUMERIC, INTEGERS, TYPE_OF_ID, TYPES, PrimitiveId, VariantType
from parquet_variant.types.path import VariantPath

if TYPE_CHECKING:
    from parquet_variant.ingestion.json_files import JsonFiles

_NOT_TYPED = (VariantType.NULL, VariantType.ARRAY, VariantType.OBJECT)


@dataclass(frozen=True)
class ValuesInMemory:
    """The Variant columns of an Arrow table; each fact is found once."""

    table: pa.Table
    _types: dict[tuple[str, VariantPath, bool], pa.DataType | None] = field(
        default_factory=dict, init=False, repr=False
    )

    def keys(self, name: str) -> frozenset[str] | None:
        """Return every key of the objects in a column; None if the table does not have the column."""
        if name not in self.table.column_names:
            return None
        return frozenset(
            key
            for chunk in self.table[name].chunks
            for key in keys_of_storage(VariantArray(chunk).to_unshredded().storage)
        )

    def common_type(self, name: str, path: VariantPath, *, nulls: bool = True) -> pa.DataType | None:
        """Return the type that every value at a path has, as a shredded column would; None if there is none.

        `nulls`: whether values may also be Variant null.
        Raises `MalformedVariantError` if the bytes of a value are malformed.

        >>> import parquet_variant as pv
        >>> rows = ValuesInMemory(pa.table({"v": pv.parse_json(['{"a": 1, "b": 1}', '{"a": 2, "b": "x"}']).storage}))
        >>> rows.common_type("v", VariantPath.parse("$.a")), rows.common_type("v", VariantPath.parse("$.b"))
        (DataType(int64), None)
        """
        if name not in self.table.column_names or not all(isinstance(step, (str, int)) for step in path.segments):
            return None
        if (name, path, nulls) not in self._types:
            self._types[name, path, nulls] = self._common_type(name, path, nulls)
        return self._types[name, path, nulls]

    def _common_type(self, name: str, path: VariantPath, nulls: bool) -> pa.DataType | None:
        types = {kind for chunk in self.table[name].chunks for kind in _types_at(chunk, path)}
        if nulls:
            types.discard(VariantType.NULL)
        if types <= set(INTEGERS):
            return pa.int64() if types else None
        if not types <= set(EXACT_NUMERIC):
            only = next(iter(types)) if len(types) == 1 else VariantType.NULL
            return None if only in _NOT_TYPED else TYPES[only].arrow
        values = (extract_variant(VariantArray(chunk).storage, path) for chunk in self.table[name].chunks)
        profile = reduce(Profile.merge, map(Profile.of_array, values), Profile()).root
        column = None if profile is None else best_column(profile)  # decimals need the digits of all values
        return None if column is None or column.share < 1 else column.arrow


def _types_at(chunk: pa.Array, path: VariantPath) -> set[VariantType]:
    """Return the types of the values at a path."""
    storage = VariantArray(chunk).storage
    if VariantArray(chunk).layout == "unshredded":
        positions = ValuePositions.of_storage(storage)
        for step in path.segments:
            assert isinstance(step, (str, int))
            positions = positions.key(step) if isinstance(step, str) else positions.index(step)
        return {_type_of_kind(kind) for kind in np.unique(positions.slots().kinds).tolist() if kind != get.MISSING}
    names = pc.unique(variant_type(extract_variant(storage, path))).to_pylist()
    return {VariantType(name) for name in names if name is not None}


def _type_of_kind(kind: int) -> VariantType:
    if kind in (KIND.ARRAY, KIND.OBJECT):
        return VariantType.ARRAY if kind == KIND.ARRAY else VariantType.OBJECT
    return TYPE_OF_ID[PrimitiveId(kind)].type


COLUMN = "v"


@dataclass(frozen=True)
class JsonScan:
    """A planned scan of paths of JSON files."""

    files: JsonFiles
    needed: dict[str, NeededColumn]
    options: ScanOptions

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return self._arrow_scan(VariantArray.from_pylist([])).schema

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows in batches."""
        paths = [column.path for column in self.needed.values() if column.path is not None]
        use = lambda array: list(self._arrow_scan(array).batches())  # noqa: E731 - runs in the threads that parse
        for tables in self.files.arrays(use, paths=paths, threads=self.options.threads):
            yield from tables

    def _arrow_scan(self, array: VariantArray) -> ArrowScan:
        return ArrowScan(pa.table({COLUMN: array.storage}), self.needed, self.options)


@dataclass(frozen=True)
class JsonTable:
    """The values of JSON files as a column, and facts about them, which need a pass over the files each."""

    files: JsonFiles
    _types: dict[tuple[VariantPath, bool], pa.DataType | None] = field(default_factory=dict, init=False, repr=False)

    def scan(self, needed: Mapping[str, NeededColumn], _: Predicate | None, options: ScanOptions) -> JsonScan:
        """Plan a scan."""
        root = VariantPath()
        paths = {name: replace(column, path=root) if column.path is None else column for name, column in needed.items()}
        return JsonScan(self.files, paths, options)

    def keys(self, name: str) -> frozenset[str] | None:
        """Return every key of the objects; None for another column."""
        return self.files.keys() if name == COLUMN else None

    def common_type(self, name: str, path: VariantPath, *, nulls: bool = True) -> pa.DataType | None:
        """Return the type that every value at a path has; see `ValuesInMemory.common_type`."""
        if name != COLUMN:
            return None
        if (path, nulls) not in self._types:
            arrays: list[Any] = list(self.files.arrays(lambda array: array.storage, paths=[path]))
            values = ValuesInMemory(pa.table({COLUMN: pa.chunked_array(arrays)}))
            for allowed in (False, True):
                self._types[path, allowed] = values.common_type(COLUMN, path, nulls=allowed)
        return self._types[path, nulls]
