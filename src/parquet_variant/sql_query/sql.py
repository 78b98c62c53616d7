"""`sql`: queries over files, tables and arrays with Variant columns, which DuckDB runs over typed columns.

Owns the public operation: binding names to tables, running the engine over Arrow streams, and error messages. Leaves
the query to `rewriting`, tables to `tables`, and the forms of a result to `result`.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.errors import VariantFileError, bad_option, check_choice, check_session
from parquet_variant.files.parquet.format.footer_cache import state_of
from parquet_variant.io.commit_journal import of_current_files
from parquet_variant.io.parallel import thread_count
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.query.duckdb_engine import connect, interruptible
from parquet_variant.query.predicate import predicate_text
from parquet_variant.query.rewriting.scopes import TableUse, check_distinct, unique_names
from parquet_variant.query.selection import PlannedQuery, late_time_hints
from parquet_variant.query.sql_dialect import SqlError
from parquet_variant.query.sql_expression import ENGINE_STORAGE, engine_message
from parquet_variant.query.variant_functions import CallContext, register_calls
from parquet_variant.sql_query.binding import bind_table
from parquet_variant.sql_query.result import SqlResult, copy_statement, with_json, with_variants, write_result
from parquet_variant.sql_query.rewriting.query import Rewritten
from parquet_variant.sql_query.scans import ScanOptions
from parquet_variant.sql_query.tables import BoundTable
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.options import Errors, SqlEngine
from parquet_variant.support.records import Record
from parquet_variant.types.forms import with_fields


class Stream:
    """A planned scan as an Arrow stream that can be read several times; its errors are appended to `failures`."""

    def __init__(self, plan: PlannedQuery, failures: list[Exception]) -> None:
        self.plan, self.failures = plan, failures
        # With the extension name DuckDB would convert Variants to its own type; they pass through it as bytes.
        self.schema = pa.schema([_without_extension(field) for field in plan.schema])
        if cut := [name for name in self.schema.names if "\0" in name]:  # the engine would drop the rest of the name
            raise SqlError(f"the name of the column {cut[0]!r} contains NUL, which SQL does not allow: rename it")

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for table in self.plan.batches():
                yield pa.record_batch([one_chunk(column) for column in table.columns], schema=self.schema)
        except Exception as error:
            self.failures.append(error)
            raise


def _without_extension(field: pa.Field) -> pa.Field:
    return pa.field(field.name, with_fields(field.type, _without_extension), field.nullable)


_BATCH_ROWS = 1 << 17
# Arrow types that DuckDB cannot read.
_UNSUPPORTED = re.compile("halffloat|decimal256")
_NUMBERED = tuple("123456789")  # the names of paths in the engine's text begin with the number of their table


def sql(
    query: str,
    source: Any = None,
    /,
    *,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    errors: Errors = "null",
    zone: str = "UTC",
    threads: int | None = None,
    engine: Any = None,
    **tables: Any,
) -> Any:
    """Run a query, and read only the columns, row groups and files that it needs.

    Parameters
    ----------
    query
        A SELECT (or WITH, set operation, DESCRIBE) in DuckDB's SQL, with paths into Variants:
        ``v:a.b[0]::string``, ``v['a']``, ``variant_get(v, '$.a', 'int')``. ``FROM 'events/'`` reads
        files by their path. ``COPY (SELECT …) TO 'file.csv'`` writes the result to a file (also ``.parquet``,
        ``.ndjson``, ``.arrow``) and returns the number of rows.
    source
        The table ``t``, as at the command line.
    params
        The values of parameters: a list for ``?``, or a dict for ``$name``.
    errors
        ``"null"``: a failed cast is NULL; ``"raise"``: it is an error.
    zone
        The session time zone of casts.
    threads
        Number of worker threads (default: the CPUs that this process may use).
    engine
        A Spark session, which runs the query in Spark SQL: ``FROM`` also names tables of the session, paths are quoted
        with backticks (``FROM `events/` ``), and the tables are paths or open tables. By default DuckDB runs it.
    **tables
        The tables that FROM names: paths, globs, Delta tables, ``.vortex`` files, scans, Arrow tables, polars data
        frames, `VariantArray` (the column ``v``).

    Returns
    -------
    SqlResult
        The result, with ``.to_arrow()``, ``.to_polars()`` and ``.to_pandas()``. The column of a path is named by its
        last key, and Variants are JSON. With a Spark session a DataFrame, in which a Variant is a VARIANT.

    Raises
    ------
    SqlError
        If the text is not a query, names an unknown table or column, or computes with a Variant that has no type;
        raised before any data is read.
    VariantError
        If a table cannot be read; ``missing-extra`` if DuckDB is not installed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> events = pv.parse_json(['{"kind": "a", "n": 1}', '{"kind": "b", "n": 5}', '{"kind": "a", "n": 2}'])
    >>> pv.sql("SELECT v:kind::string, max(v:n::int) AS n FROM t GROUP BY kind ORDER BY n", t=events).to_pylist()
    [{'kind': 'a', 'n': 2}, {'kind': 'b', 'n': 5}]
    """
    if source is not None and "t" in tables:
        raise bad_option("the second argument is the table t, and t= is another one: leave out one of the two")
    tables = tables if source is None else {"t": source, **tables}
    if engine is not None:
        check_session(engine)
        return registered_method("SparkSession.sql")(engine, query, params=params, **tables)
    copy = copy_statement(query)
    text = query if copy is None else copy.query

    def run() -> SqlResult:
        planned = plan_sql(text, tables, params=params, errors=errors, zone=zone, threads=threads)
        if copy is not None:
            rows = write_result(copy.file, planned.batches(as_text=False), copy, planned.sources(tables))
            return SqlResult(pa.table({"Count": pa.array([rows], pa.int64())}), planned.warnings)
        return SqlResult(planned.run(), planned.warnings, planned.wide_integers)

    are_paths = all(isinstance(getattr(table, "source", table), str | os.PathLike) for table in tables.values())
    return of_current_files(run) if are_paths else run()  # a stream could not be read again


def plan_sql(
    query: str,
    tables: Mapping[str, Any],
    *,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    errors: Errors = "null",
    zone: str = "UTC",
    threads: int | None = None,
    engine: SqlEngine = "duckdb",
    opens_paths: bool = True,
) -> SqlQuery:
    """Parse a query and bind its tables, reading only footers and logs.

    `query` and `tables` and `params` and `errors` and `zone` and `threads`: as for `sql`.
    `opens_paths`: whether FROM may name files and tables by their path; otherwise only `tables` can be read.
    Raises `SqlError` or `VariantError` as for `sql`.
    """
    check_choice("errors", errors, ("null", "raise"))
    thread_count(threads)
    binder = _binder(tables, opens_paths)
    rewritten = Rewritten(binder, engine, zone, strict=errors == "raise").rewrite(query, params)
    options = ScanOptions(errors, zone, threads, engine == "duckdb", rewritten.only_bounds)
    plans = {use.relation: use.table.scan(use.needed, use.predicate, options) for use in rewritten.uses}
    return SqlQuery(rewritten, plans, options, list(rewritten.warnings))


class SqlQuery(Record, frozen=False):
    """A planned query."""

    rewritten: Rewritten  # The text for the engine, and what it needs.
    plans: Mapping[str, PlannedQuery]  # The scan of each relation in that text.
    options: ScanOptions = field(default_factory=ScanOptions)
    warnings: list[str] = field(default_factory=list)  # After the run, hints about paths that no row has.
    wide_integers: list[int] = field(default_factory=list)  # After the run, the numbers of the columns of HUGEINT.

    def run(self) -> pa.Table:
        """Run the query in DuckDB, and return the result."""
        return pa.concat_tables(self.batches(as_text=False))

    def batches(self, *, as_text: bool = True, seconds: float | None = None) -> Generator[pa.Table]:
        """Yield the result in parts, at least one, as the engine produces it.

        `as_text`: whether Variants are JSON strings, or Variants.
        `seconds`: the time after which the query is stopped with `SqlError`, reason ``time-limit``.
        """
        failures: list[Exception] = []
        context = CallContext(self.options.errors, self.options.zone)
        before = self._states()
        with (
            connect(zone=self.options.zone, threads=self.options.threads) as connection,
            interruptible(connection) as run,
        ):
            import duckdb

            timer = None if seconds is None else threading.Timer(seconds, connection.interrupt)
            try:
                if timer is not None:
                    timer.start()
                relation, reader = run(partial(self._started, connection, failures, context))
                self.wide_integers = [at for at, kind in enumerate(relation.types) if str(kind) == "HUGEINT"]
                read = partial(run, partial(next, reader, None))
                parts = (pa.table([*batch.columns], schema=batch.schema) for batch in iter(read, None))
                names = unique_names(reader.schema.names)
                has_values = [False] * len(names)
                for part in chain([next(parts, empty_table(reader.schema))], parts):
                    has_values = [
                        seen or _has_values(column) for seen, column in zip(has_values, part.columns, strict=True)
                    ]
                    part = part.rename_columns(names)
                    self.warnings += [hint for hint in late_time_hints(part) if hint not in self.warnings]
                    if self.rewritten.describes:
                        kinds = [kind.replace(ENGINE_STORAGE, "VARIANT") for kind in part["column_type"].to_pylist()]
                        yield part.set_column(1, "column_type", pa.array(kinds, pa.string()))
                    else:
                        yield with_json(part) if as_text else with_variants(part)
                texts = chain(context.take_warnings(), *(plan.take_warnings() for plan in self.plans.values()))
                self.warnings += dict.fromkeys(texts)
                if not all(has_values):  # a column without values, or an empty result
                    uses = ((use.table, use.needed.values()) for use in self.rewritten.uses)
                    self.warnings += dict.fromkeys(h for table, columns in uses for h in table.path_hints(columns))
                if self._states() != before:
                    problem = "files that the query reads several times were replaced while it ran: run the query again"
                    raise VariantFileError(problem, reason="files-changed")
            except duckdb.InterruptException:
                raise SqlError(
                    f"the query was stopped after {seconds:g} seconds: narrow it with WHERE or LIMIT, or join on a key",
                    reason="time-limit",
                ) from None
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                if failures:
                    raise failures[0] from None
                raise self.sql_error(error) from None
            finally:
                if timer is not None:
                    timer.cancel()

    def _started(self, connection: Any, failures: list[Exception], context: CallContext) -> tuple[Any, Any]:
        """Return the engine's relation of the result, and a reader of its rows."""
        for name, plan in self.plans.items():
            connection.register(name, Stream(plan, failures))
        relation = connection.sql(register_calls(connection, self.rewritten.text, failures, context))
        return relation, relation.to_arrow_reader(_BATCH_ROWS)

    def sources(self, tables: Mapping[str, Any]) -> list[Any]:
        """Return the paths of given tables, and of all tables that FROM names."""
        named = (getattr(table, "source", table) for table in tables.values())
        return [*named, *(getattr(use.table.opened, "source", None) for use in self.rewritten.uses)]

    def _states(self) -> dict[str, Any]:
        """Return the state of each local file that several scans read; all scans must read the same version."""
        scans = [path for use in self.rewritten.uses for path in use.table.files]
        return {path: (state_of(path) or ())[:4] for path, number in Counter(scans).items() if number > 1}

    def sql_error(self, error: Exception) -> SqlError:
        """Return an error of the engine with the names that the user wrote."""
        if self.rewritten.unknown:
            return SqlError(self.rewritten.unknown[0])
        shown = engine_message(error)
        needs = [item for use in self.rewritten.uses for item in use.needed.items()]
        for name, needed in sorted(needs, key=lambda item: -len(item[0])):
            if needed.path is None or name == needed.column:  # the user wrote the name
                continue
            shown = shown.replace(f'"{name}"', needed.as_sql())
            if name.startswith(_NUMBERED):  # other names may also be words of the message
                shown = shown.replace(name, needed.as_sql())
        if "Unsupported Internal Arrow Type" in shown:
            fields = [field for plan in self.plans.values() for field in plan.schema]
            columns = ", ".join(
                f"{field.name} {field.type}" for field in fields if _UNSUPPORTED.search(str(field.type))
            )
            remedy = "omit it, or cast it before the query"
            shown = f"the SQL cannot be run: DuckDB has no type for {columns or 'a column'}: {remedy}"
        return SqlError(shown)


def _has_values(column: pa.ChunkedArray) -> bool:
    """Return whether a column has a value other than 0, which is also the count of a path that no row has."""
    if pa.types.is_integer(column.type):
        # Without pyarrow.compute and pandas, whose imports take longer than a small query.
        return any(chunk[int(row)].is_valid for chunk in column.chunks for row in np.flatnonzero(to_numpy(chunk)))
    return bool(column.null_count < len(column))


def _binder(tables: Mapping[str, Any], opens_paths: bool) -> Callable[[str], BoundTable]:
    """Return the function that binds a name or path of FROM to its table; each is bound once."""
    named = {name.lower(): (name, table) for name, table in tables.items()}
    if len(named) < len(tables):
        check_distinct(next(name for name in tables if named[name.lower()][0] != name), list(tables))

    @cache
    def bind(name: str) -> BoundTable:
        if name.lower() in named:
            shown, table = named[name.lower()]
            return bind(shown) if name != shown else bind_table(table, shown)
        if opens_paths and (any(sign in name for sign in "/\\.*") or os.path.exists(name)):  # noqa: PTH110 - any text
            return bind_table(name, name)
        names = ", ".join(shown for shown, _ in named.values())
        remedies = [f"choose from {names}"] * bool(names)
        remedies += ["write a path in quotes, as in FROM 'events/'"] * opens_paths
        raise SqlError(f"unknown table {name}: {', or '.join(remedies)}", reason="no-such-table")

    return bind


def columns_text(use: TableUse) -> list[str]:
    """Return the columns that a query needs of a table, as the query writes them."""
    made = use.table.parsed_columns  # text that is not JSON stands next to the Variants of its column
    columns = (column for column in use.needed.values() if column.path is not None or column.stored_name not in made)
    return list(dict.fromkeys(column.as_sql() for column in columns))


def filter_text(use: TableUse) -> list[str]:
    """Return the conditions that are pushed down to a table, as the query writes them."""
    return [predicate_text(condition, lambda name: use.needed[name].as_sql()) for condition in use.filters]
