"""The data that engines are tried on: a copy of a user's files, with the rows that this library reads from it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.files import locate
from parquet_variant.files.parquet.reading.read_table import read_table as read_parquet
from parquet_variant.files.vortex.reader import read_table as read_vortex
from parquet_variant.io.filesystems import has_delta_log, has_iceberg_metadata
from parquet_variant.tables.delta.reading.read import read_table as read_delta
from parquet_variant.tables.iceberg.reading.scan import read_table as read_iceberg
from parquet_variant.tables.iceberg.reading.snapshot import snapshot as iceberg_snapshot
from parquet_variant.tables.opening import is_vortex

Kind: TypeAlias = Literal["parquet", "delta", "iceberg", "vortex"]
# Larger directories are not copied as a whole: their first files are tried, at least one.
MAX_COPY_BYTES = 64 << 20


@dataclass(frozen=True)
class Subject:
    """A copy of some files or of a table.

    Parameters
    ----------
    kind
        The format.
    paths
        What an engine opens: the files, the table's directory, or the metadata file of an Iceberg table.
    rows
        The rows of the copy as this library reads them.
    variants
        The Variant columns of `rows`.
    """

    kind: Kind
    paths: tuple[str, ...]
    rows: pa.Table
    variants: tuple[str, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether engines return the rows in the order of the files."""
        return self.kind in ("parquet", "vortex")


@contextmanager
def copy_of(path: str | os.PathLike[str]) -> Iterator[Subject]:
    """Copy files or a table into a temporary directory, and read the copy.

    Iceberg's metadata names absolute paths, so that an Iceberg table is tried in place. Raises `VariantFileError` for a
    path that does not exist on this machine, and for data without a Variant column.
    """
    source = Path(path)
    if not source.exists():
        raise VariantFileError(
            f"{path} does not exist on this machine: name a local file, directory or table", reason="no-such-file",
            file=str(path),
        )  # fmt: skip
    with TemporaryDirectory(prefix="variant-compat-") as folder:
        if has_delta_log(str(source)):
            shutil.copytree(source, f"{folder}/table")
            yield _subject("delta", [f"{folder}/table"], read_delta(f"{folder}/table"))
        elif has_iceberg_metadata(str(source)):
            current = iceberg_snapshot(str(source))
            yield _subject("iceberg", [str(current.table.metadata_location)], read_iceberg(current))
        elif is_vortex(str(source)):
            files = _copied([source] if source.is_file() else sorted(source.rglob("*.vortex")), Path(folder))
            yield _subject("vortex", files, pa.concat_tables([read_vortex(file) for file in files]))
        else:
            files = _copied([Path(file.path) for file in locate(str(source))], Path(folder))
            yield _subject("parquet", files, read_parquet(files))


def _copied(files: list[Path], folder: Path) -> list[str]:
    """Copy the first files, at least one, and return the paths of the copies."""
    copies: list[str] = []
    size = 0
    for number, file in enumerate(files):
        size += file.stat().st_size
        if copies and size > MAX_COPY_BYTES:
            break
        copy = folder / f"{number:05}-{file.name}"
        shutil.copyfile(file, copy)
        copies.append(str(copy))
    return copies


def _subject(kind: Kind, paths: list[str], rows: pa.Table) -> Subject:
    variants = tuple(field.name for field in rows.schema if is_variant_field(field))
    if not variants:
        raise VariantFileError(
            f"{paths[0]} has no Variant column: compat compares the Variant columns of a file", reason="not-a-variant",
            file=paths[0],
        )  # fmt: skip
    return Subject(kind, tuple(paths), rows, variants)
