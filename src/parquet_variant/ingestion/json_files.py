"""JSON files as values: all of them, or only those that some paths lead to; and the operations of an open JSON table.

Owns reading the files in threads, in order. Leaves the steps to `batches`, removing the other values to
`kernels.tapes.tape`, and extraction to `tables.table.files`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.errors import VariantError, VariantFileError, check_choice
from parquet_variant.files.parquet.scanning.scan_plan import ScanReport
from parquet_variant.ingestion.batches import Pass
from parquet_variant.ingestion.request import JSON_NAMES, Sources, TextOptions
from parquet_variant.ingestion.sources.input_files import find_input_files
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.task import profile_splits
from parquet_variant.io.filesystems import path_texts
from parquet_variant.io.parallel import thread_count
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.tapes.tape import Tape, project
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.options import Errors
from parquet_variant.support.records import Record
from parquet_variant.tables.table.files import MemoryScan, select_columns, typed_paths
from parquet_variant.types.path import VariantPath

Result = TypeVar("Result")
Used = TypeVar("Used")
_COLUMN = "v"
_HEAD_BYTES = 4096


class JsonFiles(Record):
    """The values of JSON files."""

    splits: Sequence[Split]
    text: TextOptions = field(default_factory=TextOptions)

    @classmethod
    def of(cls, sources: Sources, text: TextOptions | None = None) -> JsonFiles:
        """Find the files. Raises `VariantFileError` for a source that does not exist."""
        text = text or TextOptions()
        return cls([Split(file) for file in find_input_files(sources, text.exclude, pipes=True)], text)

    def arrays(
        self,
        use: Callable[[VariantArray], Used],
        *,
        schema: ShreddingSchema | None = None,
        paths: Collection[VariantPath] | None = None,
        threads: int | None = None,
    ) -> Iterator[Used]:
        """Yield what `use` returns for each array of rows, in order; it is called in threads.

        `paths`: the paths that `use` looks at; the other fields of objects may be missing. None for whole values.
        """

        def work(tape: Tape) -> list[Used]:
            rows = shredded_rows(tape if paths is None else project(tape, paths), schema, per_batch=True)
            return [use(trusted_array(rows.storage(), fits_files=True))] if tape.rows else []

        return chain.from_iterable(self._each(work, threads))

    def read(self, schema: ShreddingSchema | None = None, threads: int | None = None) -> VariantArray:
        """Return all values, in order. Raises `VariantFileError` for files without values."""
        check_choice("on_error", self.text.on_error, ("fail", "null"))
        if self.text.string_types.auto:
            profile = profile_splits(self.text, thread_count(threads), 0, 0, self.splits)
            text = replace(self.text, string_types=self.text.string_types.resolved(profile))
            return JsonFiles(self.splits, text).read(schema, threads)
        if not (arrays := list(self.arrays(lambda array: array, schema=schema, threads=threads))):
            problem = "the sources hold no JSON value: name files that contain at least one"
            raise VariantFileError(problem, reason="no-rows")
        return VariantArray.concat(arrays)

    def keys(self, threads: int | None = None) -> frozenset[str]:
        """Return every key of the objects in the files."""
        keys = frozenset[bytes]().union(*self._each(lambda tape: frozenset(tape.key_list), threads))
        return frozenset(key.decode("utf-8", "surrogatepass") for key in keys)

    def _each(self, work: Callable[[Tape], Result], threads: int | None) -> Iterator[Result]:
        batches = Pass(self.text, work).results(self.splits, thread_count(threads))
        return chain.from_iterable(batch.results for batch in batches)


class JsonScan(MemoryScan, kw_only=True):
    """A planned query over JSON files, of which only the fields of its paths are kept, one part after the other."""

    files: JsonFiles
    threads: int | None = None

    @classmethod
    def of(cls, files: JsonFiles, columns: Any, where: Any = None, *, threads: int | None, **options: Any) -> JsonScan:
        """Return the scan of files; `options`: those of `MemoryScan.plan`."""
        rows = MemoryScan.plan(pa.table({_COLUMN: VariantArray.from_pylist([])}), columns, where, **options)
        return cls(**vars(rows), files=files, threads=threads)

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
        paths = [selected.path or VariantPath() for selected in self.question.columns]
        use = lambda array: self.result_of(pa.table({_COLUMN: array.storage}))  # noqa: E731
        schema = typed_paths(self.question.columns)
        results = self.files.arrays(use, schema=schema, paths=paths, threads=self.threads)
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
    try:
        return JsonScan.of(files, columns, where, threads=threads, errors=errors, zone=zone)
    except VariantFileError as error:
        raise error.at(file=files.splits[0].file.name) from None


def read_values(
    source: Any, column: str | None = None, *, threads: int | None = None, text: Mapping[str, Any] | None = None
) -> VariantArray:
    """Read all values of JSON files; see `Table.read`."""
    if column not in (None, _COLUMN):
        raise VariantError(f"unknown column {column}: JSON has the column {_COLUMN}", reason="no-such-column")
    return JsonFiles.of(source, TextOptions.of(**(text or {}), sources=path_texts(source))).read(threads=threads)


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
    return head[:1] in (b"{", b"[") or (JSON_NAMES.search(files[0].name) is not None and not head.startswith(b"PAR1"))
