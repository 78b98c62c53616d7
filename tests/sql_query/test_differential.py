"""Random queries over Variants, compared with the same SQL over plain columns of the same values in DuckDB."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import duckdb

import parquet_variant as pv

# Plain column -> the path and type of the same value in the Variant.
COLUMNS = {
    "i": ("v:i", "bigint"),
    "d": ("v:o.d", "double"),
    "s": ("v:['s t']", "varchar"),
    "b": ("v:o.b", "boolean"),
    "m": ("v:m[0]", "decimal(9,2)"),
}
ROWS = 400


def values(rng: random.Random) -> dict[str, Any]:
    row: dict[str, Any] = {
        "i": rng.choice([None, 0, 1, 2, 3, -7, 2**40]),
        "d": rng.choice([None, 0.5, 0.0, 1e300, 2.25]),
        "s": rng.choice([None, "", "a", "ab%", "B", "it's", "\u00e9"]),
        "b": rng.choice([None, True, False]),
        "m": rng.choice([None, 1.25, 100, -3.5]),
    }
    return row


def as_variant(row: dict[str, Any], rng: random.Random) -> str | None:
    """The row as JSON: missing, null, or wrapped; sometimes with other things, so that columns get residuals."""
    if all(value is None for value in row.values()) and rng.random() < 0.5:
        return None
    inner = {key: row[key] for key in ("d", "b") if row[key] is not None or rng.random() < 0.5}
    found: dict[str, Any] = {"o": inner, "m": [row["m"]], "s t": row["s"]}
    if row["i"] is not None or rng.random() < 0.5:
        found["i"] = row["i"]
    if row["i"] is None and rng.random() < 0.3:
        found["i"] = [1, 2]  # no number: NULL once it is cast
    if rng.random() < 0.2:
        found["other"] = {"x": rng.random()}
    return json.dumps(found)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, pa.Table]]:
    """For t and u: files of several shredding schemas and row groups, and the plain table."""
    rng = random.Random(20261122)
    found = {}
    for name in "tu":
        folder = tmp_path_factory.mktemp(name)
        parts = []
        for number, schema in enumerate(["infer", "i bigint, o struct<d: double>", None]):
            rows = [values(rng) | {"k": rng.randrange(5)} for _ in range(ROWS)]
            rows.sort(key=lambda row: row["k"])
            variants = pv.parse_json([as_variant(row, rng) for row in rows])
            plain = {key: plain_array([row[key] for row in rows], kind) for key, kind in TYPES.items()}
            options = {} if schema is None else {"schema": schema}
            pv.write(folder / f"{number}.parquet", {"k": plain["k"], "v": variants}, **options)
            parts.append(pa.table(plain))
        found[name] = (str(folder), pa.concat_tables(parts))
    return found


TYPES = {
    "k": pa.int64(), "i": pa.int64(), "d": pa.float64(), "s": pa.string(), "b": pa.bool_(), "m": pa.decimal128(9, 2),
}  # fmt: skip


def plain_array(given: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        given = [None if value is None else Decimal(str(value)) for value in given]
    return pa.array(given, kind)


class Writer:
    """Writes a random query twice: over paths, and over plain columns."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def column(self, alias: str, name: str) -> tuple[str, str]:
        if name == "k":
            return f"{alias}.k", f"{alias}.k"
        path, kind = COLUMNS[name]
        path = path.replace("v", f"{alias}.v", 1)
        spelled = self.rng.choice([f"{path}::{kind}", f"CAST({path} AS {kind})", f"TRY_CAST({path} AS {kind})"])
        return spelled, f"{alias}.{name}"

    def literal(self, name: str) -> str:
        choices = {
            "k": ["1", "2.5", "4"],
            "i": ["1", "-7", "1.5", "1099511627776", "2e0"],
            "d": ["0.5", "0", "1e300", "-1"],
            "s": ["'a'", "''", "'it''s'", "'ab%'"],
            "b": ["true", "false"],
            "m": ["1.25", "100", "0.001", "-3.5"],
        }
        return self.rng.choice(choices[name])

    def condition(self, aliases: list[str], depth: int = 0) -> tuple[str, str]:
        kind = self.rng.random()
        if depth < 2 and kind < 0.45:
            word = self.rng.choice(["AND", "OR"])
            a, b = self.condition(aliases, depth + 1), self.condition(aliases, depth + 1)
            return f"({a[0]} {word} {b[0]})", f"({a[1]} {word} {b[1]})"
        if depth < 2 and kind < 0.55:
            a = self.condition(aliases, depth + 1)
            return f"NOT {a[0]}", f"NOT {a[1]}"
        name = self.rng.choice(list(TYPES))
        both = self.column(self.rng.choice(aliases), name)
        literal, other = self.literal(name), self.literal(name)
        op = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        ends = [
            f"{op} {literal}", "IS NULL", "IS NOT NULL", f"BETWEEN {literal} AND {other}",
            f"IN ({literal}, {other})", f"NOT IN ({literal}, {other})", f"IS DISTINCT FROM {literal}",
        ]  # fmt: skip
        ends += ["LIKE 'a%'", "NOT LIKE '%b%'"] if name == "s" else []
        end = self.rng.choice(ends)
        return f"({both[0]} {end})", f"({both[1]} {end})"

    def pairs(self, pieces: Iterator[tuple[str, str]]) -> tuple[str, str]:
        found = list(pieces)
        return ", ".join(item[0] for item in found), ", ".join(item[1] for item in found)

    def outputs(self, alias: str) -> tuple[str, str]:
        names = self.rng.sample(list(TYPES), 3)
        return self.pairs(
            (f"{a} AS x{n}", f"{b} AS x{n}") for n, (a, b) in enumerate(self.column(alias, x) for x in names)
        )

    def query(self) -> tuple[str, str]:
        return self.rng.choice([self.plain, self.joined, self.grouped, self.nested, self.correlated, self.union])()

    def plain(self) -> tuple[str, str]:
        (a, b), (c, d) = self.outputs("t"), self.condition(["t"])
        return f"SELECT {a} FROM t WHERE {c}", f"SELECT {b} FROM t WHERE {d}"

    def joined(self) -> tuple[str, str]:
        join = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
        key = self.column("a", "k"), self.column("b", "k")
        (on, on2), (w, w2) = self.condition(["a", "b"]), self.condition(["a"] if "I J" in join else ["a", "b"])
        out, out2 = self.outputs("a")
        tail = f"FROM t a {join} (SELECT * FROM u WHERE k < 1) b"
        return (
            f"SELECT {out} {tail} ON {key[0][0]} = {key[1][0]} AND {on} WHERE {w}",
            f"SELECT {out2} {tail} ON {key[0][1]} = {key[1][1]} AND {on2} WHERE {w2}",
        )

    def grouped(self) -> tuple[str, str]:
        group, value = self.column("t", self.rng.choice("ksb")), self.column("t", self.rng.choice("im"))
        (c, d), end = self.condition(["t"]), self.rng.choice(["", " HAVING count(*) > 20"])
        return tuple(  # type: ignore[return-value]
            f"SELECT {g} AS g, count(*) AS n, min({x}) AS a, max({x}) AS b, count(DISTINCT {x}) AS c FROM t WHERE {w} "
            f"GROUP BY g{end}"
            for g, x, w in zip(group, value, (c, d), strict=True)
        )

    def nested(self) -> tuple[str, str]:
        (a, b), (c, d), (e, f) = self.outputs("q"), self.condition(["q"]), self.condition(["t"])
        inner = "SELECT * FROM t WHERE"
        return (
            f"WITH q AS ({inner} {e}) SELECT {a} FROM q WHERE {c}",
            f"WITH q AS ({inner} {f}) SELECT {b} FROM q WHERE {d}",
        )

    def correlated(self) -> tuple[str, str]:
        (a, b), x, y = self.outputs("t"), self.column("t", "i"), self.column("s", "i")
        w = self.condition(["s"])
        find = [f"{x[n]} = (SELECT max({y[n]}) FROM u s WHERE s.k = t.k AND {w[n]})" for n in (0, 1)]
        return f"SELECT {a} FROM t WHERE {find[0]}", f"SELECT {b} FROM t WHERE {find[1]}"

    def union(self) -> tuple[str, str]:
        word = self.rng.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT"])
        name = self.rng.choice(list(COLUMNS))
        left, right, (c, d) = self.column("t", name), self.column("u", name), self.condition(["t"])
        return (
            f"SELECT {left[0]} AS x FROM t WHERE {c} {word} SELECT {right[0]} FROM u",
            f"SELECT {left[1]} AS x FROM t WHERE {d} {word} SELECT {right[1]} FROM u",
        )


def rows_of(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


@pytest.mark.parametrize("seed", range(60))
def test_random_queries(tables: dict[str, tuple[Any, pa.Table]], seed: int) -> None:
    writer = Writer(seed)
    with duckdb.connect() as connection:
        for name, (_, plain) in tables.items():
            connection.register(name, plain)
        for _ in range(3):
            ours, theirs = writer.query()
            expected = connection.sql(theirs).to_arrow_table()
            answer = pv.sql(ours, **{name: path for name, (path, _) in tables.items()}).to_arrow()
            assert answer.num_rows == expected.num_rows, f"{ours}\n{theirs}"
            assert rows_of(answer) == rows_of(expected), f"{ours}\n{theirs}"
