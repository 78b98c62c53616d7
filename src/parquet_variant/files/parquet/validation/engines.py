"""Engines that cannot read a file, or read it differently, with the reason.

Owns the table of limits of engines. ``engine_runs.json`` has what the engines did with a file of each trait, as
`benchmarks.engine_runs` measured it by `Table.compat`: a limit that the last run did not show is not reported. Leaves
the rules of the specification to the other modules of this package: these limits are not faults of a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa

from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.columns import VariantColumn, shredded_groups
from parquet_variant.files.parquet.report_text import Report, counted

RUNS_FILE = Path(__file__).with_name("engine_runs.json")


@cache
def _runs() -> dict[str, dict[str, str]]:
    """Return what engines did in the last run, by the engine and the trait of a limit."""
    runs: dict[str, dict[str, str]] = json.loads(RUNS_FILE.read_text("utf-8"))
    return runs


@dataclass(frozen=True, slots=True)
class EngineLimit:
    """A limit of an engine for files with a trait."""

    engine: str  # Name and version.
    trait: str  # The trait to which the limit applies (see `schema_traits` and `name_traits`).
    why: str  # The effect on a user, and how to avoid it.
    source: str  # The version and command that showed the limit, or a reference; the last run takes precedence.

    @property
    def run(self) -> dict[str, str] | None:
        """What the engine did in the last run; None if the limit is not measured by `Table.compat`."""
        return _runs().get(f"{self.engine}: {self.trait}")

    @property
    def evidence(self) -> str:
        """The last run as text, or else the reference."""
        if self.run is None:
            return self.source
        return f"variant compat, {self.run['engine']}: {self.run['verdict']}: {self.run['detail']}"


_NO_ANNOTATION = "cannot open a file with the VARIANT annotation (rewrite with --no-annotation)"
_AS_STRUCT = "reads the column as a plain struct"
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
        "Spark 4.3", "TIME", "has no TIME: reading the file fails with FAILED_READ_FILE", "4.3.0: spark.read.parquet(f)"
    ),
    EngineLimit(
        "Spark 4.3", "NANOS", "has no nanosecond timestamps: PARQUET_TYPE_ILLEGAL", "4.3.0: spark.read.parquet(f)"
    ),
    EngineLimit("Spark 4.3", "UUID", "has no UUID columns: PARQUET_TYPE_ILLEGAL", "4.3.0: spark.read.parquet(f)"),
    EngineLimit(
        "Spark 4.3", "utf16", "searches large objects in UTF-16 order: a key beyond U+FFFF may give NULL",
        "4.3.0: variant_get(v, '$.key')",
    ),
    EngineLimit("DuckDB 2.0", "no_value", "fails on a group without value", "2.0.1: SELECT v FROM 'f.parquet'"),
    EngineLimit(
        "DuckDB 2.0", "case_twins",
        "renames a field whose name differs from another one only in case (n, N: n_1); shred only one of them",
        "2.0.1: SELECT v::JSON FROM 'f.parquet'",
    ),
    EngineLimit(
        "polars 2.1", "annotated", _NO_ANNOTATION, "2.1.0: pl.read_parquet(f)",
    ),
    EngineLimit(
        "pyarrow before 22", "annotated", _NO_ANNOTATION, "21.0.0: pyarrow.parquet.read_table(f)",
    ),
    EngineLimit("pyarrow 22 and newer", "annotated", _AS_STRUCT, "23.0.0 and 26.0.1: pyarrow.parquet.read_table(f)"),
    EngineLimit(
        "Sail 0.7", "annotated", f"{_AS_STRUCT}, on which variant_get fails",
        "pysail 0.7.2: spark.sql(\"SELECT variant_get(v, '$.n', 'int') FROM parquet.`f.parquet`\")",
    ),
    EngineLimit(
        "ClickHouse", "annotated", "reads the column as a Tuple of its physical columns",
        "chDB 4.4.0: DESCRIBE file('f.parquet')",
    ),
    EngineLimit(
        "ClickHouse", "nested", "reads a missing object or array as an empty one: its Tuple and Array have no null",
        "chDB 4.4.0: SELECT v FROM file('f.parquet')",
    ),
    EngineLimit(
        "every engine", "draft", "the column has the layout of a draft that no release reads",
        "spark-shredding-draft-1-paths.md and spark-encoding-and-shredding-draft-2 (rewrite with --layout final)",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EngineNote(Report):
    """An engine that cannot read some of the files, or reads them differently."""

    engine: str
    why: str
    source: str
    files: int
    example: str

    def __str__(self) -> str:
        return f"{self.engine}: {self.why} ({counted(self.files, 'file')}, such as {self.example}; {self.source})"


def schema_traits(column: VariantColumn) -> list[str]:
    """Return the traits in the schema of a column that matter to engines."""
    traits = ["annotated"] if column.node.annotated else []
    if column.layout.startswith("draft"):
        return [*traits, "draft"]
    if column.layout == "final":
        traits.append("shredded")
    for group in shredded_groups(column):
        if group.residual is None:
            traits.append("no_value")
        if group.typed is not None and group.typed.is_leaf:
            traits += [trait.strip("(") for trait in ("TIME(", "NANOS", "UUID") if trait in group.typed.logical]
        elif group.typed is not None:
            names = set(group.typed.fields)
            traits += ["nested"] if group.path.segments else []
            traits += ["case_twins"] if len({name.casefold() for name in names}) < len(names) else []
    return traits


def name_traits(storage: pa.StructArray) -> list[str]:
    """Return the traits in the metadata dictionaries of a column."""
    metadata = storage.field("metadata")
    metadata = metadata if pa.types.is_dictionary(metadata.type) else metadata.dictionary_encode()
    for value in metadata.dictionary.to_pylist():
        try:
            names = decode_metadata(value or b"")
        except VariantError:
            continue
        if sorted(names) != sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass")):
            return ["utf16"]
    return []


def engine_notes(files_by_trait: Mapping[str, Sequence[str]]) -> list[EngineNote]:
    """Return a note for each engine with a limit for some of the files, in the order of the table."""
    return [
        EngineNote(limit.engine, limit.why, limit.evidence, len(files), files[0])
        for limit in ENGINE_LIMITS
        if (limit.run is None or limit.run["verdict"] != "equal") and (files := files_by_trait.get(limit.trait))
    ]
