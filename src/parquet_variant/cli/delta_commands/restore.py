"""``variant restore``: make an old version of a Delta table the newest one.

Owns the options and the report. Leaves the work to `delta.restore`.
"""

from __future__ import annotations

import typer

from parquet_variant.cli.options.common import AsJson, At, Table, Version


def command(table: Table, version: Version = None, at: At = None, as_json: AsJson = False) -> int:
    """Bring an old version of a Delta table back, as a new version."""
    from parquet_variant.cli.output.report import print_json
    from parquet_variant.delta import restore

    if (version is None) == (at is None):
        raise typer.BadParameter("give --version or --at")
    result = restore(table, version=version, timestamp=at)
    if as_json:
        print_json({"version": result.version})
    else:
        print(f"restored, as version {result.version}")
    return 0
