"""The operations of an open JSON table: a query by path over JSON files, and reading all values.

Owns the scan. Leaves parsing to `json_files`, and extraction to `tables.table.memory_scan`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.files.parquet.scanning.scan_plan import ScanReport
from parquet_variant.ingestion.ingest import read_json
from parquet_variant.ingestion.json_files import JsonFiles
from parquet_variant.ingestion.request import TextOptions
from parquet_variant.ingestion.sources.input_files import find_input_files
from parquet_variant.query.selection import PlannedQuery
from parquet_variant.support.choices import Errors
from parquet_variant.tables.table.memory_scan import MemoryScan, select_columns
from parquet_variant.types.path import VariantPath

_COLUMN = "v"
_HEAD_BYTES = 4096
# Files with these names, perhaps compressed, are read as JSON unless they are Parquet files.
_JSON_NAMES = re.compile(r"\.(json|ndjson|jsonl)(\.\w+)?$", re.IGNORECASE)


@dataclass(frozen=True)
class JsonScan(PlannedQuery):
    """A planned query over JSON files: only the fields of its paths are kept.

    `files`: the files.
    `rows`: the query over the rows of a part of the files.
    `threads`: number of threads (default: one per CPU).
    """

    files: JsonFiles
    rows: MemoryScan
    threads: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self.rows.schema

    @property
    def bytes_read(self) -> int:
        """The bytes of the files, which are read as a whole."""
        return sum(split.file.size for split in self.files.splits)

    def explain(self) -> ScanReport:
        """Report the files and their bytes, all of which are read."""
        count = len(self.files.splits)
        return ScanReport(count, count, bytes_read=self.bytes_read, bytes_total=self.bytes_read)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in parts with at least one row."""
        paths = [selected.path or VariantPath() for selected in self.rows.every_column]
        results = self.files.arrays(
            lambda array: self.rows.result_of(pa.table({_COLUMN: array.storage})), paths=paths, threads=self.threads
        )
        return (result for result in results if len(result))


def scan_json(
    table: Any,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    errors: Errors = "null",
    zone: str = "UTC",
    threads: int | None = None,
    text: Mapping[str, Any] | None = None,
) -> JsonScan:
    """Plan a query over JSON files; see `Table.scan`."""
    files = JsonFiles.of(table, TextOptions.of(**(text or {})))
    empty = pa.table({_COLUMN: VariantArray.from_pylist([])})
    try:
        rows = MemoryScan.plan(empty, columns, where, column=_COLUMN, errors=errors, zone=zone)
    except VariantFileError as error:
        raise error.at(file=files.splits[0].file.name) from None
    return JsonScan(files, rows, threads)


def read_values(
    source: Any, column: str | None = None, *, threads: int | None = None, text: Mapping[str, Any] | None = None
) -> VariantArray:
    """Read all values of JSON files; see `Table.read`."""
    if column not in (None, _COLUMN):
        raise VariantError(f"unknown column {column}: JSON has the column {_COLUMN}", reason="no-such-column")
    return read_json(source, threads=threads, **(text or {}))


def read_table(
    source: Any,
    columns: Sequence[str] | None = None,
    *,
    threads: int | None = None,
    text: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Read all values of JSON files as a table with the column ``v``; see `Table.to_arrow`."""
    array = read_values(source, threads=threads, text=text)
    return select_columns(pa.table([array.storage], schema=pa.schema([array.arrow_field.with_name(_COLUMN)])), columns)


def schema_of(source: Any) -> pa.Schema:
    """Return the schema of JSON files; see `Table.schema`."""
    return pa.schema([VariantArray.from_pylist([]).arrow_field.with_name(_COLUMN)])


def is_json(source: Any) -> bool:
    """Return whether paths name JSON files, plain or compressed, by their first bytes or their names."""
    try:
        files = find_input_files(source)
        if any(file.name.endswith(".parquet") for file in files):
            return False
    except VariantError:
        return False  # the reader of the path raises the error
    try:
        with files[0].open_text() as stream:
            head = bytes(stream.read(_HEAD_BYTES)).removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\x1e")
    except VariantError:
        head = b""  # damaged compression: the name of the file decides
    return head[:1] in (b"{", b"[") or (_JSON_NAMES.search(files[0].name) is not None and not head.startswith(b"PAR1"))
