"""`IngestRequest`: all that an ingest is asked for, the same from Python, the command line and Spark.

Owns the options' names, their defaults, and the errors for what cannot be, before any file is opened. Leaves doing it
to `job`, and what each option of a file means to the writers.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias, TypedDict, Unpack, get_args

import pyarrow as pa

from parquet_variant.choices import InputFormat, Mode, OnError, OutputFormat, VortexLayout
from parquet_variant.errors import VariantError, bad_option, check_choice, check_names
from parquet_variant.ingestion.formats.layout import Layout, our_name
from parquet_variant.ingestion.output_formats import FORMAT_RULES
from parquet_variant.ingestion.partition_by import PartitionBy, PartitionColumns
from parquet_variant.ingestion.splits import CHUNK_BYTES
from parquet_variant.interop.table_of import is_rows, table_of
from parquet_variant.io.staging import check_mode
from parquet_variant.kernels.shredding.json_batch import JsonOptions
from parquet_variant.parquet.format.bloom import check_bloom_paths
from parquet_variant.parquet.writing.options import Writer
from parquet_variant.path import VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.infer import policy_named
from parquet_variant.shredding.policies.decision import Policy
from parquet_variant.shredding.typed_texts import TextTypes

# Also rows in memory, with `json_column`.
Sources: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Any"


class TextKeywords(TypedDict, total=False):
    """The keywords of every reading of JSON; `pv.ingest` says what they mean."""

    sample: float | None
    on_error: OnError
    input_format: InputFormat
    root: str | VariantPath | None
    json_column: str | None
    types: Mapping[str, str] | None
    detect_timestamps: bool | None
    parse: Mapping[str, Any] | None


class IngestOptions(TextKeywords, total=False):
    """The keywords of every `ingest`; `pv.ingest` says what they mean."""

    schema: ShreddingSchema | str | None
    policy: Policy | str | None
    readers: str | Iterable[str]
    column: str
    mode: Mode
    split_bytes: int | None
    preview: bool
    partition_by: PartitionColumns
    one_file: bool
    # Of Parquet files, also those of a Delta table.
    compression: str
    compression_level: int | None
    row_group_bytes: int
    annotation: bool
    sort_by: Sequence[str] | str
    bloom_filters: Collection[str] | str
    writer: Writer
    # Of the files of a Delta table.
    file_bytes: int
    # Of Vortex files.
    layout: VortexLayout
    exact: bool
    compact: bool


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How JSON text is read, by every task."""

    # ``"fail"``: the first bad line ends the job; ``"quarantine"``: it goes to the bad records; ``"null"``: it is SQL
    # NULL.
    on_error: OnError = "fail"
    layout: Layout = field(default_factory=Layout)  # How the values lie in the text.
    json_column: str | None = None  # The column of tables that holds JSON; None if the sources are texts.
    # Whether these tables are the files in which Spark put a DataFrame aside; rows are told by its partitions then.
    of_dataframe: bool = False
    texts: TextTypes = field(default_factory=TextTypes)  # Which strings become dates, timestamps, UUIDs or binary.
    sample: float | None = None  # Share of the lines that is profiled, above 0 up to 1; None leaves it to the job.
    json: JsonOptions = field(default_factory=JsonOptions)  # Options of `parse_json`.
    chunk_bytes: int = CHUNK_BYTES  # Text parsed at a time.

    def __post_init__(self) -> None:
        check_choice("on_error", self.on_error, get_args(OnError))
        if self.json_column is not None and not (isinstance(self.json_column, str) and self.json_column):
            raise bad_option(f"json_column is {self.json_column!r}: name the column that holds JSON")
        if self.json_column is not None and self.layout.format not in ("auto", "csv"):
            raise bad_option(
                f"json_column is for tables, and input_format is {self.layout.format!r}: leave one of them out"
            )
        if self.sample is not None and not 0 < self.sample <= 1:
            raise bad_option(f"sample is {self.sample}: give a share above 0 and up to 1")

    @classmethod
    def of(
        cls,
        *,
        parse: Mapping[str, Any] | None = None,
        input_format: InputFormat = "auto",
        root: str | VariantPath | None = None,
        types: Mapping[str, str] | None = None,
        detect_timestamps: bool | None = None,
        **options: Any,
    ) -> TextOptions:
        """The options, with those of the parser by name; of CSV and XML, those of their readers too."""
        known = [each.name for each in fields(JsonOptions)]
        by_our_name = {our_name(name): value for name, value in (parse or {}).items()}
        of_json = {name: value for name, value in by_our_name.items() if name in known}
        others = {name: value for name, value in by_our_name.items() if name not in known}
        if options.get("json_column") is not None and input_format == "csv":
            input_format = "auto"  # a table is known by its beginning, and all else is CSV
        elif others and input_format not in ("csv", "xml") and options.get("json_column") is None:
            check_names("parse option", others, known)
        layout = Layout.of(input_format, root=root, parse=others)
        # As Spark does for its singleVariantColumn.
        detect = layout.format == "csv" if detect_timestamps is None else detect_timestamps
        texts = TextTypes(dict(types or {}), detect)
        return cls(json=JsonOptions(**of_json), layout=layout, texts=texts, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """What to read, what to make of it and where to write it; can be pickled. The options mean what `ingest` says.

    Raises `VariantError` for options that cannot be, with a reason such as ``"bad-option"``, ``"bad-mode"`` or
    ``"bad-policy"``.

    >>> request = IngestRequest.of("logs/*.ndjson", "logs.parquet", schema="id bigint", compression="snappy")
    >>> request.schema.to_ddl(), request.write
    ('id bigint', {'compression': 'snappy'})
    """

    sources: tuple[str, ...]
    dest: str
    text: TextOptions = field(default_factory=TextOptions)  # How the JSON is read.
    format: OutputFormat = "parquet"
    schema: ShreddingSchema | None = None
    policy: Policy | None = None
    column: str = "v"
    mode: Mode = "error"
    split_bytes: int | None = None
    preview: bool = False
    partition_by: PartitionBy = field(default_factory=PartitionBy)
    one_file: bool = False
    write: Mapping[str, Any] = field(default_factory=dict)  # Options of the files.
    rows: pa.Table | None = field(default=None, repr=False)  # Rows in memory, in the place of `sources`.

    def __post_init__(self) -> None:
        check_choice("format", self.format, get_args(OutputFormat))
        check_mode(self.mode)
        if not self.dest:
            raise bad_option("the destination is empty: name a directory, a file or a table")
        if not isinstance(self.column, str) or not self.column:
            raise bad_option(f"column is {self.column!r}: give the variant column a name")
        if self.split_bytes is not None and self.split_bytes < 1:
            raise bad_option(f"split_bytes is {self.split_bytes}: give a positive number of bytes")
        rules = FORMAT_RULES[self.format]
        if self.preview and not rules.preview:
            raise bad_option(f"preview is for new Delta tables, not for format {self.format!r}: remove preview")
        if self.partition_by and not rules.partitions:
            raise bad_option(f"partition_by is not supported for format {self.format!r}: use parquet or delta")
        if self.one_file and not rules.one_file:
            raise bad_option(f"one_file is not supported for format {self.format!r}: use parquet")
        if self.one_file and self.partition_by:
            raise bad_option("one_file cannot be combined with partition_by: remove one of the two")
        if self.column.lower() in map(str.lower, self.partition_by.names):
            raise bad_option(f"partition_by gives {self.column!r}, the name of the variant column: choose another name")
        rules.check_file_options(self.write)
        if self.write.get("exact") and self.text.json_column is None:
            raise bad_option("exact keeps the JSON text of a column of a table: name the column with json_column")

    @classmethod
    def of(
        cls,
        sources: Sources,
        dest: str | os.PathLike[str],
        *,
        format: OutputFormat = "parquet",
        **options: Unpack[IngestOptions],
    ) -> IngestRequest:
        """Make the request of the keywords of `ingest`; `VariantError` also for a name that no option has."""
        remaining: dict[str, Any] = dict(options)
        text = {name: remaining.pop(name) for name in TextKeywords.__annotations__ if name in remaining}
        if text.get("json_column"):
            remaining.setdefault("column", text["json_column"])
        own = {each.name: remaining.pop(each.name) for each in fields(cls) if each.name in remaining}
        schema, policy = own.pop("schema", None), own.pop("policy", None)
        readers = remaining.pop("readers", ())
        files, rows = _sources(sources, text.get("json_column"))
        return cls(
            sources=files,
            rows=rows,
            dest=os.fspath(dest),
            text=TextOptions.of(**text),
            format=format,
            schema=None if schema is None else ShreddingSchema.of(schema),
            policy=_for_readers(policy_named(policy) if isinstance(policy, str) else policy, readers),
            partition_by=PartitionBy.of(own.pop("partition_by", ())),
            write=remaining,
            **own,
        )

    def check_schema(self, schema: ShreddingSchema) -> None:
        """Check what is known of the files only with the schema: that a path with a bloom filter is shredded."""
        if paths := self.write.get("bloom_filters", ()):
            check_bloom_paths(schema, (paths,) if isinstance(paths, str) else paths)


def _for_readers(policy: Policy | None, readers: str | Iterable[str]) -> Policy | None:
    """The policy with files that some engines read fast by themselves."""
    if not readers:
        return policy
    from parquet_variant.shredding.policies.auto import AutoPolicy

    if policy is not None and not isinstance(policy, AutoPolicy):
        raise VariantError("readers= is for the policy auto", reason="bad-policy")
    return replace(policy or AutoPolicy(), readers=(readers,) if isinstance(readers, str) else tuple(readers))


def _sources(sources: Any, json_column: str | None) -> tuple[tuple[str, ...], pa.Table | None]:
    """The names of the sources, or the rows that they are."""
    if isinstance(sources, str | os.PathLike):
        return (os.fspath(sources),), None
    if is_rows(sources):
        if json_column is None:
            raise bad_option(
                "for rows in memory name the column that holds JSON: json_column=; to write Variants use write"
            )
        return (), table_of(sources)
    try:
        return tuple(os.fspath(source) for source in sources), None
    except TypeError:
        raise bad_option(f"the sources are {sources!r}: give paths, one or several") from None
