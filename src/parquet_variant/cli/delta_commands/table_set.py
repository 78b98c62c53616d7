"""``variant table set``: properties of a Delta table.

Owns reading ``name=value`` and the report. Leaves what a property does to `delta.set_properties`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.cli.options.common import AsJson, Table


def command(
    table: Table,
    properties: Annotated[
        list[str],
        typer.Argument(metavar="NAME=VALUE...", help="Such as delta.enableVariantShredding=true; NAME= removes."),
    ],
    preview: Annotated[
        bool, typer.Option("--preview", help="Name a feature that is added variantShredding-preview.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Set properties of a Delta table, or remove them."""
    from parquet_variant.cli.output.report import print_json
    from parquet_variant.delta import set_properties

    to_set: dict[str, str | bool | int | None] = {}
    for text in properties:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} has no value: write NAME=VALUE, or NAME= to remove it")
        to_set[name] = value or None
    result = set_properties(table, to_set, preview=preview)
    if as_json:
        print_json({"version": result.version})
    else:
        print(f"set, in version {result.version}")
    return 0
