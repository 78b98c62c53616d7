"""The data on which engines are tried: a copy of one file or table; and the comparison of the values that they read."""

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
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.files.parquet.format.files import locate
from parquet_variant.files.parquet.reading.read import read_table as read_parquet
from parquet_variant.files.vortex.reader import read_table as read_vortex
from parquet_variant.io.filesystems import has_delta_log, has_iceberg_metadata
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.equals import equals
from parquet_variant.support import arrow_compute as pc
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

    `kind`: the format.
    `paths`: what an engine opens: the files, the table's directory, or the metadata file of an Iceberg table.
    `rows`: the rows of the copy as this library reads them.
    `variants`: the Variant columns of `rows`.
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


_SHOWN_CHARACTERS = 60


def first_difference(subject: Subject, rows: pa.Table) -> str | None:
    """Return where the rows of an engine differ from the subject's, as text; None if all values are equal."""
    if len(rows) != len(subject.rows):
        return f"{len(rows):,} rows instead of {len(subject.rows):,}"
    for name in subject.variants:
        try:
            theirs = VariantArray.from_arrow(rows, column=name)
            ours = VariantArray.from_arrow(subject.rows, column=name)
            difference = _different_variants(ours, theirs, ordered=subject.is_ordered)
        except (VariantError, pa.ArrowException) as error:
            difference = f"the values cannot be decoded: {str(error).splitlines()[0]}"
        if difference is not None:
            return f"column {name}: {difference}"
    if not subject.is_ordered:
        return None
    for name in subject.rows.column_names:
        if name not in subject.variants and (difference := _different_column(subject.rows[name], rows[name])):
            return f"column {name}: {difference}"
    return None


def _different_variants(ours: VariantArray, theirs: VariantArray, *, ordered: bool) -> str | None:
    texts = [pc.fill_null(to_json(array), "SQL NULL") for array in (ours, theirs)]
    if not ordered:
        order = [pc.sort_indices(text) for text in texts]
        ours, theirs = ours.take(order[0]), theirs.take(order[1])
        texts = [text.take(indices) for text, indices in zip(texts, order, strict=True)]
    same = pc.and_(pc.fill_null(equals(ours, theirs), True), pc.equal(ours.is_null(), theirs.is_null()))
    if pc.all(same, min_count=0).as_py():
        return None
    count, row = pc.sum(pc.invert(same)).as_py(), pc.index(same, False).as_py()
    values = [_short(text[row].as_py()) for text in texts]
    place = f"row {row}" if ordered else "one row"
    how = " (of another type)" if values[0] == values[1] else ""
    return f"{count:,} of {len(ours):,} values differ: {place} is {values[1]}{how} instead of {values[0]}"


def _different_column(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> str | None:
    """Return the first difference of a column without Variants; other types of the same values are equal."""
    try:
        theirs = theirs.cast(ours.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return f"has the type {theirs.type} instead of {ours.type}"
    if ours.equals(theirs):
        return None
    for row, (mine, other) in enumerate(zip(ours.to_pylist(), theirs.to_pylist(), strict=True)):
        if mine != other and not (mine != mine and other != other):
            return f"row {row} is {_short(str(other))} instead of {_short(str(mine))}"
    return None


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
