"""`IngestRequest`: the options of an ingest, which are the same in Python, on the command line and on Spark.

This module checks the options before any file is opened, by the rules of the output format. `job` executes the request.
To add a format: add its name to `OutputFormat` and to `_FORMATS_OF_OPTIONS`, and its destination module to
`ingestion.destinations`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path, PurePath
from typing import Any, TypeAlias, Unpack, get_args

import pyarrow as pa

from parquet_variant.encoding.json_reader import JsonOptions
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import (
    VariantError,
    bad_option,
    check_choice,
    check_count,
    check_mapping,
    check_names,
    check_number,
    strings_of,
)
from parquet_variant.files.parquet.writing.conform import FileKeywords, WriterOptions
from parquet_variant.inference.columns import is_unreadable_by_spark
from parquet_variant.inference.contracts.contract_check import ContractCheck
from parquet_variant.inference.infer import policy_named
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.decision import Policy
from parquet_variant.inference.typed_strings import StringTypes, schema_and_types
from parquet_variant.ingestion.destination import WriteRequest
from parquet_variant.ingestion.formats.csv_rows import CsvOptions, is_csv
from parquet_variant.ingestion.formats.layout import TextLayout, option_name
from parquet_variant.ingestion.partition_by import PartitionBy, PartitionColumns
from parquet_variant.ingestion.sources.input_files import find_input_files
from parquet_variant.ingestion.sources.splits import CHUNK_BYTES
from parquet_variant.io.filesystems import path_text, path_texts
from parquet_variant.io.staging import check_mode
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.conversions import from_python, to_json
from parquet_variant.ops.interop.tables import is_list_of_objects, is_rows, table_of
from parquet_variant.support.options import (
    InputFormat,
    Mode,
    OnError,
    OnInexact,
    OnViolation,
    OutputFormat,
    SchemaOf,
    VortexLayout,
)
from parquet_variant.support.records import Record
from parquet_variant.tables.creating import format_of_destination
from parquet_variant.tables.table.base import TextKeywords
from parquet_variant.types.path import VariantPath

# Paths, or rows in memory together with `json_column`.
Sources: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Any"


class IngestOptions(TextKeywords, FileKeywords, total=False):
    """The keywords of `pv.ingest`, which documents them."""

    schema: ShreddingSchema | str | None
    policy: Policy | str | None
    contract: Any
    on_violation: OnViolation
    readers: str | Iterable[str]
    column: str
    columns: str | Sequence[str]
    rest: str
    mode: Mode
    schema_of: SchemaOf
    only_new: bool
    split_bytes: int | None
    file_column: str | None
    preview: bool
    partition_by: PartitionColumns
    one_file: bool
    catalog: Any
    # Options of the files of a Delta or Iceberg table.
    file_bytes: int
    # Options of Vortex files.
    layout: VortexLayout
    exact: bool
    compact: bool


class TextOptions(Record):
    """The options by which every task reads JSON text; see `pv.ingest`.

    `json_column`: the column of tables that contains JSON; None if the sources are text files.
    `more_columns`: further columns of tables that contain JSON, with their shredding schemas.
    `json_paths`: the paths of strings inside the JSON that contain JSON.
    `of_dataframe`: the tables are files to which Spark wrote a DataFrame, so that messages name its partitions.
    `sample`: share of the lines to profile, above 0 and up to 1; None lets the job choose it.
    """

    on_error: OnError = "fail"
    on_inexact: OnInexact = "report"
    layout: TextLayout = field(default_factory=TextLayout)
    json_column: str | None = None
    more_columns: Mapping[str, ShreddingSchema] = field(default_factory=dict)
    json_paths: tuple[VariantPath, ...] = ()
    of_dataframe: bool = False
    string_types: StringTypes = field(default_factory=StringTypes)
    sample: float | None = None
    exclude: tuple[str, ...] = ()
    json: JsonOptions = field(default_factory=JsonOptions)
    chunk_bytes: int = CHUNK_BYTES
    contract: ContractCheck | None = None

    def __post_init__(self) -> None:
        check_choice("on_error", self.on_error, get_args(OnError))
        check_choice("on_inexact", self.on_inexact, get_args(OnInexact))
        if self.json_column is not None and self.layout.format not in ("auto", "csv"):
            raise bad_option(
                f"json_column applies to tables, but input_format is {self.layout.format!r}: remove one of the two"
            )
        if any(not path.segments for path in self.json_paths):
            raise bad_option("json_column is '$': name the path of strings with JSON, such as '$.payload'")
        if self.json_paths and self.json_column is not None and self.layout.root is not None:
            raise bad_option("json_column= with [*] cannot be combined with root=: ingest the rows first")
        if self.sample is not None:
            check_number("sample", self.sample)
            if not 0 < self.sample <= 1:
                raise bad_option(f"sample is {self.sample}: it must be above 0 and at most 1")

    @classmethod
    def of(
        cls,
        *,
        sources: Iterable[str] = (),
        parse: Mapping[str, Any] | None = None,
        exclude: str | Sequence[str] = (),
        input_format: InputFormat = "auto",
        root: str | VariantPath | None = None,
        types: Mapping[str, str] | str | None = None,
        schema_types: Mapping[str, str] | None = None,
        detect_timestamps: bool | None = None,
        infer_types: bool = False,
        **options: Any,
    ) -> TextOptions:
        """Return the options from keywords; ``parse`` contains options of `parse_json` and of CSV.

        Sources that all end in ``.csv`` or ``.tsv`` are CSV, unless another format is named.
        ``schema_types`` are the types of strings in the DDL of a schema or in the hints of a policy.
        """
        sources = tuple(sources)
        patterns = strings_of("exclude", exclude, "*.md")
        columns, options["json_paths"] = json_columns_and_paths(options.get("json_column"), sources, patterns)
        column = options["json_column"] = columns[0] if columns else None
        options["more_columns"] = dict.fromkeys(columns[1:], ShreddingSchema.variant())
        if infer_types and column is None:
            raise bad_option("infer_types= is for CSV next to a JSON column: name the column with json_column=")
        if input_format == "auto" and column is None and sources and all(map(is_csv, sources)):
            input_format = "csv"
        check_mapping("parse", {} if parse is None else parse)
        if detect_timestamps not in (None, True, False):
            raise bad_option(f"detect_timestamps is {detect_timestamps!r}: give True, False or None")
        json_names = [option.name for option in fields(JsonOptions)]
        format_options = {option_name(name): value for name, value in (parse or {}).items()}
        json_options = {name: format_options.pop(name) for name in json_names if name in format_options}
        if column is not None and input_format == "csv":
            input_format = "auto"  # the first bytes of a table show its format, and CSV is the default
        elif format_options and input_format != "csv" and column is None:
            check_names("parse option", format_options, json_names)
        if infer_types:
            format_options["infer_types"] = True
        check_names("parse option of CSV", format_options, [option.name for option in fields(CsvOptions)])
        path = None if root is None else VariantPath.parse(root)
        layout = TextLayout(input_format, path, CsvOptions(**format_options))
        # The default of Spark's singleVariantColumn.
        detect = layout.format == "csv" if detect_timestamps is None else detect_timestamps
        kinds = StringTypes.of(types, detect).with_types(schema_types or {})
        return cls(json=JsonOptions(**json_options), layout=layout, string_types=kinds, exclude=patterns, **options)


class IngestRequest(WriteRequest, kw_only=True):
    """The sources, the destination and the options of an ingest, as documented in `pv.ingest`. It can be pickled.

    >>> request = IngestRequest.of("logs/*.ndjson", "logs.parquet", schema="id bigint", compression="snappy")
    >>> request.schema.to_ddl(), request.write
    ('id bigint', {'compression': 'snappy'})
    """

    sources: tuple[str, ...]
    text: TextOptions = field(default_factory=TextOptions)
    schema: ShreddingSchema | None = None
    policy: Policy | None = None
    schema_of: SchemaOf = "table"
    only_new: bool = False
    keys: tuple[str, ...] = ()
    file_column: str | None = None
    split_bytes: int | None = None
    rows: pa.Table | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_choice("format", self.format, get_args(OutputFormat))
        check_mode(self.mode)
        check_choice("schema_of", self.schema_of, get_args(SchemaOf))
        if not self.dest:
            raise bad_option("the destination is empty: name a directory, a file or a table")
        if not isinstance(self.column, str) or not self.column:
            raise bad_option(f"column is {self.column!r}: it must be the name of the Variant column")
        if self.split_bytes is not None:
            check_count("split_bytes", self.split_bytes, 1)
        suffix = PurePath(self.dest).suffix
        if (suffix, self.format) in ((".vortex", "parquet"), (".parquet", "vortex")):
            raise bad_option(
                f"the destination ends with {suffix}, but format is {self.format!r}: give format={suffix[1:]!r}, or "
                "another name"
            )
        if self.catalog is None and (JSON_NAMES.search(self.dest) or is_csv(self.dest)):
            problem = "has the name of a JSON or CSV file: name a directory, or write it with variant query -o"
            raise bad_option(f"{self.dest} {problem}")
        for option, formats in _FORMATS_OF_OPTIONS.items():
            if getattr(self, option) not in (None, False, PartitionBy()) and self.format not in formats:
                raise bad_option(f"{option}= is not supported for format {self.format!r}: use {' or '.join(formats)}")
        if self.only_new and (self.mode not in ("append", "overwrite") or self.one_file or self.rows is not None):
            raise bad_option(
                "only_new= adds files to a directory or table: name files, and leave out one_file= and mode= (or give "
                "mode='overwrite' to begin again)"
            )
        if self.one_file and self.partition_by:
            raise bad_option("one_file= cannot be combined with partition_by=: remove one of the two")
        made = (column.name for column in self.partition_by.fields)
        names = [name.lower() for name in (self.column, *self.keys, *made, self.file_column or "")]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise bad_option(
                f"columns=, partition_by=, file_column= and the Variant column share the name {repeated[0]!r}: choose "
                "another name with rest="
            )
        file_options = dict(self.write)
        if self.format == "vortex":
            # Deferred, because loading the Vortex writer takes longer than checking the options of the other formats.
            from parquet_variant.files.vortex.writer import check_options

            check_options(**file_options)
        else:
            if self.format != "parquet":
                check_count("file_bytes", file_options.pop("file_bytes", 1), 1, None)
            WriterOptions.of(file_options)
        if self.write.get("exact") and self.text.json_column is None:
            raise bad_option("exact= keeps the JSON text of a column of a table: name the column with json_column=")

    @classmethod
    def of(
        cls,
        sources: Sources,
        dest: str | os.PathLike[str],
        *,
        format: OutputFormat | None = None,
        **options: Unpack[IngestOptions],
    ) -> IngestRequest:
        """Return the request from the keywords of `pv.ingest`. Raises `VariantError` also for an unknown keyword."""
        check_names("option", options, [*IngestOptions.__annotations__, "format"])
        file_options: dict[str, Any] = dict(options)
        text = {name: file_options.pop(name) for name in TextKeywords.__annotations__ if name in file_options}
        if is_list_of_objects(sources) and text.get("json_column") is None:
            text["json_column"] = file_options.setdefault("column", "v")
            sources = {text["json_column"]: to_json(from_python(sources))}
        keys = strings_of("columns", file_options.pop("columns", ()), "id")
        if "rest" in file_options:
            file_options["column"] = file_options.pop("rest")
        schema, schema_types = schema_and_types(file_options.pop("schema", None))
        policy = file_options.pop("policy", None)
        schema_types |= getattr(policy, "string_types", {})
        policy = policy_named(policy) if isinstance(policy, str) else policy
        policy = _checked_readers(file_options.pop("readers", ()), schema, policy)
        check = ContractCheck.of(file_options.pop("contract", None), file_options.pop("on_violation", "fail"))
        paths = () if is_rows(sources) else tuple(path_texts(sources))
        text_options = TextOptions.of(**text, sources=paths, schema_types=schema_types, contract=check)
        column, rows = text_options.json_column, None
        if column is not None:
            file_options.setdefault("column", column)
        if is_rows(sources):
            if column is None:
                raise bad_option(
                    "rows in memory require json_column=, the names of the columns with JSON or dicts; to write all "
                    "columns as they are, use pv.write, with variant_columns= for dicts"
                )
            rows = _with_json_text(sources, (column, *text_options.more_columns))
        if file_options.get("only_new"):
            file_options.setdefault("mode", "append")
        partition_by = PartitionBy.of(file_options.pop("partition_by", ()))
        names = [option.name for option in fields(cls) if option.name in file_options]
        return cls(
            **{name: file_options.pop(name) for name in names},
            sources=paths,
            rows=rows,
            dest=path_text(dest),
            text=text_options,
            format=format or format_of_destination(dest, catalog=file_options.get("catalog")),
            columns=keys if column is None else None,
            keys=keys,
            schema=schema,
            policy=policy,
            partition_by=partition_by,
            write=file_options,
        )


# Names of files of JSON, perhaps compressed.
JSON_NAMES = re.compile(r"\.(ndjson|jsonl|jsonlines|json|geojson)(\.(gz|zst|bz2|lz4))?$", re.IGNORECASE)


def json_columns_and_paths(
    option: str | Sequence[str] | None, sources: Sequence[str], exclude: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[VariantPath, ...]]:
    """Return the columns of tables that ``json_column`` names, and the paths of strings in the first one, or in JSON.

    Names in JSON files or local directories of these, by their suffix, and names with ``$``, are paths in the rows.

    >>> json_columns_and_paths(["messages[*].content", "payload"], [])
    (('messages', 'payload'), (VariantPath("$[*]['content']"),))
    >>> [path.shorthand for path in json_columns_and_paths(["value", "$.a.b"], ["kafka.ndjson.gz"])[1]]
    ['$.value', '$.a.b']
    """
    names = () if option is None else strings_of("json_column", option, "payload")
    is_json = bool(names and sources) and all(map(JSON_NAMES.search, sources))
    if names and sources and all(Path(source).is_dir() for source in sources):
        is_json = all(JSON_NAMES.search(file.name) for file in find_input_files(sources, exclude))
    if is_json or any(name[:2] in ("$", "$.", "$[") for name in names):
        paths = (name if name[0] == "$" or "[*]" not in name else f"$.{name}" for name in names)
        return (), tuple(VariantPath.parse(text if text[0] == "$" else VariantPath((text,))) for text in paths)
    nested = [name.partition("[*]") for name in names if "[*]" in name]
    columns = dict.fromkeys([*(column for column, _, _ in nested), *(name for name in names if "[*]" not in name)])
    if len({column for column, _, _ in nested}) > 1:
        raise bad_option(f"json_column is {option!r}: only one column can have strings with JSON in its elements")
    return tuple(columns), tuple(VariantPath.parse(f"$[*]{path}") for _, _, path in nested)


def _checked_readers(readers: Any, schema: ShreddingSchema | None, policy: Policy | None) -> Policy | None:
    """Return the policy with the engines for which paths must be fast to read."""
    readers = strings_of("readers", readers)
    for path, leaf in schema.leaves() if schema is not None and "spark" in readers else ():
        if leaf.kind == "primitive" and leaf.type is not None and is_unreadable_by_spark(leaf.type):
            raise VariantError(
                f"plain Spark cannot read files with the column {path} of schema=, which is {leaf.to_ddl()}: make it "
                "variant, or remove spark from readers=",
                reason="bad-schema",
            )
    if not readers:
        return policy
    if policy is not None and not isinstance(policy, AutoPolicy):
        raise VariantError("readers= requires the policy auto: remove readers= or policy=", reason="bad-policy")
    return replace(policy or AutoPolicy(), readers=readers)


def _with_json_text(rows: Any, json_columns: Iterable[str]) -> pa.Table:
    """Return rows in memory as a table; dicts and lists in the JSON columns of pandas become their JSON."""
    for name in json_columns:
        if hasattr(rows, "iloc") and name in rows.columns and rows.dtypes[name].kind == "O":
            text = [Variant.from_python(v).to_json() if isinstance(v, dict | list) else v for v in rows[name]]
            rows = rows.assign(**{name: text})
    return table_of(rows)


# The formats that support an option.
_FORMATS_OF_OPTIONS = {
    "partition_by": ("parquet", "delta", "iceberg"),
    "one_file": ("parquet",),
    "preview": ("delta",),
    "catalog": ("iceberg",),
    "only_new": ("parquet", "delta", "iceberg"),
}
