"""`annotate`: set or remove the VARIANT annotation of columns in an existing file.

Owns replacing the file by a copy with a new footer. Leaves the bytes of the footer to `format.footer`.
"""

from __future__ import annotations

import os
from collections.abc import Collection

import pyarrow as pa
from pyarrow import fs

from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.columns import find_variants
from parquet_variant.files.parquet.format.files import locate
from parquet_variant.files.parquet.format.footer import (
    MAGIC,
    TAIL,
    annotate_footer,
    footer_bytes,
    parse_schema,
    refuse_signed,
)
from parquet_variant.io.filesystems import filesystem_of, write_errors
from parquet_variant.io.staging import recover
from parquet_variant.io.temporaries import linked_file, open_temporary, temporary_beside

_COPY_BYTES = 4 << 20


def annotate(
    path: str | os.PathLike[str], columns: Collection[str] | None = None, *, filesystem: fs.FileSystem | None = None
) -> tuple[str, ...]:
    """Set which columns of a Parquet file have the VARIANT(1) annotation; nothing else in the file changes.

    See `ParquetTable.annotate`.
    """
    system, name = filesystem_of(path, filesystem)
    recover([path], filesystem)
    name = linked_file(system, name)
    size = locate(name, system)[0].size
    with system.open_input_file(name) as source:
        footer = footer_bytes(source, name)
        root = parse_schema(footer, name)
        if columns is None:
            variants = find_variants(root)
            paths = {column.path for column in variants if column.layout in ("unshredded", "final")}
        else:
            dotted = {node.dotted: node.path for node in root.walk() if node.physical is None and node.path}
            paths = {dotted.get(column, (column,)) for column in columns}
        patched = annotate_footer(footer, paths, name)
        if patched != footer:
            refuse_signed(footer, name)
            _replace(system, name, source, size - TAIL - len(footer), patched)
    return tuple(".".join(column) for column in sorted(paths))


def _replace(system: fs.FileSystem, name: str, source: pa.NativeFile, body: int, footer: bytes) -> None:
    """Write a copy with another footer to a temporary file, then rename it."""
    temporary = temporary_beside(name)
    try:
        with write_errors(name), open_temporary(system, temporary, name) as stream:
            source.seek(0)
            while body > 0:
                piece = source.read(min(body, _COPY_BYTES))
                if not piece:
                    raise VariantFileError(
                        "the file became shorter while it was copied: try again", reason="changed", file=name
                    )
                stream.write(piece)
                body -= len(piece)
            stream.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
            stream.close()
            system.move(temporary, name)
    except BaseException:
        if system.get_file_info(temporary).type == fs.FileType.File:
            system.delete_file(temporary)
        raise
