"""The pipeline on Spark: JSON files in, shredded Parquet files or a Delta table out, as two jobs.

Owns the engine that lays the tasks over Spark; one job profiles all splits and merges the profiles, one writes and the
driver commits. The text is read in the Python workers and never passes through the JVM. Leaves the steps to
`parquet.ingest_job` and what a task does to `parquet.ingest_task`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from parquet_variant.errors import VariantError
from parquet_variant.ingest.job import Sources, run_ingest
from parquet_variant.ingest.result import IngestResult
from parquet_variant.ingest.sources import Format
from parquet_variant.ingest.task import OnError
from parquet_variant.io.engine import Progress
from parquet_variant.io.staging import Mode
from parquet_variant.io.thread_engine import ThreadEngine
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.spark.jobs import reduce_tasks, run_tasks
from parquet_variant.spark.options import location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkEngine", "ingest"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def ingest(
    spark: SparkSession,
    sources: Sources,
    dest: str | os.PathLike[str],
    *,
    schema: ShreddingSchema | str | None = None,
    policy: Any = None,
    sample: float | None = None,
    column: str = "v",
    on_error: OnError = "fail",
    mode: Mode = "error",
    format: Literal["parquet", "delta", "vortex"] = "parquet",
    input_format: Format = "auto",
    split_bytes: int | None = None,
    parse: Mapping[str, Any] | None = None,
    preview: bool = False,
    progress: Progress | None = None,
    **write: Any,
) -> IngestResult:
    """Read JSON files and write them as a directory of shredded Parquet files or as a Delta table, on Spark.

    Parameters
    ----------
    spark
        A session; its workers must have parquet-variant installed and see the sources and `dest`.
    sources
        Files, directories, globs or URIs of NDJSON or JSON arrays; plain, gzip, zstd, bz2 or lz4.
    dest
        The directory to write. It has all of the files in the end, or is as it was.
    schema
        What to shred, as an object or DDL. By default it is inferred from the input: of up to 64 MiB of text by the
        driver, of more in a job.
    policy
        How to infer it; see `infer_shredding_schema`.
    sample
        Share of the lines that the schema is inferred from, above 0 up to 1; by default 8 MiB of text, and of a large
        input an eighth. Which lines depends on where they lie in their file, not on how the work is divided.
    column
        Name of the variant column.
    on_error
        ``"fail"``: the first bad line ends the job and nothing is written; ``"quarantine"``: bad lines go to
        ``_bad_records`` below `dest`, with file, line number and reason, and are counted.
    mode
        If `dest` holds data: ``"error"``, ``"append"``, ``"overwrite"`` or ``"ignore"``.
    format
        ``"parquet"``: a directory of files; ``"delta"``: a Delta table, made if it is not there, in one commit;
        ``"vortex"``: Vortex files on a disk that all workers share (options of `vortex.write` in the place of those of
        `VariantWriter`).
    input_format
        ``"ndjson"``, ``"array"`` or ``"auto"``.
    split_bytes
        Size of the parts into which plain files are cut, one a task; by default so that every core has one, from 4 to
        128 MiB.
    parse
        Options of `parse_json`.
    preview
        For a new Delta table: name the feature ``variantShredding-preview``, for readers that know no other.
    progress
        Called with the step, the tasks done and the tasks in all, from another thread.
    **write
        Options of `VariantWriter`, such as ``compression="zstd"`` or ``row_group_bytes``.

    Returns
    -------
    IngestResult
        With the schema, and counts of rows, files and bad records.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read, sources without a value, or a destination that holds data.
    DeltaError
        For a table that is there already, or that this package may not write.
    JsonError
        For a bad line, if `on_error` is ``"fail"``, with file and line.
    """
    if format not in ("parquet", "delta", "vortex"):
        raise VariantError(f"format is {format!r}: use parquet, delta or vortex", reason="bad-option")
    # The workers may stand in another directory than the driver.
    named = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    target: Any = location(os.fspath(dest))
    if format == "delta":
        from parquet_variant.ingest.destinations.delta import delta_destination

        target = delta_destination(target, mode, preview=preview)
    elif format == "vortex":
        from parquet_variant.ingest.destinations.vortex import vortex_destination

        target = vortex_destination(target, mode)
    return run_ingest(
        SparkEngine(spark, progress),
        [location(os.fspath(source)) for source in named],
        target,
        schema=schema,
        policy=policy,
        sample=sample,
        column=column,
        on_error=on_error,
        mode=mode,
        input_format=input_format,
        split_bytes=split_bytes,
        parse=parse,
        write=write,
    )


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """An engine that runs every task as a Spark task."""

    spark: SparkSession
    progress: Progress | None

    @property
    def parallelism(self) -> int:
        """Tasks that Spark runs at the same time."""
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
