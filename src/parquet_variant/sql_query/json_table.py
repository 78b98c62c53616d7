"""JSON files as a table with the column ``v``, whose values are read while a query runs.

Owns which values a query needs: a scan keeps the fields of its paths and skips the others. Leaves reading to
`ingestion.json_files`, and typing values to `batches` and `values_in_memory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.ingestion.json_files import JsonFiles
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.sql_query.batches import ArrowScan, ScanOptions
from parquet_variant.sql_query.values_in_memory import ValuesInMemory
from parquet_variant.support.fork_safety import cached_property

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
