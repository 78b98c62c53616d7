"""What runs the tasks of a job: threads of this process, or Spark.

Owns the interface. Leaves running them to `io.thread_engine` and `spark.jobs`, and the tasks to whoever hands them in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

# Called with the name of the step, the tasks done and the tasks in all.
Progress: TypeAlias = Callable[[str, int, int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """What runs the tasks of a job."""

    @property
    def parallelism(self) -> int:
        """Tasks that run at the same time."""

    @property
    def local(self) -> Engine:
        """An engine in this process, for work that is done sooner than handed out."""

    def run(self, step: str, work: Callable[[int, int, Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run ``work(task, attempt, item)`` for every item and give the results in order."""

    def reduce(
        self,
        step: str,
        work: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Run the same and merge the results, in any order."""
