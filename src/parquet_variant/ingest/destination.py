"""What an ingest needs of a destination: what every task does, and what makes the whole visible, or leaves nothing.

Owns the interface. Leaves each kind of table to its module in `destinations`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from parquet_variant.ingest.splits import Split
from parquet_variant.ingest.task import WrittenSplits
from parquet_variant.ingest.task_plan import TaskPlan

__all__ = ["Destination", "Work"]

# What a task does: number of the task, of the attempt, and its splits.
Work: TypeAlias = Callable[[int, int, list[Split]], WrittenSplits]


class Destination(Protocol):
    """What the tasks write into, and what makes it visible."""

    dest: str

    @property
    def bad_records_path(self) -> str:
        """Where bad lines go that are put aside."""

    def work(self, plan: TaskPlan) -> Work:
        """What every task does; can be pickled."""

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Make what the tasks wrote visible; the data files' paths below `dest`."""

    def abort(self) -> None:
        """Leave everything as it was."""
