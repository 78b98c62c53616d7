"""`sql`: a query over files, tables and arrays with Variant columns, run by DuckDB over typed columns.

Owns the public operation: names bound to tables, the engine run, errors in the user's words. Leaves the query to
`rewriting`, tables to `tables`, and the answer's forms to `result`.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.array.parts import empty_table
from parquet_variant.choices import SqlEngine
from parquet_variant.errors import VariantFileError, check_choice
from parquet_variant.io.parallel import thread_count
from parquet_variant.parquet.format.footer_cache import state_of
from parquet_variant.query.duckdb_engine import connect
from parquet_variant.query.path_dialect import with_steps
from parquet_variant.query.predicate_text import predicate_text
from parquet_variant.query.sql_dialect import SqlError
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.sql_query.batches import Batches, ScanOptions
from parquet_variant.sql_query.result import SqlResult, with_json, with_variants
from parquet_variant.sql_query.rewriting import Rewritten, rewrite
from parquet_variant.sql_query.scopes import TableUse, unique_names
from parquet_variant.sql_query.streams import Stream, register_getters
from parquet_variant.sql_query.tables import BoundTable, bind_table
from parquet_variant.sql_query.values import told_apart_in

Errors = Literal["null", "raise"]
_BATCH_ROWS = 1 << 17
# Types of Arrow that DuckDB's own reading of it does not know.
_UNKNOWN = re.compile("halffloat|decimal256")
_STORAGE = 'STRUCT(metadata BLOB, "value" BLOB)'  # what DuckDB calls a Variant's storage


def sql(
    query: str, /, *, errors: Errors = "null", zone: str = "UTC", threads: int | None = None, **tables: Any
) -> SqlResult:
    """Answer a query; only the columns, row groups and files that it needs are read.

    Parameters
    ----------
    query
        One SELECT (or WITH, set operation, DESCRIBE) in DuckDB's SQL, in which Variants have paths:
        ``v:a.b[0]::string``, ``v['a']``, ``variant_get(v, '$.a', 'int')``. ``FROM 'events/'`` names
        files by their path.
    errors
        ``"null"``: a value that cannot be cast is NULL, as with `try_variant_get`; ``"raise"``: it is an error.
    zone
        The session time zone of casts.
    threads
        How many work at the same time; by default the CPUs that this process may use.
    **tables
        What the names in FROM stand for: paths, globs, Delta tables, ``.vortex`` files, scans, Arrow tables, polars
        data frames, `VariantArray` (the column ``v``).

    Returns
    -------
    SqlResult
        With ``.arrow()``, ``.pl()`` and ``.df()``. A path's column is called by its last key; Variants come as JSON.

    Raises
    ------
    SqlError
        If the text is no query, names what is not there, or asks of a Variant what only typed values have; before
        anything is read.
    VariantError
        If a table cannot be read; ``missing-extra`` without DuckDB.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> events = pv.parse_json(['{"kind": "a", "n": 1}', '{"kind": "b", "n": 5}', '{"kind": "a", "n": 2}'])
    >>> pv.sql("SELECT v:kind::string, max(v:n::int) AS n FROM t GROUP BY kind ORDER BY n", t=events).to_pylist()
    [{'kind': 'a', 'n': 2}, {'kind': 'b', 'n': 5}]
    """
    return SqlResult(plan_sql(query, tables, errors=errors, zone=zone, threads=threads).run())


def plan_sql(
    query: str,
    tables: Mapping[str, Any],
    *,
    errors: Errors = "null",
    zone: str = "UTC",
    threads: int | None = None,
    engine: SqlEngine = "duckdb",
    version: int | None = None,
    timestamp: Any = None,
) -> SqlQuery:
    """Read a query and bind its tables; nothing but footers and logs is read.

    `query` and `tables` and `errors` and `zone` and `threads`: as for `sql`.
    `version` and `timestamp`: which version the bound Delta tables have.
    Raises `SqlError` or `VariantError` as for `sql`.
    """
    check_choice("errors", errors, ("null", "raise"))
    thread_count(threads)
    rewritten = rewrite(query, _binder(tables, version, timestamp), engine=engine, zone=zone)
    options = ScanOptions(errors, zone, threads, engine == "duckdb", rewritten.only_bounds)
    plans = {use.relation: use.table.scan(use.needed, rewritten.predicate(use), options) for use in rewritten.uses}
    return SqlQuery(query, rewritten, plans, options)


@dataclass(slots=True)
class SqlQuery:
    """A planned query."""

    query: str  # The user's text.
    rewritten: Rewritten  # The engine's text, and what it needs.
    plans: Mapping[str, Batches]  # The scan of each relation of the engine's text.
    options: ScanOptions = field(default_factory=ScanOptions)

    def run(self) -> pa.Table:
        """The answer, by DuckDB; Variants as JSON."""
        return pa.concat_tables(self.batches())

    def batches(self, *, as_text: bool = True, seconds: float | None = None) -> Iterator[pa.Table]:
        """Yield the result in parts, at least one, as the engine produces it.

        `as_text`: whether Variants are JSON strings, or Variants.
        `seconds`: the time after which the query is stopped with `SqlError`, reason ``time-limit``.
        """
        failures: list[Exception] = []
        before = self._states()
        with connect(zone=self.options.zone, threads=self.options.threads) as connection:
            import duckdb

            timer = None if seconds is None else threading.Timer(seconds, connection.interrupt)
            try:
                if timer is not None:
                    timer.start()
                for name, plan in self.plans.items():
                    connection.register(name, Stream(plan, failures))
                register_getters(connection, self.rewritten.getters, self.options, failures)
                reader = connection.sql(self.rewritten.text).to_arrow_reader(_BATCH_ROWS)
                parts = (pa.table([*batch.columns], schema=batch.schema) for batch in reader)
                names = unique_names(reader.schema.names)
                for part in chain([next(parts, empty_table(reader.schema))], parts):
                    yield self._shown(part.rename_columns(names), as_text)
                if self._states() != before:
                    raise VariantFileError(
                        "files that the query reads several times changed in the middle of it: run it again",
                        reason="files-changed",
                    )
            except duckdb.InterruptException:
                raise SqlError(
                    f"the query was stopped after {seconds:g} seconds: narrow it with WHERE or LIMIT, or join on a key",
                    reason="time-limit",
                ) from None
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                if failures:
                    raise failures[0] from None
                raise self.wrong(error) from None
            finally:
                if timer is not None:
                    timer.cancel()

    def _shown(self, part: pa.Table, as_text: bool) -> pa.Table:
        if self.rewritten.describes:
            return self._described(part)
        return with_json(part) if as_text else with_variants(part)

    def _states(self) -> dict[str, Any]:
        """What tells the versions of local files apart, of those that several scans read: all see one version."""
        scans = [path for use in self.rewritten.uses for path in use.table.files for _ in range(use.scans)]
        return {path: (state_of(path) or ())[:4] for path, number in Counter(scans).items() if number > 1}

    def wrong(self, error: Exception) -> SqlError:
        """What an engine has against the query, in the user's words where we have them."""
        if self.rewritten.unknown:
            return SqlError(self.rewritten.unknown[0])
        said = str(error).strip().splitlines()[0].replace(_STORAGE, "VARIANT")
        for name, needed in sorted(self._columns().items(), key=lambda item: -len(item[0])):
            said = said.replace(f'"{name}"', path_text(needed)).replace(name, path_text(needed))
        if "Unsupported Internal Arrow Type" in said:
            fields = [field for plan in self.plans.values() for field in plan.schema]
            told = ", ".join(f"{field.name} {field.type}" for field in fields if _UNKNOWN.search(str(field.type)))
            said = f"DuckDB has no type for {told or 'a column'}: leave it out, or write it as another type"
        hint = ": give the Variant a type, as in ::string" if "VARIANT" in said else ""
        if "type TIMESTAMP_NS and type TIMESTAMP WITH TIME ZONE" in said:  # TIMESTAMP is Spark's, with a zone
            hint = ": a literal without a zone is TIMESTAMP_NTZ '…'"
        return SqlError(f"the SQL cannot be run: {said}{hint}")

    def _columns(self) -> dict[str, NeededColumn]:
        """What the engine's text has other names for than the user's."""
        every = {name: each for use in self.rewritten.uses for name, each in use.needed.items()}
        return {name: each for name, each in every.items() if each.path is not None and name != each.column}

    def _described(self, answer: pa.Table) -> pa.Table:
        kinds = [kind.replace(_STORAGE, "VARIANT") for kind in answer["column_type"].to_pylist()]
        return answer.set_column(1, "column_type", pa.array(kinds, pa.string()))


def _binder(tables: Mapping[str, Any], version: int | None, timestamp: Any) -> Callable[[str], BoundTable]:
    """What finds the table of a name or path of FROM; each is bound once."""
    named = {name.lower(): (name, table) for name, table in tables.items()}
    if len(named) < len(tables):
        told_apart_in(next(name for name in tables if named[name.lower()][0] != name), list(tables))

    @cache
    def bind(name: str) -> BoundTable:
        if name.lower() in named:
            shown, table = named[name.lower()]
            return bind(shown) if name != shown else bind_table(table, shown, version=version, timestamp=timestamp)
        if _is_path(name):
            return bind_table(name, name)
        known = ", ".join(shown for shown, _ in named.values())
        raise SqlError(
            f"there is no table {name}: "
            + (f"choose from {known}, or " if known else "")
            + "write a path in quotes, as in FROM 'events/'",
            reason="no-such-table",
        )

    return bind


def _is_path(name: str) -> bool:
    return any(sign in name for sign in "/\\.*") or os.path.exists(name)  # noqa: PTH110 - any text may come


# ---- what a planned query reads, in the words of the query


def path_text(need: NeededColumn) -> str:
    """A column as a query writes it.

    >>> import pyarrow as pa
    >>> from parquet_variant.path import VariantPath
    >>> path_text(NeededColumn("v", VariantPath.parse("$.a['b c'][0][*]"), pa.int64()))
    "v:a['b c'][0][*]::array<bigint>"
    """
    if need.path is None:
        return need.column
    text = with_steps(need.column, need.path.segments)
    return text if need.output is None else f"{text}::{sql_type_name(need.output)}"


def columns_text(use: TableUse) -> list[str]:
    """What is asked of a table."""
    return list(dict.fromkeys(map(path_text, use.needed.values())))


def filter_text(use: TableUse) -> list[str]:
    """What rows must meet to be read."""
    return [predicate_text(each, lambda name: path_text(use.needed[name])) for each in use.filters]
