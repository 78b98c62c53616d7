"""``variant cat``: rows of Parquet or Vortex files, or of a Delta table, as JSON lines.

Owns the choice between one column and whole rows. Leaves reading to the layers of the files, and JSON to `to_json`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from parquet_variant.cli.options import At, Column, Path, Version

if TYPE_CHECKING:
    from parquet_variant.parquet.format.files import OpenFile

__all__ = ["command"]


def command(path: Path, column: Column = None, version: Version = None, at: At = None) -> int:
    """Print rows as JSON, one a line.

    The Variant column alone where there is no other column, or one is named; else whole rows as objects.
    """
    from parquet_variant.cli.tables import is_delta, is_vortex
    from parquet_variant.parquet.format.files import locate, open_file

    if is_delta(path) or version is not None or at is not None:
        _print_table(path, column, version, at)
        return 0
    if is_vortex(path):
        _print_vortex(path, column)
        return 0
    for source in locate(path):
        with open_file(source) as file:
            _print_file(file, column)
    return 0


def _print_table(path: str, column: str | None, version: int | None, at: str | None) -> None:
    """File by file of a Delta table."""
    from parquet_variant.cli.output import is_variant, json_texts, print_json_rows
    from parquet_variant.cli.tables import plan_query
    from parquet_variant.delta import snapshot

    names = [field.name for field in snapshot(path, version=version, timestamp=at).schema.fields]
    query = plan_query(path, names if column is None else [column], None, None, version=version, at=at)
    alone = len(query.schema) == 1 and is_variant(query.schema.field(0))
    for part in query.batches():
        if not alone:
            print_json_rows(part)
            continue
        for chunk in part.column(0).chunks:
            sys.stdout.writelines(f"{text}\n" for text in json_texts(chunk, query.schema.field(0)))


def _print_vortex(path: str, column: str | None) -> None:
    """Some thousand rows at a time."""
    from parquet_variant import VariantArray, to_json
    from parquet_variant.cli.output import print_json_rows
    from parquet_variant.vortex.files import vortex_files
    from parquet_variant.vortex.reader import choose_variant, column_names, iter_tables

    for file in vortex_files(path):
        variants, others = column_names(file)
        for table in iter_tables(file):
            if column is None and (others or len(variants) > 1):
                print_json_rows(table)
                continue
            array = VariantArray.from_arrow(table, choose_variant(table.schema, column, file))
            sys.stdout.writelines("null\n" if text is None else f"{text}\n" for text in to_json(array).to_pylist())


def _print_file(file: OpenFile, name: str | None) -> None:
    """Row group by row group: memory holds one of them."""
    from parquet_variant import to_json
    from parquet_variant.cli.output import print_json_rows
    from parquet_variant.parquet.format.columns import choose_column, find_variants, no_variant_column
    from parquet_variant.parquet.reading.read import row_group_arrays
    from parquet_variant.parquet.reading.read_table import tagged_table

    names = [node.name for node in file.schema.children]
    variants = find_variants(file.schema)
    if not variants:
        raise no_variant_column(names, file.name)
    if name is not None or [variant.path for variant in variants] == [(each,) for each in names]:
        for _, array in row_group_arrays(file, choose_column(file.schema, name, file.name)):
            sys.stdout.writelines("null\n" if text is None else f"{text}\n" for text in to_json(array).to_pylist())
        return
    for group in range(file.metadata.num_row_groups):
        print_json_rows(tagged_table(file, [group]))
