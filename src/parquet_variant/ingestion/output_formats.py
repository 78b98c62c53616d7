"""The formats that an ingest can write, and the options that each format accepts.

To add a format: add its name to `choices.OutputFormat`, its rules to `FORMAT_RULES`, its destination module to
`ingestion.destinations` and the function that opens it to `ingestion.destinations.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from parquet_variant.errors import bad_option
from parquet_variant.files.parquet.writing.options import WriterOptions
from parquet_variant.support.choices import OutputFormat


@dataclass(frozen=True, slots=True)
class FormatRules:
    """The options that an output format accepts.

    Parameters
    ----------
    check_file_options
        Raises `VariantError` if the options of the data files (compression, layout, …) are invalid for this format.
    partitions
        ``partition_by`` is supported.
    one_file
        ``one_file`` is supported: the destination can be a single file instead of a directory.
    preview
        ``preview`` is supported: the table can declare the preview name of the shredding feature.
    parquet_files
        The data files are Parquet, so that their column encodings are chosen once for all tasks.
    catalogs
        ``catalog`` is supported: the destination can be a table of a catalog.
    """

    check_file_options: Callable[[Mapping[str, Any]], None]
    partitions: bool = True
    one_file: bool = False
    preview: bool = False
    parquet_files: bool = True
    catalogs: bool = False


def _check_parquet(options: Mapping[str, Any]) -> None:
    WriterOptions.of(dict(options))


def _check_table_files(options: Mapping[str, Any]) -> None:
    writer_options = dict(options)
    if (file_bytes := writer_options.pop("file_bytes", 1)) < 1:
        raise bad_option(f"file_bytes is {file_bytes}: it must be a positive number of bytes")
    WriterOptions.of(writer_options)


def _check_vortex(options: Mapping[str, Any]) -> None:
    # Deferred, because loading the Vortex writer takes longer than checking the options of the other formats.
    from parquet_variant.files.vortex.writer import check_options

    check_options(**options)


FORMAT_RULES: dict[OutputFormat, FormatRules] = {
    "parquet": FormatRules(_check_parquet, one_file=True),
    "delta": FormatRules(_check_table_files, preview=True),
    "iceberg": FormatRules(_check_table_files, catalogs=True),
    "vortex": FormatRules(_check_vortex, partitions=False, parquet_files=False),
}
