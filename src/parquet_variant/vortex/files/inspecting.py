"""`inspect`: what is in Vortex files, without reading their rows.

Owns the report of files. Leaves what a writer noted to `trailer`.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.vortex.columnar.storage import FAMILIES
from parquet_variant.vortex.files.library import open_file
from parquet_variant.vortex.files.paths import some_vortex_files
from parquet_variant.vortex.files.trailer import ColumnNote
from parquet_variant.vortex.logical.encodings import VariantDType


@dataclass(slots=True)
class VortexColumnReport:
    """A Variant column of Vortex files.

    Parameters
    ----------
    name
        Its name.
    dtype
        The logical type, ``variant`` or ``variant?``: whether rows may be absent.
    layouts
        How many files have it in which layout.
    types
        The types that are columns of their own, by path.
    in_bytes
        What was to be typed and is not, because the layout cannot hold it, with the reason.
    ranges
        Ranges of rows with statistics of the typed columns.
    is_json, has_texts
        Whether it was JSON text, and whether that text is kept byte by byte.
    """

    name: str
    dtype: str = str(VariantDType(nullable=False))
    layouts: dict[str, int] = field(default_factory=dict)
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    in_bytes: dict[str, str] = field(default_factory=dict)
    ranges: int = 0
    is_json: bool = False
    has_texts: bool = False

    def add(self, column: pa.Field, layout: str, note: ColumnNote) -> None:
        """Count one file in."""
        if column.nullable:
            self.dtype = str(VariantDType(nullable=True))
        self.layouts[layout] = self.layouts.get(layout, 0) + 1
        self.in_bytes.update(note.in_bytes)
        self.ranges += 0 if note.statistics is None else note.statistics.count
        self.is_json |= note.is_json
        self.has_texts |= note.has_texts
        for path, name in _columnar(column.type) if layout == "columnar" else _typed(column.type, note):
            self.types[path] = tuple(dict.fromkeys((*self.types.get(path, ()), name)))


@dataclass(frozen=True, slots=True)
class VortexReport:
    """Vortex files; see `inspect`."""

    files: int
    rows: int
    bytes: int
    checked: int
    columns: tuple[VortexColumnReport, ...]
    other_columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report for machines."""
        return {"format": "vortex", **asdict(self)}


def _typed(storage: pa.DataType, note: ColumnNote) -> list[tuple[str, str]]:
    names = {each.name for each in storage}
    schema = note.schema or (ShreddingSchema.from_storage(storage) if "typed_value" in names else None)
    if schema is None:
        return []
    return [(str(path), node.to_ddl()) for path, node in schema.leaves() if node.type is not None]


def _columnar(storage: pa.DataType, path: str = "$") -> list[tuple[str, str]]:
    families = [(path, each.name) for each in storage if each.name in FAMILIES]
    for each in storage:
        if each.name == "rest":
            families.append((path, "others in bytes"))
        elif each.name == "array":
            families += _columnar(each.type.value_type, f"{path}[*]")
        elif each.name == "object":
            for below in each.type:
                quoted = below.name.replace("\\", "\\\\").replace("'", "\\'")
                families += _columnar(below.type, f"{path}['{quoted}']")
    return families


def inspect(path: str | os.PathLike[str], column: str | None = None) -> VortexReport:
    """What the Vortex files of a path hold: layouts, typed columns, and what a layout could not hold.

    Parameters
    ----------
    path
        What `vortex_files` takes.
    column
        Only this Variant column.

    Raises
    ------
    VariantFileError
        If there are no files, no such column, or a file is damaged.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = pv.parse_json(['{"a": 1, "l": [1]}'])
    ...     _ = pv.vortex.write(f"{folder}/a.vortex", rows, schema="a bigint, l array<bigint>", layout="variant")
    ...     report = inspect(folder)
    >>> report.columns[0].layouts, report.columns[0].types, list(report.columns[0].in_bytes)
    ({'variant': 1}, {"$['a']": ('bigint',)}, ["$['l']"])
    """
    files = some_vortex_files(path)
    columns: dict[str, VortexColumnReport] = {}
    others: dict[str, None] = {}
    rows = checked = 0
    for name in files:
        file = open_file(name)
        rows += len(file)
        checked += file.is_checked
        for each in file.schema:
            layout = file.layouts.get(each.name)
            if layout is None:
                others[each.name] = None
            elif column in (None, each.name):
                report = columns.setdefault(each.name, VortexColumnReport(each.name))
                report.add(each, layout, file.notes.get(each.name, ColumnNote()))
    if column is not None and not columns:
        raise VariantFileError(f"there is no Variant column {column!r} in {path}", reason="no-such-column")
    size = sum(Path(each).stat().st_size for each in files)
    return VortexReport(len(files), rows, size, checked, tuple(columns.values()), tuple(others))
