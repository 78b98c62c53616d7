"""What a merge is asked: target, source, condition, and the clauses in their order.

Owns these as data. Leaves filling them in to `merge`, and doing it to `merging`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.io.engine import Engine

Kind: TypeAlias = Literal["matched", "not_matched", "not_matched_by_source"]


@dataclass(frozen=True)
class MergeClause:
    """One WHEN clause."""

    kind: Kind  # Of which rows it speaks.
    action: Literal["update", "insert", "delete"]
    # SQL by column or path; None for all columns of the source under their own names.
    values: Mapping[str, str] | None = None
    predicate: str | None = None  # SQL that must also be true; None for nothing.
    without: frozenset[str] = frozenset()  # Columns that "all" leaves out.


@dataclass(frozen=True)
class MergeRequest:
    """A merge whole: of the clauses about a row, the first whose predicate is true applies."""

    target: Snapshot
    source: pa.Table
    condition: str
    source_alias: str
    target_alias: str
    zone: str
    engine: Engine
    options: Mapping[str, Any]
    clauses: tuple[MergeClause, ...] = ()
