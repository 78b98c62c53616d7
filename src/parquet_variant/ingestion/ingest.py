"""`pv.ingest`, `pv.profile`, `pv.infer` and `pv.read_json`: the public operations on JSON files in this process.

`request` checks the options, `job` runs the steps and `io.parallel` runs the tasks in threads. `spark.operations.write`
is the same operation on Spark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from tempfile import TemporaryDirectory
from typing import Any, Literal, Unpack

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import check_names, check_session
from parquet_variant.files.parquet.format.files import ParquetSource, locate
from parquet_variant.inference.contracts.contract_check import ContractCheck
from parquet_variant.inference.infer import infer as infer_from_profile
from parquet_variant.inference.policies.decision import InferenceResult
from parquet_variant.inference.profile import Profile
from parquet_variant.inference.typed_strings import schema_and_types
from parquet_variant.ingestion.job import IngestJob, find_files, profile_files
from parquet_variant.ingestion.key_columns import KeyColumns
from parquet_variant.ingestion.request import IngestOptions, IngestRequest, Sources, TextOptions
from parquet_variant.ingestion.result import IngestResult
from parquet_variant.ingestion.task import string_types
from parquet_variant.io.filesystems import path_texts
from parquet_variant.io.parallel import Progress, ThreadEngine
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.options import InputFormat, OutputFormat, with_keywords
from parquet_variant.tables.row_input import kept_types
from parquet_variant.tables.table.base import TextKeywords


@with_keywords(IngestOptions, IngestRequest, TextOptions, ContractCheck)
def ingest(
    sources: Sources,
    dest: str | os.PathLike[str],
    *,
    format: OutputFormat | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Any = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read JSON files and write them as shredded Parquet files, a Delta or Iceberg table, or Vortex files.

    The text is read twice, in chunks: once to infer the schema, once to write. Memory depends on the number of threads,
    not on the size of the input. Either all rows are written, or `dest` is left unchanged.

    Parameters
    ----------
    sources
        Files, directories, globs or URIs of JSON; plain, gzip, zstd, bz2 or lz4. Also a list of dicts: one row each.
        With `json_column`, tables; also a data frame or an Arrow table in memory.
    dest
        The directory or table to write.
    format
        ``"parquet"``: a directory of files. ``"delta"``: a Delta table, created if it does not exist, in one commit.
        ``"iceberg"``: likewise an Iceberg table. ``"vortex"``: a directory of Vortex files, or one file if the name
        ends in ``.vortex``. By default that of `dest`, or Parquet.
    threads
        Number of worker threads (default: one per CPU).
    progress
        True shows the progress on standard error, as a bar in terminals and notebooks: bytes, rows per second and the
        time left. Or a function that is called with the name of the step, the tasks that are done, and their number.
    engine
        A Spark session whose workers have parquet-variant installed and can access the sources and `dest`: the tasks
        run there. With `json_column`, `sources` may be a DataFrame, which is computed once. By default the tasks run in
        threads of this process.
    schema
        The shredding schema, as an object or DDL. By default it is inferred from the input.
    policy
        The policy that infers the schema; see `infer_shredding_schema`.
    contract
        The contract of the values: a `Contract`, a file (YAML, JSON Schema or ODCS), or a mapping of paths to rules.
    on_violation
        What to do with rows that break the contract. ``"fail"``: the job raises `ContractError` with all violations
        before it commits. ``"quarantine"``: the rows are written to ``_bad_records`` with the rule. ``"warn"``: they
        are written and counted in the result.
    readers
        Engines that read the files without this library: ``"duckdb"`` (fast paths at any size), ``"spark"`` (no types
        that plain Spark cannot read); see docs/interop.md.
    sample
        Share of the lines that the schema is inferred from, above 0 and up to 1. The default is 8 MiB of text or one
        eighth of the input, whichever is more; all lines with ``readers="duckdb"``. The position of a line in its file
        decides whether it is in the sample, so that the sample does not depend on the number of threads.
    column
        Name of the Variant column.
    columns
        Keys of the rows that become columns, such as ``["id", "ts"]``; the rest of each row remains in the Variant
        column, which `rest` names, too. The types are those of `schema`, or of most values in the sample (decimals with
        9 or 18 digits after the point), or of the table in an append; strings need `types` to become timestamps.
        Objects and arrays become Variants. A value of another type remains in the Variant, and the column is NULL.
    file_column
        Name of a column with the path of the file of each row.
    on_error
        ``"fail"``: the first invalid line raises `JsonError`, and nothing is written. ``"quarantine"``: invalid lines
        are counted and written to ``_bad_records`` in `dest`, with file, line number and reason. ``"null"``: invalid
        lines become SQL NULL and are not counted.
    on_inexact
        What to do with numbers that no Variant type keeps exactly: those of more than 38 digits, those with an exponent
        and more digits than a double, and those out of the range of a double, such as ``1E400``. ``"report"``: they
        become the nearest double and are counted in the result. ``"fail"``: the first one raises `JsonError` with file
        and line, and nothing is written.
    mode
        What to do if `dest` holds data: ``"error"``, ``"append"``, ``"overwrite"`` or ``"ignore"``.
    schema_of
        How an append types paths without `schema`. ``"table"``: a path that the table has keeps its type, and strings
        become dates, timestamps or UUIDs where the table has these; values of other types remain Variants and are
        counted in `IngestResult.hints`. ``"file"``: by the new values; a path with several types has no typed column.
    only_new
        Load only the files that were not loaded before, and append their rows. The destination remembers path, size and
        modification time of each file, in the commit that adds its rows; `Table.loads` lists them. Files that changed
        since are not loaded again, but listed in `IngestResult.changed`. If another job loads files at the same time,
        one of the two raises the error ``"conflict"``, and nothing is written twice.
    exclude
        Patterns of files and directories to leave out, such as ``"*.md"`` or ``["raw", "tmp/*.json"]``.
    input_format
        ``"ndjson"``, ``"array"``, ``"documents"`` (values over several lines, or several on one) or ``"auto"``, which
        detects these three. ``"csv"``: each row becomes an object, as with Spark's ``singleVariantColumn``; the
        default for sources that all end in ``.csv`` or ``.tsv``.
    root
        Path of the rows in each document, such as ``$.items[*]``; everything outside this path is dropped.
    json_column
        The sources are tables (Parquet, Vortex, Arrow, CSV, Delta, or a table in memory), and this column holds JSON as
        strings or bytes, or nested values. The Variant column replaces it, named `column` if that is set. A field of a
        struct (``s.payload``) becomes a column next to the struct; with ``messages[*].content`` the column ``messages``
        becomes Variants with the values of these strings. Several columns are all shredded; options with paths are for
        that with ``[*]``, or the first. Other columns are kept (as strings, for CSV; as Variants, for ``arrow.json``).
        Null remains null.
        Paths (``$.payload``, ``$.items[*].body``), or keys if all sources are named as JSON (``.ndjson``, ``.json.gz``,
        …), instead name strings with JSON inside JSON; each is replaced by its value, and one that is not JSON makes
        its line invalid. Base64 of objects and arrays is decoded.
    infer_types
        Give the columns of CSV next to `json_column` the types that all their values have: boolean, bigint, double,
        date, timestamp_ntz or timestamp. Numbers with leading zeros remain strings. The files are read once more.
    types
        Paths or patterns of strings to type as ``date``, ``timestamp``, ``timestamp_ntz``, ``uuid`` or ``binary``
        (base64): ``{"$.created_at": "timestamp", "$..*_id": "uuid"}``. A string is typed only if `to_json` reproduces
        it exactly; other strings remain strings. Both are counted. ``timestamp!``, ``timestamp_ntz!``, ``uuid!`` and
        ``number!`` accept every form (``"2026-01-02T00:00:00Z"``), and `to_json` writes the canonical form then.
        ``bigint!`` takes digits, also with thousands separators, and ``boolean!`` ``"true"`` and ``"false"``.
        ``timestamp_s!``, ``timestamp_ms!`` and ``timestamp_us!`` take numbers, also in strings, that count since 1970.
        ``"auto!"`` instead of a mapping types the paths whose strings all have one of these forms in the sample.
    detect_timestamps
        Type all strings that are dates or timestamps. The default is True for CSV only, as in Spark.
    split_bytes
        Size of the parts into which uncompressed files are split. By default each thread gets as many, of 4 to 128 MiB.
    parse
        Options of `parse_json`; for CSV also ``delimiter``, ``quote_char``, ``header`` and ``null_values``. The first
        three are detected from the first rows of each file by default; the delimiter of ``.tsv`` files is a tab.
    preview
        Name the table feature of a new Delta table ``variantShredding-preview``, for readers that know only this name.
    partition_by
        Columns extracted from JSON paths: ``"day=$.ts:date"``, a list of such, or a mapping. Parquet files are written
        to one directory per partition (``day=2026-01-31/``); a new table is partitioned by them. The destination
        records the paths, so that appends need no option. Values that cannot be cast are in the null partition. Readers
        see these columns next to the Variant column and skip the partitions that a filter excludes.
    one_file
        Write `dest` as one Parquet file instead of a directory. Quarantined lines are written to
        ``dest + ".bad_records.ndjson"``.
    catalog
        The catalog of an Iceberg table named ``namespace.table``; see `pv.open`.
    compression, compression_level, effort, row_group_bytes, annotation, sort_by, bloom_filters
        Options of Parquet files and of the files of a Delta or Iceberg table; see `VariantWriter`.
    file_bytes
        Approximate size of the files of a Delta or Iceberg table.
    layout, compact, exact
        Options of Vortex files; see `pv.write`. `exact` requires `json_column`.

    Returns
    -------
    IngestResult
        The schema, and the numbers of rows, files and invalid lines.

    Raises
    ------
    VariantError
        For an invalid option, before anything is read.
    VariantFileError
        For a source that does not exist or cannot be read, sources without any value, or a destination that holds data.
    DeltaError, IcebergError
        For a table that already exists or that this package cannot write.
    JsonError
        For an invalid line if `on_error` is ``"fail"``, with file and line.
    ContractError
        For rows that break the contract if `on_violation` is ``"fail"``; also for a presence that is too low if it is
        ``"quarantine"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = pv.ingest("examples/usgs_earthquakes.ndjson", f"{folder}/quakes", compression="snappy")
    ...     result.rows, len(pv.open(f"{folder}/quakes").read())
    (1707, 1707)

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.ingest("examples/usgs_earthquakes.ndjson", folder, format="delta")
    ...     _ = pv.ingest("examples/usgs_earthquakes.ndjson", folder, format="delta", mode="append")
    ...     len(pv.open(folder).read())
    3414
    """
    if engine is not None:
        check_session(engine)
        done: IngestResult = registered_method("SparkSession.ingest")(
            engine, sources, dest, format=format, progress=progress, **options
        )
        return done
    request = IngestRequest.of(sources, dest, format=format, **options)
    return IngestJob(request).run(ThreadEngine(threads, progress))


def rows_of_json(sources: Any, table: pa.Schema, keys: Sequence[str], files: Sequence[ParquetSource]) -> pa.Table:
    """Return rows of JSON for a table: some of its columns hold the values of keys, and a Variant column the rest.

    Strings get the types that their paths have in files of the table, unless the JSON was opened with other types.
    """
    variants = [field.name for field in table if is_variant_field(field) and field.name not in keys]
    rest = variants[0] if len(variants) == 1 or (variants and keys) else "v"
    kept = kept_types(files, [rest]).values()
    types = string_types(chain(KeyColumns.of_columns(table, keys).typed.items(), *(node.leaves() for node in kept)))
    source, text = (sources.source, sources.options.text) if hasattr(sources, "source") else (sources, {})
    text = {"types": types, **text}
    if not keys:
        return type(sources)(source, replace(sources.options, text=text)).to_arrow().rename_columns([rest])
    with TemporaryDirectory() as folder:
        ingest(source, folder, columns=keys, rest=rest, **text)
        return registered_method("Table.open")(folder).to_arrow()


@with_keywords(TextKeywords, TextOptions)
def profile(
    sources: Sources,
    *,
    column: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **text: Unpack[TextKeywords],
) -> Profile:
    """Profile the paths of JSON or Parquet files: types, shares, ranges and lengths.

    Parameters
    ----------
    sources
        JSON files as for `ingest`, or Parquet files with a Variant column.
    column
        The Variant column of Parquet files that have several.
    threads, progress
        As for `ingest`.
    **text
        Options for reading JSON. ``sample``: share of the text, above 0 and up to 1 (default: 1). ``on_error``:
        ``"fail"``, or invalid lines are skipped (``"quarantine"``) or SQL NULL (``"null"``). ``input_format``,
        ``exclude``, ``on_inexact``, ``root``, ``json_column``, ``types``, ``detect_timestamps``, ``parse``: as for
        `ingest`.

    Returns
    -------
    Profile
        One entry per path.

    Raises
    ------
    VariantFileError
        For a source that does not exist or cannot be read, or sources without any value.
    JsonError
        For an invalid line if `on_error` is ``"fail"``.

    Examples
    --------
    >>> paths = profile("examples/usgs_earthquakes.ndjson")
    >>> paths.rows, len(list(paths))
    (1707, 34)
    """
    names = path_texts(sources)
    check_names("option", text, TextKeywords.__annotations__)
    text.setdefault("sample", 1.0)
    text_options = TextOptions.of(**text, sources=names)
    files = find_files(names, text_options)
    if text_options.json_column is not None or not all(file.head.startswith(b"PAR1") for file in files):
        return profile_files(ThreadEngine(threads, progress), files, text_options)
    # Imported here, as below, because an ingest of JSON neither reads Parquet files nor answers queries.
    from parquet_variant.files.parquet.operations.rewrite import profile_task
    from parquet_variant.files.parquet.reading.read import variant_of_files

    parquet_files = locate([file.name for file in files])
    name = variant_of_files(parquet_files, column).name
    parts = (profile_task(0, 0, file, column=name) for file in parquet_files)
    return reduce(Profile.merge, parts, Profile())


def infer(sources: Sources, policy: Any = None, **options: Any) -> InferenceResult:
    """Infer the shredding schema of files, as `ingest` would.

    Parameters
    ----------
    sources
        JSON files as for `ingest`, or Parquet files with a Variant column.
    policy
        A policy or its name; see `infer_shredding_schema`.
    **options
        As for `profile`: ``sample``, ``column``, ``on_error``, ``input_format``, ``root``, ``json_column``,
        ``parse``, ``threads``, ``progress``.

    Returns
    -------
    InferenceResult
        The schema, and a decision with its reason for every path.

    Raises
    ------
    VariantFileError
        For a source that does not exist or cannot be read, or sources without any value.
    JsonError
        For an invalid line if ``on_error`` is ``"fail"``.
    VariantError
        For an unknown policy.

    Examples
    --------
    >>> result = infer("examples/usgs_earthquakes.ndjson")
    >>> result.rows, result.decision("$.properties.mag").shredded
    (1707, True)
    """
    if hinted := getattr(policy, "string_types", {}):
        types = options.get("types") or {}
        options["types"] = {**types, **hinted} if isinstance(types, Mapping) else {types: "", **hinted}
    return infer_from_profile(profile(sources, **options), policy)


def read_json(
    sources: Sources,
    *,
    schema: ShreddingSchema | str | None = None,
    on_error: Literal["fail", "null"] = "fail",
    exclude: str | Sequence[str] = (),
    input_format: InputFormat = "auto",
    root: str | None = None,
    types: Mapping[str, str] | str | None = None,
    detect_timestamps: bool | None = None,
    threads: int | None = None,
    **parse: Any,
) -> VariantArray:
    """Read JSON files into one array with one value per row.

    Parameters
    ----------
    sources
        Files, directories, globs or URIs of NDJSON or JSON arrays; plain, gzip, zstd, bz2 or lz4.
    schema
        The shredding schema, as an object or DDL. By default the array is not shredded.
    on_error
        ``"fail"``: an invalid line raises `JsonError`. ``"null"``: an invalid line becomes SQL NULL.
    exclude
        Patterns of files and directories to leave out; see `pv.ingest`.
    input_format
        ``"ndjson"``, ``"array"``, ``"documents"`` (values over several lines, or several on one), ``"csv"``
        or ``"auto"``.
    root
        Path of the rows in each document, such as ``$.items[*]``.
    types, detect_timestamps
        Strings to type as dates, timestamps, UUIDs or binary; see `pv.ingest`.
    threads
        Number of threads (default: one per CPU that this process may use).
    **parse
        Options of `parse_json` or CSV; see `pv.ingest`.

    Returns
    -------
    VariantArray
        The values of all sources, in their order.

    Raises
    ------
    VariantFileError
        For a source that does not exist or cannot be read, or sources without any value.
    JsonError
        For an invalid line, with file and line, unless ``on_error="null"``.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> quakes = pv.read_json("examples/usgs_earthquakes.ndjson")
    >>> len(quakes), quakes["properties"]["mag"][0].to_python()
    (1707, 2)
    """
    schema, schema_types = schema_and_types(schema)
    options = TextOptions.of(
        sources=path_texts(sources),
        on_error=on_error,
        exclude=exclude,
        input_format=input_format,
        root=root,
        parse=parse,
        types=types,
        schema_types=schema_types,
        detect_timestamps=detect_timestamps,
    )
    from parquet_variant.ingestion.json_files import JsonFiles

    return JsonFiles.of(sources, options).read(schema, threads)
