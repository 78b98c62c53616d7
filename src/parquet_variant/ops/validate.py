"""`validate`: all structural faults of a column.

Owns the public operation and the report. `kernels.operations.validate` finds valid rows, `encoding.validate` describes
the faults, and the layouts find contradictions between columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays import parts
from parquet_variant.arrays.final_columns import groups_below
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.metadata import Dictionary
from parquet_variant.encoding.validate import find_faults
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError, check_count
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.kernels.operations.validate import mark_valid_dictionaries, mark_valid_rows
from parquet_variant.kernels.values.reading import EncodedValues, NameTable, name_table
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.ops.columns.arguments import canonical_storage, or_null, unchecked_array
from parquet_variant.ops.columns.slot_casts import faulty_slots
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types.path import VariantPath

REPORT = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("part", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
    ]
)
_MAX_DEPTH = 1000
_ROOT = VariantPath()


def validate(array: Any, max_depth: int = _MAX_DEPTH) -> pa.Table:
    r"""Report every structural fault of a column; a valid column gives an empty table.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    max_depth
        Maximum nesting depth.

    Returns
    -------
    pyarrow.Table
        One row per fault, ordered by row: ``row``; ``path`` of the shredded column with the bytes (``$`` in an
        unshredded column); ``part``, ``"metadata"`` or ``"value"``, and ``offset``, the byte offset of the fault in it;
        ``reason``, a code listed in `encoding.validate`; ``message``. Contradictions between the columns of a shredded
        array have no part and no offset.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> sound, cut = pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")
    >>> report = pv.validate(pv.VariantArray.from_variants([sound, None, cut]))
    >>> report.select(["row", "part", "offset", "reason"]).to_pylist()
    [{'row': 2, 'part': 'value', 'offset': 0, 'reason': 'truncated'}]
    """
    check_count("max_depth", max_depth)
    column = VariantArray.from_variants([array]) if isinstance(array, Variant) else unchecked_array(array)
    faults = _Faults(max_depth)
    if column.layout == "unshredded":
        storage = column.storage
        metadata = parts.metadata_parts(storage.field("metadata"))
        faults.check_column(storage.field("value"), parts.valid_bytes(storage), metadata)
    elif column.layout == "final":
        faults.check_groups(column.storage)
        faults.check_rows(column)
    else:
        faults.records += validate(faults.check_rows(column), max_depth).to_pylist()
    faults.records.sort(key=lambda fault: (fault["row"], fault["part"] is not None and fault["part"] != "metadata"))
    return pa.Table.from_pylist(faults.records, REPORT)


def sound_rows(storage: pa.StructArray, max_depth: int = _MAX_DEPTH) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows of an unshredded storage that the kernel finds valid, SQL NULL included."""
    metadata = parts.metadata_parts(storage.field("metadata"))
    return _sound_values(storage.field("value"), parts.valid_bytes(storage), metadata, metadata.indices, max_depth)


def refuse_malformed(array: VariantArray) -> None:
    """Raise the error of the first row that could not be read from a file: metadata, and unshredded values."""
    metadata = parts.metadata_parts(array.storage.field("metadata"))
    if not len(metadata.dictionary):
        return
    if array.layout == "unshredded":  # which checks the metadata of each row, too
        is_sound = sound_rows(array.storage)
    else:
        is_sound = _sound_dictionaries(metadata, name_table(metadata.dictionary))[metadata.indices]

    def read(row: int) -> None:
        Dictionary(metadata.dictionary[int(metadata.indices[row])].as_py())  # which reading a scalar does not need
        if array.layout == "unshredded" and (variant := array[row]) is not None:
            variant.to_python()

    parts.row_by_row(np.flatnonzero(~is_sound & to_numpy(array.storage.is_valid())).tolist(), read)


def _sound_values(
    values: pa.Array,
    valid: npt.NDArray[np.uint8],
    metadata: parts.MetadataParts,
    dictionary_of: npt.NDArray[np.int32],
    max_depth: int,
) -> npt.NDArray[np.bool_]:
    names, value = name_table(metadata.dictionary), parts.binary_parts(values)
    marks, dictionary_valid = np.zeros(len(values), np.uint8), _sound_dictionaries(metadata, names).view(np.uint8)
    encoded = EncodedValues(valid, value.offsets, value.address, dictionary_of)
    mark_valid_rows(encoded, names.starts, names.rank, dictionary_valid, marks, max_depth)
    return marks.astype(np.bool_)


def _sound_dictionaries(metadata: parts.MetadataParts, names: NameTable) -> npt.NDArray[np.bool_]:
    blobs, valid = parts.binary_parts(metadata.dictionary), np.zeros(len(metadata.dictionary), np.uint8)
    mark_valid_dictionaries(blobs.address, blobs.offsets, names.state, valid)
    return valid.astype(np.bool_)


class _Faults:
    """The rows of a report."""

    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self.records: list[dict[str, Any]] = []

    def add(self, row: int, *values: Any) -> None:
        self.records.append(dict(zip(REPORT.names, (row, *values), strict=True)))

    def check_column(
        self,
        values: pa.Array,
        valid: npt.NDArray[np.uint8],
        metadata: parts.MetadataParts,
        rows: npt.NDArray[np.int64] | None = None,
        path: VariantPath = _ROOT,
    ) -> None:
        """Record the faults of one binary column; ``rows`` has the row of each entry, None for entry i in row i."""
        dictionary_of = metadata.indices if rows is None else metadata.indices[rows]
        sound = _sound_values(values, valid, metadata, dictionary_of, self.max_depth)
        for entry in np.flatnonzero(~sound).tolist():
            row = entry if rows is None else int(rows[entry])
            index = int(dictionary_of[entry])
            blob = metadata.dictionary[index].as_py() if index >= 0 else b""
            for fault in find_faults(blob, values[entry].as_py() or b"", self.max_depth):
                if rows is None or fault.part == "value":  # shredded columns: metadata is reported once per row
                    self.add(row, str(path), fault.part, fault.offset, fault.reason, fault.message)

    def check_groups(self, storage: pa.StructArray) -> None:
        """Record the faults of every binary column of a shredded storage, and of the metadata."""
        metadata = parts.metadata_parts(storage.field("metadata"))
        # Each distinct metadata is checked once, with a Variant null as value, and its faults reported for its rows.
        of_dictionary = _Faults(self.max_depth)
        count = len(metadata.dictionary)
        index_of = parts.MetadataParts(np.arange(count, dtype=np.int32), metadata.dictionary)
        of_dictionary.check_column(pa.array([b"\0"] * count, pa.binary()), np.empty(0, np.uint8), index_of)
        valid = parts.valid_mask(storage)
        for fault in of_dictionary.records:
            rows = np.flatnonzero((metadata.indices == fault["row"]) & valid)
            self.records.extend({**fault, "row": int(row)} for row in rows)
        pending: list[tuple[pa.Array, npt.NDArray[np.int64], VariantPath]] = [(storage, np.arange(len(storage)), _ROOT)]
        while pending:
            group, rows, path = pending.pop()
            children = parts.columns_of(group)
            if "value" in children:
                values = children["value"]
                self.check_column(values, parts.valid_bytes(values), metadata, rows, path)
            typed = children.get("typed_value")
            if typed is None:
                continue
            pending.extend((child, child_rows, path / step) for step, child, child_rows in groups_below(typed, rows))
            if not pa.types.is_struct(typed.type) and not is_list(typed.type):
                for position, reason, message in faulty_slots(typed):
                    self.add(int(rows[position]), str(path), None, None, reason, message)

    def check_rows(self, column: VariantArray) -> VariantArray:
        """Record the faults that prevent assembling rows without recorded faults.

        Returns the unshredded rows, with SQL NULL for rows that cannot be assembled.
        """
        plain = or_null(column, canonical_storage)
        recorded = {fault["row"] for fault in self.records}
        for row in np.flatnonzero(to_numpy(pc.and_not(column.storage.is_valid(), plain.is_valid()))).tolist():
            try:
                column[row : row + 1].to_unshredded()
            except VariantError as error:
                if row not in recorded:
                    self.add(row, error.path or "$", None, None, error.reason, error.message)
        return VariantArray(plain)
