"""The engine that runs the tasks of a job on Spark: the function in the workers, progress, cancelling, errors whole.

Owns the two ways there: the RDD interface, which needs neither pandas nor a trip of the data through the JVM; and over
Spark Connect, which has no RDDs, tasks as rows of a DataFrame, worked on by `mapInArrow`. Leaves what the tasks do to
the caller.
"""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from parquet_variant.io.engine import Progress, ThreadEngine
from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors
from parquet_variant.spark.worker_end import QuietEnd

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")
_Cancel = Callable[[], None]
_End = Callable[[], None]

_POLL_SECONDS = 0.2
# Spark ends a worker two seconds after its task was cancelled.
_LONGEST_END = 10.0
_ROWS = 10_000


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """An engine that runs every task as a Spark task, and tells progress from another thread."""

    spark: SparkSession
    progress: Progress | None

    @property
    def parallelism(self) -> int:
        """Tasks that Spark runs at the same time; over Connect as many as the server makes of a range."""
        if is_connect(self.spark):
            parts = self.spark.range(_ROWS).selectExpr("spark_partition_id() AS part")
            return int(parts.distinct().count())
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
        with _job(self.spark, step, len(items), self.progress), from_spark_errors():
            if is_connect(self.spark):
                return _over_connect(self.spark, _in_task(work), list(items))
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
            return reduce(merge, self.run(step, work, items))
        with _job(self.spark, step, len(items), self.progress), from_spark_errors():
            return self._tasks(work, items).treeReduce(merge)

    def _tasks(self, work: Callable[[int, int, Item], Result], items: Sequence[Item]) -> RDD[Result]:
        in_task = _in_task(work)
        tasks = self.spark.sparkContext.parallelize(list(enumerate(items)), len(items))
        return tasks.map(lambda numbered: in_task(*numbered))


def _in_task(work: Callable[[int, int, Item], Result]) -> Callable[[int, Item], Result]:
    """What runs in a worker for one item: with its attempt, errors whole, and a quiet end."""
    end = QuietEnd()

    def run(task: int, item: Item) -> Result:
        from pyspark import TaskContext

        _ = end
        context = TaskContext.get()
        with to_spark_errors():
            return work(task, context.taskAttemptId() if context else 0, item)

    return run


def _over_connect(spark: SparkSession, in_task: Callable[[int, Item], Result], items: list[Item]) -> list[Result]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                result = pickle.dumps(in_task(task, items[task]))
                yield pa.RecordBatch.from_pydict({"task": [task], "result": [result]})

    tasks = spark.range(0, len(items), 1, len(items))
    rows = tasks.mapInArrow(run, "task bigint, result binary").collect()
    return [pickle.loads(row.result) for row in sorted(rows, key=lambda row: row.task)]


@contextmanager
def _job(spark: SparkSession, step: str, tasks: int, progress: Progress | None) -> Iterator[None]:
    """Name the job, watch it, and cancel it if the caller is interrupted."""
    told = 0

    def tell(completed: int) -> None:
        nonlocal told
        if progress is not None and told < min(completed, tasks):
            told = min(completed, tasks)
            progress(step, told, tasks)

    if progress is not None:
        progress(step, 0, tasks)
    name = f"parquet-variant-{uuid.uuid4().hex[:8]}"
    cancel, end = _watch_tag(spark, name, tell) if is_connect(spark) else _watch_group(spark, name, step, tell)
    try:
        yield
    except BaseException:
        cancel()
        raise
    finally:
        end()
    if progress is not None:
        progress(step, tasks, tasks)


def _watch_tag(spark: SparkSession, tag: str, tell: Callable[[int], None]) -> tuple[_Cancel, _End]:
    """Over Connect: how to cancel the jobs of this thread, and to stop watching them."""

    def watch(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        tell(sum(stage.num_completed_tasks for stage in stages or ()))

    def cancel() -> None:
        with suppress(Exception):
            spark.interruptTag(tag)

    def end() -> None:
        spark.removeTag(tag)
        spark.removeProgressHandler(watch)

    spark.addTag(tag)
    spark.registerProgressHandler(watch)
    return cancel, end


def _watch_group(spark: SparkSession, group: str, step: str, tell: Callable[[int], None]) -> tuple[_Cancel, _End]:
    """The same in a session of this process."""
    context = spark.sparkContext
    done = threading.Event()

    def stages() -> list[Any]:
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        every = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return [stage for stage in every if stage is not None]

    def watch() -> None:
        while not done.wait(_POLL_SECONDS):
            # The first stage does the work; the others only merge.
            tell(max((stage.numCompletedTasks for stage in stages()), default=0))

    def cancel() -> None:
        context.cancelJobGroup(group)
        # What the tasks stage may be removed only once they write no more.
        last = time.monotonic() + _LONGEST_END
        while time.monotonic() < last and any(stage.numActiveTasks for stage in stages()):
            time.sleep(_POLL_SECONDS)

    def end() -> None:
        done.set()
        watcher.join()
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)

    context.setJobGroup(group, step, interruptOnCancel=True)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    return cancel, end
