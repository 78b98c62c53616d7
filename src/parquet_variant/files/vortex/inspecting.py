"""`inspect`: a report on Vortex files, made without reading their rows; and `dtype_of`, the logical type of a column.

`trailer` reads the notes of the writer.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import named_variants
from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.files.vortex.dtype import VariantDType, final_variant, layout_of
from parquet_variant.files.vortex.library import open_file
from parquet_variant.files.vortex.paths import some_vortex_files
from parquet_variant.files.vortex.reader import choose_variant
from parquet_variant.files.vortex.trailer import ColumnNote
from parquet_variant.layouts.shredding_schema import ShreddingSchema


@dataclass(slots=True)
class VortexColumnReport:
    """A Variant column of Vortex files.

    Parameters
    ----------
    name
        The name of the column.
    dtype
        The logical type: ``variant``, or ``variant?`` if rows may be absent.
    layouts
        Number of files by layout.
    types
        Types of the typed columns, by path.
    in_bytes
        Paths of the schema that are not typed because the layout cannot hold them, with the reason.
    ranges
        Number of row ranges with statistics of the typed columns.
    is_json, has_texts
        True if the column was written from JSON text, and if the original texts are kept.
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
        """Add the column of one file."""
        if column.nullable:
            self.dtype = str(VariantDType(nullable=True))
        self.layouts[layout] = self.layouts.get(layout, 0) + 1
        self.in_bytes.update(note.in_bytes)
        self.ranges += 0 if note.statistics is None else note.statistics.count
        self.is_json |= note.is_json
        self.has_texts |= note.has_texts
        is_shredded = column.type.get_field_index("typed_value") >= 0
        schema = note.typed_schema or (ShreddingSchema.from_storage(column.type) if is_shredded else None)
        for path, node in schema.leaves() if schema is not None else ():
            if node.type is not None:
                self.types[str(path)] = tuple(dict.fromkeys((*self.types.get(str(path), ()), node.to_ddl())))


@dataclass(frozen=True, slots=True)
class VortexReport:
    """A report on Vortex files; see `inspect`.

    Parameters
    ----------
    files, rows, bytes
        Number of files, of rows, and of bytes.
    checked
        Number of files with checksums.
    columns
        The Variant columns.
    other_columns
        Names of the other columns.
    """

    files: int
    rows: int
    bytes: int
    checked: int
    columns: tuple[VortexColumnReport, ...]
    other_columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary of JSON values."""
        return {"format": "vortex", **asdict(self)}


def dtype_of(source: Any, column: str | None = None) -> VariantDType:
    """Return the logical type of a Variant column, whose nullability is declared and does not depend on the values.

    Parameters
    ----------
    source
        Vortex files (a path, as for `vortex_files`), of which the schemas decide; an Arrow table, record batch, schema
        or field; or an array, which is nullable, because only a field can declare otherwise.
    column
        The name of the column, if there are several.

    Raises
    ------
    VariantFileError
        If the column does not exist, or is not a Variant.
    SchemaError
        For an array or a field that is not a Variant.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, parquet_variant as pv
    >>> table = pv.vortex.variant_table({"v": pv.parse_json(["1"])})
    >>> fixed = table.cast(pa.schema([table.schema.field("v").with_nullable(False)]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.write(f"{folder}/a.vortex", fixed)
    ...     print(dtype_of(f"{folder}/a.vortex"), dtype_of(fixed), dtype_of(pv.parse_json(["1"])))
    variant variant variant?
    """
    if isinstance(source, (str, os.PathLike)):
        files = [open_file(name) for name in some_vortex_files(source)]
        return VariantDType(any(file.schema.field(choose_variant(file, column)).nullable for file in files))
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        source = source.schema
    if isinstance(source, pa.Schema):
        names = named_variants(source)
        if (column or (names[0] if len(names) == 1 else None)) not in names:
            raise VariantFileError(
                f"name one of the Variant columns with column=: {', '.join(names) or 'there are none'}",
                reason="no-such-column",
            )
        source = source.field(column or names[0])
    if isinstance(source, pa.Field):
        if layout_of(source) is None:
            raise SchemaError(f"the field {source.name!r} is not a Variant: {source.type}", reason="not-a-variant")
        return VariantDType(source.nullable)
    final_variant(source)  # raises an error for other arrays
    return VariantDType(nullable=True)


def inspect(path: str | os.PathLike[str], column: str | None = None) -> VortexReport:
    """Report the layouts and typed columns of Vortex files, and the paths that a layout could not type.

    See `Table.inspect`.
    """
    files = some_vortex_files(path)
    columns: dict[str, VortexColumnReport] = {}
    other_columns: dict[str, None] = {}
    rows = checked = 0
    for name in files:
        file = open_file(name)
        rows += len(file)
        checked += file.is_checked
        for schema_field in file.schema:
            layout = file.layouts.get(schema_field.name)
            if layout is None:
                other_columns[schema_field.name] = None
            elif column in (None, schema_field.name):
                report = columns.setdefault(schema_field.name, VortexColumnReport(schema_field.name))
                report.add(schema_field, layout, file.note(schema_field.name))
    if column is not None and not columns:
        raise VariantFileError(f"{path} has no Variant column {column!r}", reason="no-such-column")
    size = sum(Path(file_path).stat().st_size for file_path in files)
    return VortexReport(len(files), rows, size, checked, tuple(columns.values()), tuple(other_columns))
