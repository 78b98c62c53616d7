"""``variant ingest``: JSON files to shredded files or tables; ``variant infer``: which paths to shred, and why.

Owns the options and the reports. Leaves the work to `ingestion.job`, on threads or on Spark, the choice to
`inference.infer`, and its explanation to `inference.explain`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from typer import Argument, BadParameter, Option

from parquet_variant.cli.options import common
from parquet_variant.cli.options.sources import data_files, read_catalog, spark_session, with_stdin
from parquet_variant.cli.output import one_line, print_result, report_warning
from parquet_variant.io.parallel import ShownProgress
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.options import Mode, OnViolation, OutputFormat, SchemaOf, SortBy, VortexLayout
from parquet_variant.support.records import counted

if TYPE_CHECKING:
    from parquet_variant.ingestion.result import IngestResult


def infer(
    sources: list[str] = Argument(
        ..., metavar="SRC...", help="JSON or Parquet files, directories or globs; - for standard input."
    ),
    *,
    policy: common.PolicyOptions,
    sample: common.Sample = 1.0,
    column: common.Column = None,
    json: common.JsonOptions,
    threads: common.Threads = None,
    explain: bool = Option(False, help="Explain for each path why it is shredded or not."),
    top: int | None = Option(None, help="With --explain: list this number of paths.", min=1),
    sort: SortBy | None = Option(None, help="With --explain: list the paths in this order, largest first."),
    also: list[str] | None = Option(
        None, metavar="PATH:TYPE", help="Show what typing this path would cost and save; repeatable."
    ),
    diff: bool = Option(False, help="Show the difference from --policy auto without settings."),
    against: str | None = Option(
        None, metavar="SCHEMA", help="Show how the data has drifted from this schema, table or Parquet file."
    ),
    ddl: bool = Option(False, help="Print the schema as DDL, for ingest --schema."),
    allow_outside: common.AllowOutside = False,
    as_json: bool = Option(False, "--json", help="Print JSON: the schema, or every decision with --explain."),
) -> None:
    """Choose which paths to shred, without writing anything.

    The output of --ddl and --json can be edited and passed to ingest --schema.
    """
    from parquet_variant.inference.columns import estimate_path
    from parquet_variant.inference.explain import explain as explain_all
    from parquet_variant.inference.explain import explain_diff, explain_json, explain_table
    from parquet_variant.inference.infer import find_drift, infer
    from parquet_variant.ingestion.ingest import profile
    from parquet_variant.ingestion.request import TextOptions
    from parquet_variant.ingestion.task import root_hints

    shredding_policy, existing, reading = policy.read(), common.read_schema(against, "--against"), json.read()
    with with_stdin(sources) as read, ShownProgress() as progress:
        if not json.json_column:
            read = [file for path in read for file in data_files(path, allow_outside=allow_outside)]
        data = profile(read, sample=sample, column=column, threads=threads, progress=progress, **reading)
    for hint in root_hints(data, TextOptions.of(**reading, sources=read), len(read)):
        report_warning(hint, "hint")
    result = infer(data, shredding_policy)
    if existing is not None:
        print(find_drift(existing, data, shredding_policy))
    elif diff:
        print(explain_diff(infer(data), result) or "no difference")
    elif also:
        estimates = [estimate_path(data, path, kind) for path, kind in common.read_types(also, "--also")]
        document = [{**asdict(e), "path": str(e.path), "saved": e.saved} for e in estimates]
        print_result(document, estimates, as_json=as_json)
    elif as_json and (explain or top or sort):
        print(explain_json(result))
    elif explain or top or sort:
        print(explain_table(result, sort or "saved", top) if top or sort else explain_all(result))
    elif as_json:
        print(result.schema.to_json())
    elif ddl:
        print(result.schema.to_ddl())
    else:
        print(result.schema)


# Columns that the report of an ingest names.
_SHOWN_COLUMNS = 8


def ingest(
    sources: list[str] = Argument(
        ..., metavar="SRC...", help="JSON files, directories, globs or URIs; - for standard input."
    ),
    dest: str = Argument(..., metavar="DEST", help="Directory to write, or a .parquet or .vortex file."),
    *,
    schema: str | None = Option(None, help="Shredding schema: DDL, or a file of DDL or JSON (default: inferred)."),
    policy: common.PolicyOptions,
    contract: common.ContractOption = None,
    on_violation: OnViolation = Option("fail", help="For rows that break --contract: fail, quarantine them, or warn."),
    sample: common.SampleOrDefault = None,
    engine: common.EngineOption = "local",
    into: OutputFormat | None = Option(
        None, "--format", help="Write Parquet files, a Delta or Iceberg table, or Vortex files (default: as DEST)."
    ),
    mode: Mode = Option("error", help="If DEST has data: fail, append, overwrite, or do nothing."),
    only_new: bool = Option(
        False, "--only-new", help="Append only files that DEST does not remember; see variant loads."
    ),
    schema_of: SchemaOf = Option(
        "table", help="Appends: keep the types of the table, or type paths by the new values."
    ),
    preview: bool = Option(False, help="New Delta tables: use the feature name variantShredding-preview."),
    catalog: common.Catalog = None,
    column: str | None = Option(
        None, "--column", "--rest", help="Name of the Variant column (default: v, or that of --json-column)."
    ),
    columns: str | None = Option(
        None, metavar="KEY,KEY", help="Make these keys of the rows typed columns; the rest remains in the Variant."
    ),
    file_column: str | None = Option(None, metavar="NAME", help="Also write the path of the file of each row."),
    partition_by: list[str] | None = Option(
        None,
        metavar="NAME=PATH:TYPE",
        help="Partition the rows by a column made of a path, such as day=$.ts:date; repeatable.",
    ),
    layout: VortexLayout = Option(
        "auto", help="Vortex files: the Variant type, a struct of typed columns, or one column per path and type."
    ),
    exact: bool = Option(False, help="Vortex files: also keep the exact text of --json-column."),
    writer: common.WriterOptions,
    json: common.JsonOptions,
    threads: common.Threads = None,
    openlineage: str | None = Option(None, metavar="FILE", help="Write a run event of OpenLineage to this file."),
    quiet: bool = Option(False, "--quiet", "-q", help="Print only warnings and errors."),
    as_json: common.AsJson = False,
) -> None:
    """Read JSON and write it shredded: all rows, or nothing."""
    from parquet_variant.ingestion.job import IngestJob
    from parquet_variant.ingestion.request import IngestRequest
    from parquet_variant.io.filesystems import absolute
    from parquet_variant.io.parallel import ThreadEngine
    from parquet_variant.tables.creating import format_of_destination

    mode = "append" if only_new and mode == "error" else mode
    into = into or format_of_destination(dest, catalog=catalog)
    if preview and into != "delta":
        raise BadParameter("--preview is for --format delta")
    options: dict[str, Any] = {"schema": common.read_schema(schema, keeps_ddl=True), "policy": policy.read()}
    of_vortex = {name: value for name, value in (("layout", layout), ("exact", exact)) if value not in (False, "auto")}
    if into == "vortex":
        common.refuse(writer.read(), "Parquet files, not to Vortex")
    else:
        common.refuse(of_vortex, "Vortex files")
    options |= json.read() | writer.read() | of_vortex
    options |= {} if column is None else {"column": column}
    if engine == "spark":  # its workers can run in another directory
        sources = [source if source == "-" else absolute(source) for source in sources]
        dest = absolute(dest) if dest and catalog is None else dest
    with with_stdin(sources) as read, ShownProgress() as progress:
        if only_new and read != sources:
            raise BadParameter("standard input and pipes cannot be known again: leave out --only-new, or name files")
        request = IngestRequest.of(
            read,
            dest,
            format=into,
            sample=sample,
            schema_of=schema_of,
            mode=mode,
            only_new=only_new,
            columns=() if columns is None else tuple(map(str.strip, columns.split(","))),
            file_column=file_column,
            preview=preview,
            partition_by=partition_by or (),
            one_file=_is_one_file(dest, into, mode) and not partition_by,
            catalog=read_catalog(catalog),
            contract=contract,
            on_violation=on_violation,
            **options,
        )
        # Checks run before the JVM starts.
        job = IngestJob(request)
        with spark_session(progress, engine) as session:
            spark = None if session is None else registered_method("SparkSession.engine")(session, progress)
            result = job.run(spark or ThreadEngine(threads, progress), report_warning)
    if openlineage is not None:
        from parquet_variant.ingestion.openlineage import save_event

        save_event(result, sources, request.column, openlineage)
    if as_json or not quiet:
        _report(result, as_json)


def _is_one_file(dest: str, into: OutputFormat, mode: Mode) -> bool:
    """Return whether DEST is one file: by its name, unless it is a directory, or rows are appended."""
    import pyarrow.fs as pafs

    from parquet_variant.io.filesystems import filesystem_of

    if not dest.endswith(".parquet") or into != "parquet":
        return False
    filesystem, path = filesystem_of(dest, None)
    kind = filesystem.get_file_info(path).type
    return kind is pafs.FileType.File or (kind is pafs.FileType.NotFound and mode != "append")


def _report(result: IngestResult, as_json: bool) -> None:
    lines = list(map(one_line, result.facts()))
    if result.columns:
        lines.append(f"columns: {', '.join(f'{name} {kind}' for name, kind in result.columns.items())}")
    lines += result.string_notes()
    if result.schema is not None:  # `variant infer` and `variant inspect` print the whole schema
        columns = [path for path, leaf in result.schema.leaves() if path.segments or leaf.kind != "variant"]
        names = [path.shorthand.removeprefix("$.") for path in columns]
        shown = ", ".join(names[:_SHOWN_COLUMNS]) + (", …" if len(names) > _SHOWN_COLUMNS else "")
        line = f"{counted(len(columns), 'typed column')}: {shown} (all: variant inspect {result.dest})"
        if not columns:
            decision = None if result.inference is None else result.inference.decision("$")
            why = "" if decision is None else f": {decision.reason}; name columns with --schema"
            line = f"no typed columns{why}"
        lines.append(line)
    print_result(result.to_dict(), lines, as_json=as_json)
    for hint in () if as_json else result.hints:
        report_warning(hint, "hint")
