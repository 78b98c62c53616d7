"""Checks that contenders give the same values, before anything is timed.

Owns comparing values. Leaves the values to the modules in `works`. A contender that gives other values in some rows is
not left out: a note below the table counts these rows. If more than one row in ten differs, the contender does not do
the same work, and the run stops.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa


def different_json(ours: pa.Array, theirs: Sequence[str | None]) -> int:
    """Return the number of rows whose JSON texts do not have the same value."""
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    return sum(
        a != b and (a is None or b is None or json.loads(a) != json.loads(b))
        for a, b in zip(ours.to_pylist(), theirs, strict=True)
    )


def different_rows(ours: pa.Table, theirs: pa.Table) -> int:
    """Return the number of rows that differ in some column; rows are compared by position."""
    assert ours.num_rows == theirs.num_rows, (ours.num_rows, theirs.num_rows)
    theirs = theirs.rename_columns(ours.column_names).cast(ours.schema)
    return sum(a != b for a, b in zip(ours.to_pylist(), theirs.to_pylist(), strict=True))


def difference_note(who: str, different: int, rows: int) -> str:
    """Return the note about a contender that differs in some rows; fail if it differs in more than a tenth of them."""
    assert different <= rows / 10, f"{who} differs in {different} of {rows} rows"
    return f"{who}: other values in {different:,} of {rows:,} rows." if different else f"{who}: equal in every row."
