"""Jobs over Spark Connect, which has no RDDs: tasks as rows of a DataFrame, worked on by `mapInArrow`.

Owns telling such a session, running tasks in it, its progress and its cancelling. Leaves what tasks do to the caller,
and sessions in this process to `engine`.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors
from parquet_variant.spark.worker_end import QuietEnd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from parquet_variant.io.engine import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")
_ROWS = 10_000


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def connect_parallelism(spark: SparkSession) -> int:
    """Tasks that the server runs at the same time: as many as it makes of a range."""
    return int(spark.range(_ROWS).selectExpr("spark_partition_id() AS part").distinct().count())


def run_over_connect(
    spark: SparkSession,
    step: str,
    work: Callable[[int, int, Item], Result],
    items: Sequence[Item],
    progress: Progress | None = None,
) -> list[Result]:
    """Run ``work(task, attempt, item)`` for every item, a task each, and give the results in order.

    Raises `VariantError`: the error that `work` raised.
    """
    count, end = len(items), QuietEnd()
    everything = list(items)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        _ = end
        context = TaskContext.get()
        attempt = context.taskAttemptId() if context else 0
        for batch in batches:
            for task in batch.column(0).to_pylist():
                with to_spark_errors():
                    result = pickle.dumps(work(task, attempt, everything[task]))
                yield pa.RecordBatch.from_pydict({"task": [task], "result": [result]})

    tasks = spark.range(0, count, 1, count)
    with _job(spark, step, count, progress), from_spark_errors():
        rows = tasks.mapInArrow(run, "task bigint, result binary").collect()
    return [pickle.loads(row.result) for row in sorted(rows, key=lambda row: row.task)]


@contextmanager
def _job(spark: SparkSession, step: str, tasks: int, progress: Progress | None) -> Iterator[None]:
    """Tag the job, watch it, and interrupt it if the caller is interrupted."""
    tag = f"parquet-variant-{uuid.uuid4().hex[:8]}"
    told = 0

    def watch(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        nonlocal told
        completed = min(sum(stage.num_completed_tasks for stage in stages or ()), tasks)
        if progress is not None and completed > told:
            told = completed
            progress(step, told, tasks)

    spark.addTag(tag)
    if progress is not None:
        progress(step, 0, tasks)
        spark.registerProgressHandler(watch)
    try:
        yield
    except BaseException:
        with suppress(Exception):
            spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)
        if progress is not None:
            spark.removeProgressHandler(watch)
    if progress is not None:
        progress(step, tasks, tasks)
