"""Random queries of an analyst give the same rows in every source, and in DuckDB over plain columns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import duckdb
from tests.fuzz.analyst_queries import Analyst, as_json, plain_table, rows
from tests.fuzz.seeds import random_source

import parquet_variant as pv

ROWS = 60


def sources_of(folder: Path, texts: list[str]) -> dict[str, Any]:
    """Return the same rows in each source."""
    values = pv.parse_json(texts)
    table = pa.table({"v": values})
    (folder / "rows.ndjson").write_text("".join(f"{text}\n" for text in texts))
    pv.write(folder / "shredded.parquet", {"v": values}, schema="infer")
    pv.write(folder / "plain.parquet", {"v": values})
    found = {
        "memory": table,
        "array": values,
        "json": str(folder / "rows.ndjson"),
        "shredded": str(folder / "shredded.parquet"),
        "plain": str(folder / "plain.parquet"),
    }
    for kind in ("delta", "iceberg", "vortex"):
        path = folder / (f"{kind}.vortex" if kind == "vortex" else kind)
        pv.ingest(str(folder / "rows.ndjson"), path, format=kind)
        found[kind] = str(path)
    return found


def shown(value: Any) -> Any:
    """Return a value in a form that does not depend on the type of a number."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [shown(part) for part in value]
    return {key: shown(part) for key, part in value.items()} if isinstance(value, dict) else value


def answer(table: pa.Table) -> list[str]:
    return sorted(repr([shown(value) for value in row.values()]) for row in table.to_pylist())


class Sources:
    """The tables t and u in each source."""

    def __init__(self, folder: Path) -> None:
        self.plain, self.sources = {}, {}
        for name, seed, count in (("t", 1, ROWS), ("u", 2, ROWS // 2)):
            values = rows(seed, count)
            (folder / name).mkdir()
            self.plain[name] = plain_table(values)
            self.sources[name] = sources_of(folder / name, [as_json(row) for row in values])

    def expected(self, query: str, params: list[Any]) -> list[str]:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")  # which pv.sql takes, too
            for name, table in self.plain.items():
                connection.register(name, table)
            return answer(connection.sql(query, params=params or None).to_arrow_table())

    def found(self, query: str, params: list[Any], source: str) -> list[str]:
        tables = {name: sources[source] for name, sources in self.sources.items()}
        return answer(pv.sql(query, params=params or None, **tables).to_arrow())


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(tmp_path_factory.mktemp("sources"))


@pytest.mark.parametrize("case", range(30))
def test_queries_give_the_rows_of_plain_columns(sources: Sources, case: int) -> None:
    with random_source("analyst-queries", case) as rng:
        analyst, names = Analyst(rng), list(sources.sources["t"])
        ours, theirs, params = analyst.query()
        try:
            expected = sources.expected(theirs, params)
        except duckdb.Error:
            return  # a query that the engine refuses over plain columns
        for source in (names[case % len(names)], rng.choice(names)):
            assert sources.found(ours, params, source) == expected, f"{source}: {ours}\n{theirs}"
