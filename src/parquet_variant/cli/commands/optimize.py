"""``variant optimize``: compact and re-shred files.

Owns the options and the report. Leaves the work to `Table.optimize`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from parquet_variant.cli.options.common import AsJson, Catalog, Column, EngineOption, PolicyOptions

if TYPE_CHECKING:
    from parquet_variant.cli.output import Progress
    from parquet_variant.tables.table.table import Table

Reshred: TypeAlias = Annotated[
    bool, typer.Option("--reshred", help="Rewrite all files with one new schema, even if that saves no space.")
]
MinSaving: TypeAlias = Annotated[
    float, typer.Option(help="Re-shred only if it saves this share of the encoded bytes.", min=0.0, max=1.0)
]


def command(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="A Delta or Iceberg table, or a directory of Parquet or Vortex files."),
    ],
    *,
    reshred: Reshred = False,
    schema: Annotated[
        str | None, typer.Option(help="Shredding schema: DDL, or a file of DDL, JSON or Parquet.")
    ] = None,
    policy: PolicyOptions,
    min_saving: MinSaving = 0.02,
    drop_shredding: Annotated[
        bool,
        typer.Option("--drop-shredding", help="Rewrite all files unshredded, and remove the table feature."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report how the data has drifted from the schema.")
    ] = False,
    file_bytes: Annotated[
        int | None, typer.Option(help="Approximate size of a file (default: 256 MiB).", min=1)
    ] = None,
    file_mb: Annotated[int | None, typer.Option(hidden=True, help="As --file-bytes, in MB.", min=1)] = None,
    column: Column = None,
    engine: EngineOption = "local",
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Compact small files, re-shredding columns where that saves space.

    Rows do not change. For a Delta table it is one commit.
    """
    from parquet_variant.cli.options.readers import read_schema
    from parquet_variant.cli.options.sources import open_table
    from parquet_variant.cli.output import Progress
    from parquet_variant.files.parquet.operations.optimize import DEFAULT_FILE_BYTES

    if drop_shredding and (reshred or schema is not None or dry_run):
        raise typer.BadParameter("--drop-shredding excludes --reshred, --schema and --dry-run")
    options: dict[str, Any] = {
        "file_bytes": file_bytes or (file_mb * 1_000_000 if file_mb else DEFAULT_FILE_BYTES),
        "reshred": reshred,
        "policy": policy.read(),
        "min_saving": min_saving,
        "dry_run": dry_run,
    }
    opened = open_table(table, catalog)
    _check_options(opened.format, column, engine, drop_shredding=drop_shredding)
    with Progress() as progress, _session(engine, opened, progress) as session:
        opened = open_table(table, catalog, engine=session, column=column)
        if drop_shredding:
            progress("optimize", 0, 1)
            result = opened.optimize(drop_shredding=True, file_bytes=options["file_bytes"], progress=progress)
        else:
            result = opened.optimize(schema=read_schema(schema), progress=progress, **options)
    _report(result, dry_run, as_json)
    return 0


def _check_options(format: str, column: str | None, engine: str, *, drop_shredding: bool) -> None:
    """Raise the error for options that the format does not have."""
    if format in ("delta", "iceberg"):
        if column is not None or (drop_shredding and engine == "spark"):
            raise typer.BadParameter(
                "--column, and --drop-shredding with --engine spark, are not supported for Delta and Iceberg tables"
            )
    elif drop_shredding:
        raise typer.BadParameter("--drop-shredding is for tables: use rewrite --layout unshredded")
    elif engine == "spark" and format == "vortex":
        raise typer.BadParameter("--engine spark is not supported for Vortex files")


@contextmanager
def _session(engine: str, table: Table, progress: Progress) -> Iterator[Any]:
    """Yield a Spark session for the engine ``spark``, else None; files are found before the JVM starts."""
    from parquet_variant.cli.spark_session import spark_session
    from parquet_variant.files.parquet.format.files import locate

    if engine != "spark":
        yield None
        return
    if table.format == "parquet":
        locate(table.source)
    with spark_session(progress) as session:
        yield session


def _report(result: Any, dry_run: bool, as_json: bool) -> None:
    from parquet_variant.cli.output import human_bytes, print_json
    from parquet_variant.files.parquet.report_text import counted

    version, drift = getattr(result, "version", None), getattr(result, "drift", None)
    if as_json:
        counts = ("files_removed", "files_added", "bytes_removed", "bytes_added")
        report = {} if version is None else {"version": version}
        report |= {name: getattr(result, name) for name in counts}
        print_json(report | {"drift": None if drift is None else drift.to_dict()})
        return
    if drift is not None and (drift.drifts or dry_run):
        print(drift)
    if dry_run:
        return
    if not result.files_removed and not result.files_added:
        print("nothing to do" + ("" if version is None else f" (version {version})"))
        return
    before = f"{counted(result.files_removed, 'file')} ({human_bytes(result.bytes_removed)})"
    after = f"{counted(result.files_added, 'file')} ({human_bytes(result.bytes_added)})"
    print(f"{before} became {after}" + ("" if version is None else f" in version {version}"))
    if version is not None and result.bytes_removed:
        print(f"{human_bytes(result.bytes_removed)} of old files remain in storage until variant vacuum")
