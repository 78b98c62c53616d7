"""`SparkEngine`: runs the tasks of a job on Spark, with progress, cancellation and complete errors; and jobs over rows.

Tasks run through the RDD interface, which needs neither pandas nor a transfer of data through the JVM. Spark Connect
has no RDDs, so that tasks are rows of a DataFrame there, which `mapInArrow` processes. `merged_batches` is a job over
all rows of a Variant column.
"""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql.types import StringType, StructType, VariantType

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.io.parallel import Progress, ReportTasks, ThreadEngine, shown
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.spark.arrow_variant import from_spark
from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors
from parquet_variant.support.records import Record

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, Row, SparkSession


Item = TypeVar("Item")
Result = TypeVar("Result")
_Cancel = Callable[[], None]
_End = Callable[[], None]

_POLL_SECONDS = 0.2
# Spark ends a worker two seconds after its task was cancelled.
_MAX_CANCEL_SECONDS = 10.0
# Rows of a range that shows the parallelism of a Connect server.
_RANGE_ROWS = 10_000


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is a client of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


class SparkEngine(Record):
    """An engine that runs every task as a Spark task."""

    spark: SparkSession  # The session.
    # Called from another thread with the step, the tasks that are done and the number of tasks; True shows a bar.
    progress: Progress | None

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time; over Connect, the number of partitions of a range."""
        if is_connect(self.spark):
            partitions = self.spark.range(_RANGE_ROWS).selectExpr("spark_partition_id() AS part")
            return int(partitions.distinct().count())
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def local(self) -> ThreadEngine:
        """An engine of threads in the driver."""
        return ThreadEngine(None, self.progress)

    def run(
        self, step: str, work: Callable[[int, int, Item], Result], items: Sequence[Item], sizes: Sequence[int] = ()
    ) -> list[Result]:
        """Run ``work(task, attempt, item)`` for every item as a task, and return the results in order.

        `work` and `items` can be pickled. `attempt` differs between runs of the same task, so that repeated and
        speculative runs do not interfere. `sizes` is not used: Spark counts tasks.
        """
        if not items:
            return []
        with shown(self.progress) as progress, _job(self.spark, step, len(items), progress), from_spark_errors():
            if not is_connect(self.spark):
                return self._tasks(work, items).collect()
            in_worker, inputs = _in_worker(work), list(items)

            def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    for task in batch.column(0).to_pylist():
                        result = pickle.dumps(in_worker(task, inputs[task]))
                        yield pa.RecordBatch.from_pydict({"task": [task], "result": [result]})

            tasks = self.spark.range(0, len(inputs), 1, len(inputs))
            rows = tasks.mapInArrow(run, "task bigint, result binary").collect()
            return [pickle.loads(row.result) for row in sorted(rows, key=lambda row: row.task)]

    def reduce(
        self,
        step: str,
        work: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
        sizes: Sequence[int] = (),
    ) -> Result:
        """Run tasks as `run` does and merge their results, in a tree if there are many."""
        if is_connect(self.spark):
            return reduce(merge, self.run(step, work, items))
        with shown(self.progress) as progress, _job(self.spark, step, len(items), progress), from_spark_errors():
            return self._tasks(work, items).treeReduce(merge)

    def _tasks(self, work: Callable[[int, int, Item], Result], items: Sequence[Item]) -> RDD[Result]:
        in_worker = _in_worker(work)
        tasks = self.spark.sparkContext.parallelize(list(enumerate(items)), len(items))
        return tasks.map(lambda numbered_item: in_worker(*numbered_item))


def _in_worker(work: Callable[[int, int, Item], Result]) -> Callable[[int, Item], Result]:
    """Return the function that a worker runs for an item: it adds the attempt and transfers errors completely."""

    def run(task: int, item: Item) -> Result:
        from pyspark import TaskContext

        context = TaskContext.get()
        with to_spark_errors():
            return work(task, context.taskAttemptId() if context else 0, item)

    return run


@contextmanager
def _job(spark: SparkSession, step: str, tasks: int, progress: ReportTasks | None) -> Iterator[None]:
    """Name the job, report its progress, and cancel it if the caller is interrupted."""
    reported = 0

    def report(completed: int) -> None:
        nonlocal reported
        if progress is not None and reported < min(completed, tasks):
            reported = min(completed, tasks)
            progress(step, reported, tasks)

    if progress is not None:
        progress(step, 0, tasks)
    name = f"parquet-variant-{uuid.uuid4().hex[:8]}"
    watched = None if progress is None else report
    cancel, end = _watch_tag(spark, name, report) if is_connect(spark) else _watch_group(spark, name, step, watched)
    try:
        yield
    except BaseException:
        cancel()
        raise
    finally:
        end()
    if progress is not None:
        progress(step, tasks, tasks)


def _watch_tag(spark: SparkSession, tag: str, report: Callable[[int], None]) -> tuple[_Cancel, _End]:
    """Watch the jobs of this thread over Connect; return functions that cancel them and that stop watching."""

    def watch(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        report(sum(stage.num_completed_tasks for stage in stages or ()))

    def cancel() -> None:
        with suppress(Exception):
            spark.interruptTag(tag)

    def end() -> None:
        spark.removeTag(tag)
        spark.removeProgressHandler(watch)

    spark.addTag(tag)
    spark.registerProgressHandler(watch)
    return cancel, end


def _watch_group(
    spark: SparkSession, group: str, step: str, report: Callable[[int], None] | None
) -> tuple[_Cancel, _End]:
    """Watch the jobs of this thread, as `_watch_tag` does; without `report`, the JVM is not asked for their state."""
    context = spark.sparkContext
    done = threading.Event()

    def stages() -> list[Any]:
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        infos = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return [info for info in infos if info is not None]

    def watch(report: Callable[[int], None]) -> None:
        while not done.wait(_POLL_SECONDS):
            # Only the first stage has all tasks; later stages merge their results.
            report(max((stage.numCompletedTasks for stage in stages()), default=0))

    def cancel() -> None:
        context.cancelJobGroup(group)
        # The staged files of the tasks may be removed only when the tasks have stopped writing.
        deadline = time.monotonic() + _MAX_CANCEL_SECONDS
        while time.monotonic() < deadline and any(stage.numActiveTasks for stage in stages()):
            time.sleep(_POLL_SECONDS)

    def end() -> None:
        done.set()
        if watcher is not None:
            watcher.join()
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)

    context.setJobGroup(group, step, interruptOnCancel=True)
    watcher = None
    if report is not None:
        watcher = threading.Thread(target=watch, args=(report,), daemon=True)
        watcher.start()
    return cancel, end


def choose_column(schema: StructType, name: str | None) -> tuple[str, bool]:
    """Return the name of the column that becomes the Variant, and whether it contains JSON text."""
    types = {field.name: field.dataType for field in schema.fields}
    variants = [column for column, data_type in types.items() if isinstance(data_type, VariantType)]
    strings = [column for column, data_type in types.items() if isinstance(data_type, StringType)]
    if name is not None:
        if name not in (*variants, *strings):
            candidates = ", ".join(variants + strings) or "none"
            raise VariantError(
                f"column {name!r} is not a VARIANT or string column: choose from {candidates}", reason="bad-column"
            )
        return name, name in strings
    columns = variants or strings
    if len(columns) != 1:
        candidates = ", ".join(columns) or "none"
        problem = f"the option column must name the VARIANT or JSON string column; candidates: {candidates}"
        raise VariantError(problem, reason="bad-column")
    return columns[0], not variants


def merged_batches(
    df: DataFrame,
    column: str | None,
    work: Callable[[VariantArray], Result],
    empty: Result,
    merge: Callable[[Result, Result], Result],
) -> Result:
    """Return the merged results of `work` for the batches of a VARIANT or JSON column, as one job over all rows."""
    from pyspark.sql.functions import arrow_udf

    name, is_json = choose_column(df.schema, column)

    @arrow_udf("binary")
    def batch_result(values: pa.Array) -> pa.Array:
        # The first row of a batch contains its result. An Arrow UDF does not need pandas; `mapInArrow` does.
        with to_spark_errors():
            result = pickle.dumps(work(parse_json(values) if is_json else from_spark(values)))
        return pa.array([result, *[None] * (len(values) - 1)], pa.binary())

    def with_batch(merged: Result, row: Row) -> Result:
        return merge(merged, pickle.loads(row.result))

    # Non-deterministic, because Spark would otherwise run it again on the rows that the filter returns.
    results = df.select(batch_result.asNondeterministic()(df[name]).alias("result")).where("result IS NOT NULL")
    with from_spark_errors():
        if is_connect(df.sparkSession):
            return reduce(with_batch, results.toLocalIterator(), empty)
        return results.rdd.treeAggregate(empty, with_batch, merge)
