"""The engine that runs the tasks of a job on Spark: the function in the workers, progress, cancelling, errors whole.

Owns the use of the RDD interface, which needs neither pandas nor a trip of the data through the JVM. Leaves sessions
without one to `connect`, and what the tasks do to the caller.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

from parquet_variant.io.engine import Progress, ThreadEngine
from parquet_variant.spark.connect import connect_parallelism, is_connect, run_over_connect
from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors
from parquet_variant.spark.worker_end import QuietEnd

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")


_POLL_SECONDS = 0.2
# Spark ends a worker two seconds after its task was cancelled.
_LONGEST_END = 10.0


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """An engine that runs every task as a Spark task, and tells progress from another thread."""

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
        """Run ``work(task, attempt, item)`` for every item, a task each, and give the results in order.

        `step`: what the job does, for `progress` and Spark's UI.
        `work`: a function that can be pickled. `attempt` is different in every run of a task, so that repeated and
          speculative runs can keep apart; the result of just one of them is returned.
        `items`: what to work on; can be pickled.
        Raises `VariantError`: the error that `work` raised, as it was.
        """
        if not items:
            return []
        if is_connect(self.spark):
            return run_over_connect(self.spark, step, work, items, self.progress)
        with _job(self.spark, step, len(items), self.progress), from_spark_errors():
            return self._tasks(work, items).collect()

    def reduce(
        self,
        step: str,
        work: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Run tasks as `run` does and merge their results, in a tree if they are many."""
        if is_connect(self.spark):
            return reduce(merge, run_over_connect(self.spark, step, work, items, self.progress))
        with _job(self.spark, step, len(items), self.progress), from_spark_errors():
            return self._tasks(work, items).treeReduce(merge)

    def _tasks(self, work: Callable[[int, int, Item], Result], items: Sequence[Item]) -> RDD[Result]:
        return self.spark.sparkContext.parallelize(list(enumerate(items)), len(items)).mapPartitions(_task(work))


def _task(work: Callable[[int, int, Item], Result]) -> Callable[[Iterator[tuple[int, Item]]], Iterator[Result]]:
    end = QuietEnd()

    def run(items: Iterator[tuple[int, Item]]) -> Iterator[Result]:
        from pyspark import TaskContext

        _ = end
        context = TaskContext.get()
        attempt = context.taskAttemptId() if context else 0
        for task, item in items:
            with to_spark_errors():
                result = work(task, attempt, item)
            yield result

    return run


@contextmanager
def _job(spark: SparkSession, step: str, tasks: int, progress: Progress | None) -> Iterator[None]:
    """Name the job, watch it, and cancel it if the caller is interrupted."""
    context = spark.sparkContext
    group = f"parquet-variant-{uuid.uuid4().hex[:8]}"
    context.setJobGroup(group, step, interruptOnCancel=True)
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(context, group, step, tasks, progress, done), daemon=True)
    if progress is not None:
        progress(step, 0, tasks)
        watcher.start()
    try:
        yield
    except BaseException:
        context.cancelJobGroup(group)
        _wait_until_over(context, group)
        raise
    finally:
        done.set()
        if progress is not None:
            watcher.join()
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)
    if progress is not None:
        progress(step, tasks, tasks)


def _wait_until_over(context: object, group: str) -> None:
    """Wait for tasks that were cancelled: what they stage may be removed only once they write no more."""
    tracker = context.statusTracker()  # type: ignore[attr-defined]
    last = time.monotonic() + _LONGEST_END
    while time.monotonic() < last:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        if not any(stage.numActiveTasks for stage in stages if stage is not None):
            return
        time.sleep(_POLL_SECONDS)


def _watch(context: object, group: str, step: str, tasks: int, progress: Progress, done: threading.Event) -> None:
    tracker = context.statusTracker()  # type: ignore[attr-defined]
    told = 0
    while not done.wait(_POLL_SECONDS):
        stages = [
            tracker.getStageInfo(stage)
            for job in tracker.getJobIdsForGroup(group)
            if (info := tracker.getJobInfo(job)) is not None
            for stage in info.stageIds
        ]
        # The first stage does the work; the others only merge.
        completed = max((stage.numCompletedTasks for stage in stages if stage is not None), default=0)
        if completed > told:
            told = min(completed, tasks)
            progress(step, told, tasks)
