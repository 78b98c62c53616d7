"""Long lists and chains, and queries that the user stops."""

from __future__ import annotations

import os
import signal
import threading
import time

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantError
from parquet_variant.query.duckdb_engine import interruptible
from parquet_variant.query.selection import TableColumns
from parquet_variant.query.sql_expression import read_expression
from parquet_variant.query.variant_functions import CallContext
from parquet_variant.sql_query import sql
from parquet_variant.tables.expressions import is_true, numbered

ROWS = pv.VariantArray.from_pylist([{"a": number, "s": f"x{number}"} for number in range(10)])


@pytest.mark.parametrize("layout", ["memory", "shredded"])
def test_long_lists_and_chains_are_answered(tmp_path, layout):
    source = ROWS
    if layout == "shredded":
        source = tmp_path / "t.parquet"
        pv.write(source, {"v": ROWS}, schema="infer")
    numbers = ", ".join(map(str, range(5, 5005)))
    texts = ", ".join(f"'x{number}'" for number in range(5, 5005))
    conditions = {
        f"v:a::int IN ({numbers})": 5,
        f"v:a IN ({numbers})": 5,
        f"v:s::string NOT IN ({texts})": 5,
        f"v:s IN ({texts}, NULL)": 5,
        " OR ".join(f"v:a::int = {number}" for number in range(300)): 10,
        " OR ".join(f"v:a = {number}" for number in range(3, 303)): 7,
        " AND ".join(f"v:a::int <> {number}" for number in range(3, 603)): 3,
        "+".join(["v:a::int"] * 350) + " = 350": 1,
        "+".join(["v:a"] * 350) + " = 700": 1,
        "length(" + "||".join(["v:s::string"] * 1100) + ") = 2200": 10,
    }
    for condition, rows in conditions.items():
        found = pv.sql(f"SELECT count(*) AS n FROM t WHERE {condition}", t=source).to_pylist()
        assert found == [{"n": rows}], condition[:60]


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_long_chains_in_conditions_of_changes_are_answered(engine):
    table = numbered({"a": pa.array(range(10))}, 10)
    for condition, rows in {
        " OR ".join(f"a = {number}" for number in range(3, 303)): 7,
        " AND ".join(f"a <> {number}" for number in range(3, 603)): 3,
        "+".join(["a"] * 300) + " > 300": 8,
        f"a IN ({', '.join(map(str, range(5, 3005)))})": 5,
    }.items():
        expression = read_expression(condition, {"t": TableColumns([], {"a": pa.int64()})}, engine=engine)
        assert is_true(expression, "t", table, CallContext()).sum() == rows, condition[:60]


@pytest.mark.parametrize(
    "query", ["SELECT " + "(" * 2000 + "1" + ")" * 2000, "SELECT " + "+".join(["v:a"] * 2000) + " FROM t"]
)
def test_sql_that_is_nested_too_deeply_is_an_error(query):
    with pytest.raises(VariantError, match="nested"):
        pv.sql(query, t=ROWS)


def test_an_interrupt_stops_the_engine_and_later_queries_run():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores SIGINT
    timer = threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            pv.sql("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert pv.sql("SELECT count(*) AS n FROM t", t=ROWS).to_pylist() == [{"n": 10}]


def test_an_interrupt_while_the_engine_asks_for_a_schema_is_not_an_error_of_the_query(monkeypatch):
    asked = sql.Stream.__arrow_c_schema__

    def interrupted(stream):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        return asked(stream)

    monkeypatch.setattr(sql.Stream, "__arrow_c_schema__", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            pv.sql("SELECT v:a::int AS a FROM t", t=ROWS).to_arrow()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_second_interrupt_waits_until_the_connection_is_free() -> None:
    is_started, is_stopped, is_done = threading.Event(), threading.Event(), threading.Event()

    class Connection:
        calls = 0

        def interrupt(self) -> None:
            self.calls += 1
            if self.calls == 1:
                raise KeyboardInterrupt
            is_stopped.set()

    def work() -> None:
        is_started.set()
        is_stopped.wait(30)
        is_done.set()

    def interrupt() -> None:
        is_started.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt), interruptible(Connection()) as run:
            run(work)
        assert is_done.is_set()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO t VALUES (1)", "CREATE TABLE x AS SELECT 1", "DELETE FROM t", "UPDATE t SET v = 1",
     "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE"],
)  # fmt: skip
def test_statements_that_change_tables_name_the_commands_and_methods(statement):
    with pytest.raises(pv.VariantError, match=r"variant ingest, delete, update and merge, or methods .* Table.append"):
        pv.sql(statement, t=pv.from_python([1]))
