"""Which engines will not read a file as it is, and why.

Owns the table of what engines were found to refuse, each line with its source. Leaves rules of the specification to the
other validation modules: nothing here is the file's fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.errors import VariantError
from parquet_variant.parquet.format.columns import VariantColumn
from parquet_variant.parquet.format.files import OpenFile
from parquet_variant.parquet.report_text import Report, counted
from parquet_variant.parquet.scanning.groups import shredded_groups


@dataclass(frozen=True, slots=True)
class EngineLimit:
    """What an engine does with files that have a trait.

    Parameters
    ----------
    engine
        Name and versions.
    trait
        The trait of `FileTraits` that it is about.
    why
        What happens.
    source
        Where this is known from.
    """

    engine: str
    trait: str
    why: str
    source: str


_MEASURED = "measured 2026-11-20"
ENGINE_LIMITS = (
    EngineLimit(
        "Spark before 4.1", "annotated", "does not know the VARIANT annotation (rewrite with --no-annotation)",
        "SPARK-54410, github.com/apache/spark/pull/53120",
    ),
    EngineLimit(
        "Spark before 4.1", "shredded", "does not read shredded Variants by default (rewrite with --layout unshredded)",
        "SPARK-54454, github.com/apache/spark/pull/53164",
    ),
    EngineLimit(
        "Spark 4.3", "TIME", "has no TIME: reading the file fails with FAILED_READ_FILE", f"{_MEASURED} with 4.3.0"
    ),
    EngineLimit(
        "Spark 4.3", "NANOS", "has no nanosecond timestamps: PARQUET_TYPE_ILLEGAL", f"{_MEASURED} with 4.3.0"
    ),
    EngineLimit("Spark 4.3", "UUID", "has no UUID columns: PARQUET_TYPE_ILLEGAL", f"{_MEASURED} with 4.3.0"),
    EngineLimit(
        "Spark 4.3", "utf16", "searches large objects in UTF-16 order: a key beyond U+FFFF may give NULL",
        f"{_MEASURED} with 4.3.0",
    ),
    EngineLimit("DuckDB 2.0", "no_value", "fails on a group without value", f"{_MEASURED} with 2.0.0"),
    EngineLimit("polars 2.1", "annotated", "cannot open a file with the VARIANT annotation", f"{_MEASURED} with 2.1.0"),
    EngineLimit("pyarrow 26", "annotated", "reads the column as a plain struct", f"{_MEASURED} with 26.0.1"),
    EngineLimit(
        "every engine", "draft", "the column has the layout of a draft that no release reads",
        "spark-shredding-draft-1-paths.md and spark-encoding-and-shredding-draft-2 (rewrite with --layout final)",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EngineNote(Report):
    """An engine that will not read some of the files."""

    engine: str
    why: str
    source: str
    files: int
    example: str

    def __str__(self) -> str:
        return f"{self.engine}: {self.why} ({counted(self.files, 'file')}, such as {self.example}; {self.source})"


@dataclass(slots=True)
class FileTraits:
    """What is known of the files that matters to engines: for each trait, the files that have it."""

    files: dict[str, list[str]] = field(default_factory=dict)
    _current: str = ""

    def _add(self, trait: str, file: str) -> None:
        known = self.files.setdefault(trait, [])
        if file not in known[-1:]:
            known.append(file)

    def add_column(self, file: OpenFile, column: VariantColumn) -> None:
        """Note what the schema of a column shows."""
        self._current = file.name
        if column.node.annotated:
            self._add("annotated", file.name)
        if column.layout.startswith("draft"):
            self._add("draft", file.name)
            return
        if column.layout == "final":
            self._add("shredded", file.name)
        for group in shredded_groups(column):
            if group.residual is None:
                self._add("no_value", file.name)
            logical = group.typed.logical if group.typed is not None and group.typed.leaf is not None else ""
            for trait in ("TIME(", "NANOS", "UUID"):
                if trait in logical:
                    self._add(trait.strip("("), file.name)

    def add_names(self, storage: pa.StructArray) -> None:
        """Note what the dictionaries of the current file show."""
        metadata = storage.field("metadata")
        metadata = metadata if pa.types.is_dictionary(metadata.type) else metadata.dictionary_encode()
        for each in metadata.dictionary.to_pylist():
            try:
                names = decode_metadata(each or b"")
            except VariantError:
                continue
            if sorted(names) != sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass")):
                self._add("utf16", self._current)
                return


def engine_notes(traits: FileTraits) -> list[EngineNote]:
    """The engines that will not read some of the files, in the order of the table."""
    return [
        EngineNote(limit.engine, limit.why, limit.source, len(files), files[0])
        for limit in ENGINE_LIMITS
        if (files := traits.files.get(limit.trait))
    ]
