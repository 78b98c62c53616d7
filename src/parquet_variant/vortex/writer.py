"""`write`: Variant columns into a Vortex file, read back before it is there.

Owns the public operation, the choice of each column's layout, and that a file that lost something never gets its name.
Leaves the layouts to `storing`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.array.capsules import is_named
from parquet_variant.array.chunked_array import ChunkedVariantArray
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.functions.arrow_input import as_arrow
from parquet_variant.interop.table_of import table_of
from parquet_variant.io.staging import FileMode, replaces
from parquet_variant.parquet.writing.write import shredded_as
from parquet_variant.renamed import REPLACED, renamed
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.vortex.library import arrow_reader, batches_of, others_can_read, vortex, vortex_errors
from parquet_variant.vortex.storing import StoredLayout, first_difference, stored_column

__all__ = ["VortexFileInfo", "check_options", "write"]


@dataclass(frozen=True, slots=True)
class VortexFileInfo:
    """What was written.

    Parameters
    ----------
    path, rows, bytes
        The file.
    layouts
        How each Variant column lies in it.
    fallbacks
        Why a column does not lie as it was meant to.
    """

    path: str
    rows: int
    bytes: int
    layouts: dict[str, StoredLayout]
    fallbacks: dict[str, str] = field(default_factory=dict)


@renamed(overwrite=REPLACED)
def write(
    path: Any,
    data: Any,
    *,
    column: str = "v",
    schema: ShreddingSchema | str | Mapping[str, ShreddingSchema | str] | None = None,
    layout: Literal["auto", "variant", "struct"] = "auto",
    compact: bool = True,
    mode: FileMode = "error",
) -> VortexFileInfo:
    """Write a Vortex file with Variant columns. All of it is read back and compared before the file gets its name.

    Parameters
    ----------
    path
        The file to make; its directory is created.
    data
        A `VariantArray`; a mapping of column names to `VariantArray`, `ChunkedVariantArray` or Arrow arrays; or a
        pyarrow table whose Variant columns carry the extension name.
    column
        The column's name, if `data` is one array.
    schema
        What to shred, as in `pv.parquet.write`: a schema, its DDL, ``"infer"``, or several by column name.
    layout
        ``"variant"``: Vortex's Variant type, unshredded. ``"struct"``: the storage struct, typed columns beside the
        residual. ``"auto"``: the struct for what is shredded and the Variant type for the rest, or the other one where
        the library does not hold a column so.
    compact
        Whether Vortex may use its slower, smaller encodings.
    mode
        If the file is there: ``"error"``, or ``"overwrite"``.

    Raises
    ------
    VariantFileError
        If the file exists already, the library fails, or the file does not hold every row (``lost-in-file``).
    VariantError
        If vortex-data is not installed.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     info = write(f"{folder}/a.vortex", pv.parse_json(['{"a": 1}', "null", None]), schema="a bigint")
    ...     pv.vortex.read(f"{folder}/a.vortex")
    <VariantArray final, 3 rows: [{"a":1}, null, NULL]>
    >>> info.rows, info.layouts
    (3, {'v': 'struct'})
    """
    library = vortex()
    check_options(layout=layout, compact=compact)
    target = Path(os.fspath(path))
    if not replaces(mode) and target.exists():
        raise VariantFileError(
            f"{target} exists: choose another name, or replace it: mode='overwrite'", reason="file-exists"
        )
    columns = _columns(data, column)
    wanted: dict[str, StoredLayout] = {}
    for name, each in columns.items():
        if isinstance(each, VariantArray):
            own = schema.get(name) if isinstance(schema, Mapping) else schema
            columns[name] = each = shredded_as(each, own, "unshredded" if layout == "variant" else "final")
            wanted[name] = layout if layout != "auto" else "struct" if each.is_shredded else "variant"
    tries = [wanted] if layout != "auto" else _tries(wanted)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        staged = Path(folder) / "staged.vortex"
        failed: VariantFileError | None = None
        for layouts in tries:
            try:
                rows = _write(library, staged, columns, layouts, compact)
                break
            except VariantFileError as error:
                failed = failed or error
        else:
            assert failed is not None
            raise failed.at(file=str(target))
        size = staged.stat().st_size
        staged.replace(target)
    changed = [name for name in wanted if layouts[name] != wanted[name]]
    reasons = dict.fromkeys(changed, failed.message) if failed is not None else {}
    return VortexFileInfo(str(target), rows, size, layouts, reasons)


def check_options(**options: Any) -> None:
    """Check the options that say how a file is written, which do not depend on the file.

    Raises
    ------
    VariantError
        With reason ``"bad-option"``, also for a name that no option has.
    """
    if unknown := sorted(set(options) - {"layout", "compact"}):
        raise VariantError(
            f"there is no option {unknown[0]!r} for Vortex files: use layout or compact", reason="bad-option"
        )
    if (layout := options.get("layout", "auto")) not in ("auto", "variant", "struct"):
        raise VariantError(f"layout={layout!r} is unknown: use auto, variant or struct", reason="bad-option")


def _tries(wanted: dict[str, StoredLayout]) -> list[dict[str, StoredLayout]]:
    """What is wanted, then all columns in one layout; the library does not tell which column it cannot hold."""
    every: list[dict[str, StoredLayout]] = [wanted, dict.fromkeys(wanted, "struct"), dict.fromkeys(wanted, "variant")]
    return [each for number, each in enumerate(every) if each not in every[:number]]


def _columns(data: Any, column: str) -> dict[str, Any]:
    if isinstance(data, (VariantArray, ChunkedVariantArray)):
        data = {column: data}
    if not isinstance(data, Mapping) or not data:
        table = table_of(data)
        data = {
            each.name: VariantArray.from_arrow(array) if is_named(each) else array
            for each, array in zip(table.schema, table.columns, strict=True)
        }
    columns = {name: each.combine() if isinstance(each, ChunkedVariantArray) else each for name, each in data.items()}
    columns = {name: each if isinstance(each, VariantArray) else as_arrow(each) for name, each in columns.items()}
    sizes = {name: len(each) for name, each in columns.items()}
    if len(set(sizes.values())) > 1:
        raise VariantFileError(f"columns must have one length, these differ: {sizes}", reason="lengths-differ")
    return columns


def _write(library: Any, path: Path, columns: dict[str, Any], layouts: dict[str, StoredLayout], compact: bool) -> int:
    fields, arrays = [], []
    for name, each in columns.items():
        if name in layouts:
            stored, array = stored_column(each, layouts[name])
        else:
            stored, array = pa.field("", each.type), each
        fields.append(stored.with_name(name))
        arrays.append(array)
    table = pa.table(arrays, schema=pa.schema(fields))
    path.unlink(missing_ok=True)
    with vortex_errors(path):
        options = library.io.VortexWriteOptions
        (options.compact() if compact else options.default()).write(table, str(path))
    if "variant" in layouts.values() and not others_can_read(path):
        raise VariantFileError("Vortex cannot read its Variant type back from these rows", reason="vortex-failed")
    _verify(library, path, columns, layouts)
    return int(table.num_rows)


def _verify(library: Any, path: Path, columns: dict[str, Any], layouts: dict[str, StoredLayout]) -> None:
    start = 0
    with vortex_errors(path):
        reader = arrow_reader(library.open(str(path)))
    for batch in batches_of(reader, path):
        for name, given in columns.items():
            part = (given.storage if name in layouts else given).slice(start, batch.num_rows)
            row = first_difference(part, batch.column(name), is_variant=name in layouts)
            if row is not None:
                raise VariantFileError(
                    f"Vortex did not keep column {name!r}: the file is not made", reason="lost-in-file", row=start + row
                )
        start += batch.num_rows
    rows = len(next(iter(columns.values())))
    if start != rows:
        raise VariantFileError(f"Vortex kept {start} of {rows} rows: the file is not made", reason="lost-in-file")
