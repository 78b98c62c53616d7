"""Options and arguments that several commands have, spelled and explained once.

Owns their names and help texts. Leaves what they do to the commands.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

__all__ = ["AsJson", "Column", "Path"]

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Column: TypeAlias = Annotated[
    str | None, typer.Option(help="The variant column; not needed where there is just one.", show_default=False)
]
Path: TypeAlias = Annotated[str, typer.Argument(metavar="PATH", help="A Parquet file, directory, glob or URI.")]
