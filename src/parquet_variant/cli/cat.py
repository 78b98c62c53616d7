"""``variant cat``: Parquet rows as JSON lines.

Owns the choice between one column and whole rows. Leaves reading to `parquet`, and JSON to `to_json`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from parquet_variant.cli.options import Column, Path

if TYPE_CHECKING:
    from parquet_variant.parquet.files import OpenFile

__all__ = ["command"]


def command(path: Path, column: Column = None) -> int:
    """Print Parquet rows as JSON, one a line.

    The Variant column alone where there is no other column, or one is named; else whole rows as objects.
    """
    from parquet_variant.parquet.files import locate, open_file

    for source in locate(path):
        with open_file(source) as file:
            _print_file(file, column)
    return 0


def _print_file(file: OpenFile, name: str | None) -> None:
    """Row group by row group: memory holds one of them."""
    from parquet_variant import to_json
    from parquet_variant.cli.output import print_json_rows
    from parquet_variant.parquet.columns import choose_column, find_variants
    from parquet_variant.parquet.read import row_group_arrays
    from parquet_variant.parquet.read_table import tagged_table

    only = [node.path for node in file.schema.children]
    if name is not None or [variant.path for variant in find_variants(file.schema)] == only:
        for _, array in row_group_arrays(file, choose_column(file.schema, name, file.name)):
            sys.stdout.writelines("null\n" if text is None else f"{text}\n" for text in to_json(array).to_pylist())
        return
    for group in range(file.metadata.num_row_groups):
        print_json_rows(tagged_table(file, [group]))
