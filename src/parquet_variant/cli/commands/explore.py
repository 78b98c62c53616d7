"""``variant explore``: a page that shows what became of JSON.

Owns where the page goes: a file, or a server on loopback. Leaves the page to `explorer`.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

import typer

from parquet_variant.cli.options.common import AsJson, Column


def command(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Parquet, Delta, Vortex, or JSON before any ingest.")],
    html: Annotated[
        FilePath, typer.Option(metavar="FILE", help="The page to write: one file that needs nothing else.")
    ] = FilePath("explore.html"),
    serve: Annotated[bool, typer.Option("--serve", help="Serve the page here, with rows and SQL.")] = False,
    port: Annotated[int, typer.Option(help="With --serve: the port; 0 for any.", min=0, max=65535)] = 0,
    compare: Annotated[str | None, typer.Option(metavar="OTHER", help="What it was before: shown beside it.")] = None,
    version: Annotated[int | None, typer.Option(help="A version of a Delta table.", show_default=False)] = None,
    column: Column = None,
    as_json: AsJson = False,
) -> int:
    """Show what is typed, what the rest costs, what a query would read: a page to look at.

    Reads footers and a sample of at most 20,000 rows.
    """
    from parquet_variant.cli.options.stdin import with_stdin
    from parquet_variant.cli.output.report import human_bytes, print_json
    from parquet_variant.explorer.explore import explore

    with with_stdin([path]) as (source,):
        report = explore(source, column=column, compare=compare, version=version)
    if as_json:
        print_json(report.to_dict())
        return 0
    if not serve:
        size = report.save(html).stat().st_size
        print(f"{html}: {human_bytes(size)}; open it in a browser")
        return 0
    from parquet_variant.explorer.serve import ExploreServer

    server = ExploreServer(report, port)
    print(f"{server.url}\nread-only, for this machine alone; Ctrl-C ends it", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.close()
    return 0
