"""Whether contenders give the same, looked at before any time counts.

Owns comparing values. Leaves what is compared to the modules in `works`. A contender that gives other values in some
rows is not left out: the rows are counted and told below the table. More than one row in ten is not the same work, and
stops the run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa


def different_json(ours: pa.Array, theirs: Sequence[str | None]) -> int:
    """The number of rows whose JSON texts do not have the same value."""
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    return sum(
        a != b and (a is None or b is None or json.loads(a) != json.loads(b))
        for a, b in zip(ours.to_pylist(), theirs, strict=True)
    )


def different_rows(ours: pa.Table, theirs: pa.Table) -> int:
    """The number of rows that differ in some column, by place."""
    assert ours.num_rows == theirs.num_rows, (ours.num_rows, theirs.num_rows)
    theirs = theirs.rename_columns(ours.column_names).cast(ours.schema)
    return sum(a != b for a, b in zip(ours.to_pylist(), theirs.to_pylist(), strict=True))


def told(who: str, different: int, rows: int) -> str:
    """What to tell about a contender that differs in so many rows."""
    assert different <= rows / 10, f"{who} differs in {different} of {rows} rows"
    return f"{who}: other values in {different:,} of {rows:,} rows." if different else f"{who}: equal in every row."
