"""The engine that runs the tasks of a job on Spark.

Owns the engine's face. Leaves running a Spark job to `jobs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from parquet_variant.io.engine import Progress, ThreadEngine
from parquet_variant.spark.connect import connect_parallelism, is_connect
from parquet_variant.spark.jobs import reduce_tasks, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """An engine that runs every task as a Spark task."""

    spark: SparkSession
    progress: Progress | None

    @property
    def parallelism(self) -> int:
        """Tasks that Spark runs at the same time."""
        if is_connect(self.spark):
            return connect_parallelism(self.spark)
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def local(self) -> ThreadEngine:
        """Threads of the driver."""
        return ThreadEngine(None, self.progress)

    def run(self, step: str, work: Callable[[int, int, Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run the tasks and give their results in order."""
        return run_tasks(self.spark, step, work, items, self.progress)

    def reduce(
        self,
        step: str,
        work: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Run the tasks and merge their results."""
        return reduce_tasks(self.spark, step, work, items, merge, self.progress)
