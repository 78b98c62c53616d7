"""`Scan`: a query over the paths and columns of a table, with the same methods for all formats.

Owns the methods. Leaves planning and reading to the plan of the format.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from html import escape
from itertools import chain, islice
from typing import Any, TypeVar

import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.io.commit_journal import of_current_files
from parquet_variant.ops.interop.display import html_table, shown_columns
from parquet_variant.ops.interop.tables import ArrowResult
from parquet_variant.query.predicate import columns_of
from parquet_variant.query.selection import PlannedQuery, late_time_hints, with_late_time_hints
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.records import cached_property

_Result = TypeVar("_Result")


class Scan(ArrowResult):
    """A query over a table, made by `Table.scan`; only metadata is read until rows are requested.

    Parameters
    ----------
    make_plan
        Returns the scan of the format.
    dataframe
        Returns the rows as a Spark DataFrame; None without a session.
    table
        The table, whose keys are in hints about misspelled paths; None for no such hints.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> events = pv.open(pv.parse_json(['{"n": 1}', '{"n": 2}']))
    >>> scan = events.scan({"n": "$.n:long"}, "n > 1")
    >>> scan.schema.names, scan.to_arrow().to_pydict()
    (['n'], {'n': [2]})
    """

    def __init__(
        self, make_plan: Callable[[], PlannedQuery], dataframe: Callable[..., Any] | None = None, table: Any = None
    ) -> None:
        self._make_plan = make_plan
        self._dataframe = dataframe
        self._table = table

    @cached_property
    def plan(self) -> PlannedQuery:
        """The scan of the format."""
        return self._make_plan()

    def __repr__(self) -> str:
        return repr(self.plan)

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, for notebooks."""
        rows = next(self.batches(), self.schema.empty_table())
        return f"<p>{escape(repr(self))}</p>" + html_table(self.schema.names, shown_columns(rows))

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result; a Variant is a struct whose field has the extension name."""
        return self.plan.schema

    @property
    def bytes_read(self) -> int:
        """The compressed bytes of columns that this scan has read so far in this process."""
        return self.plan.bytes_read

    def explain(self) -> Any:
        """Return what the scan would read and skip: files, row groups or ranges, columns and bytes."""
        return self.plan.explain()

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in tables of at least one row, in the order of files and rows; warns as `to_arrow`."""
        hints = dict[str, None]()
        yield from with_late_time_hints(self.begun(), hints)
        self._warn(hints)

    def begun(self) -> Iterator[pa.Table]:
        """Return the tables of `batches`, of which the first has been read; the warnings are those of `plan`."""
        first, parts = self._of_current_plan(lambda plan: (list(islice(parts := plan.batches(), 1)), parts))
        return chain(first, parts)

    def tasks(self, task_bytes: int = 128 << 20) -> list[Any]:
        """Split the work into tasks of about `task_bytes`, which other processes can `read`.

        Raises `VariantError` (``unsupported-operation``) for JSON, Vortex and rows in memory.
        """
        return self.plan.tasks(task_bytes)

    def read(self, task: Any) -> Iterator[pa.Table]:
        """Yield the part of the result that belongs to a task."""
        return self.plan.read(task)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_plan, (self.plan,)

    def to_arrow(self) -> pa.Table:
        """Return the whole result.

        Warns of a path that no row has, if a similar one exists, and of values that the filter did not compare.
        """
        table = self._of_current_plan(lambda plan: plan.to_arrow())
        names = {name for name in table.column_names if table[name].null_count == len(table)}
        if (predicate := self.plan.predicate) is not None and not len(table):
            names = columns_of(predicate)
        is_local = self._table is not None and not self._table.options.filesystem and "://" not in self._table.uri
        hints = self.path_hints(names) if is_local else []
        self._warn([*late_time_hints(table), *(hint for hint in hints if "did you mean" in hint)])
        return table

    def path_hints(self, names: Collection[str] | None = None) -> list[str]:
        """Return hints about paths that no row has, of some or all columns, for which keys of the table are read."""
        columns = [c for c in self.plan.question.columns if c.path is not None and (names is None or c.name in names)]
        return list(registered_method("Scan.facts")(self._table, "").path_hints(columns, True)) if columns else []

    def _of_current_plan(self, read: Callable[[PlannedQuery], _Result]) -> _Result:
        """Return the result of `read` for the plan, which is made again if a commit replaced its files meanwhile."""
        plans = chain([self.plan], iter(self._make_plan, None))

        def run() -> _Result:
            self.plan = next(plans)
            self.plan.take_warnings()  # of a run that was not finished
            return read(self.plan)

        return of_current_files(run)

    def _warn(self, hints: Iterable[str] = ()) -> None:
        for text in (*hints, *self.plan.take_warnings()):
            warnings.warn(text, UserWarning, stacklevel=3)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the result as an Arrow stream, which is read batch by batch."""
        batches = (batch for part in self.batches() for batch in part.to_batches())
        return pa.RecordBatchReader.from_batches(self.schema, batches).__arrow_c_stream__(requested_schema)

    def to_spark(self, *, reader: str = "auto", partition_bytes: int | None = None, merge_schema: bool = False) -> Any:
        """Return the result as a Spark DataFrame, whose tasks read the files.

        Parameters
        ----------
        reader
            ``"python"``: the data source of this package reads all files. ``"jvm"``: the JVM reads all files, or an
            error is raised. ``"auto"``: the JVM reads a file if the result is the same.
        partition_bytes
            Compressed bytes that one task of the data source reads (default: 64 MiB).
        merge_schema
            Read the columns of all files, with null if a file lacks a column, instead of those of the first file.

        Raises
        ------
        VariantError
            ``"no-session"`` if the table was opened without a Spark session; ``"no-struct-view"`` if the JVM cannot
            read a file with ``reader="jvm"``.
        """
        if self._dataframe is None:
            raise VariantError(
                "a DataFrame needs a Spark session: open the table with pv.open(…, engine=spark)", reason="no-session"
            )
        return self._dataframe(engine=reader, partition_bytes=partition_bytes, merge_schema=merge_schema)


def _of_plan(plan: PlannedQuery) -> Scan:
    """Return a scan that was sent to another process."""
    return Scan(lambda: plan)
