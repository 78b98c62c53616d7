"""Compare the rows that an engine returned with the rows that this library reads.

Owns the comparison of columns, and the text for the first difference. Variants are compared by meaning.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.equals import equals
from parquet_variant.quality.compatibility.subject import Subject
from parquet_variant.support import arrow_compute as pc

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
