# ruff: noqa: E501
"""Random queries of an analyst over rows of JSON, each written over Variant paths and over plain columns.

Owns the rows and the queries. In a query ``@a.n`` stands for the field ``n`` of the table ``a``.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from typing import Any

import pyarrow as pa

# Field -> its path, the type of its cast, its Arrow type, and whether it needs the cast.
FIELDS: dict[str, tuple[str, str, pa.DataType, bool]] = {
    "id": ("v:id", "bigint", pa.int64(), False),
    "k": ("v:k", "string", pa.string(), False),
    "n": ("v:n", "bigint", pa.int64(), False),
    "d": ("v:m.d", "double", pa.float64(), False),
    "b": ("v:['b b']", "boolean", pa.bool_(), False),
    "p": ("v:o.p", "int", pa.int32(), False),
    "q": ("v:o.q", "string", pa.string(), False),
    "ts": ("v:ts", "timestamp", pa.timestamp("us", "UTC"), True),
    "l": ("v:l", "array<int>", pa.list_(pa.int32()), True),
    "s": ("v:items[*].s", "array<string>", pa.list_(pa.string()), True),
    "o": ("v:o", "struct<p: int, q: string>", pa.struct({"p": pa.int32(), "q": pa.string()}), True),
}
_START = dt.datetime(2024, 2, 27, tzinfo=dt.UTC)
_PARAMETERS = [3, "b", 1.5]


def rows(seed: int, count: int) -> list[dict[str, Any]]:
    """Return rows with the fields; each but the id may be None."""
    rng = random.Random(seed)
    choices: dict[str, list[Any]] = {
        "k": [*"abc", "ab%", "", None], "n": [*range(-2, 7), 10**6, None], "d": [0.25, -1.5, 2.0, 100.75, None],
        "b": [True, False, None], "p": [0, 1, 2, 7, None], "q": ["x", "Y", "it's", "\u00e9", None],
        "ts": [*(_START + dt.timedelta(hours=19 * n) for n in range(6)), None],
        "l": [[], [1], [3, 1, 2], [2, None], None], "s": [[], ["x"], ["y", "x"], ["", "y", "z"], None],
    }  # fmt: skip
    found = []
    for number in range(count):
        row = {"id": number, **{name: rng.choice(values) for name, values in choices.items()}}
        row["o"] = {"p": row["p"], "q": row["q"]}
        found.append(row)
    return found


def as_json(row: dict[str, Any]) -> str:
    """Return the JSON of a row, in which a value of None is missing."""

    def fields(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None}

    document = fields(id=row["id"], k=row["k"], n=row["n"], l=row["l"], ts=row["ts"] and row["ts"].isoformat())
    document |= {"m": fields(d=row["d"]), "o": fields(p=row["p"], q=row["q"])} | fields(**{"b b": row["b"]})
    document |= fields(items=None if row["s"] is None else [{"s": text, "n": len(text)} for text in row["s"]])
    return json.dumps(document)


def plain_table(values: list[dict[str, Any]]) -> pa.Table:
    """Return rows as plain columns."""
    return pa.table({name: pa.array([row[name] for row in values], kind) for name, (*_, kind, _) in FIELDS.items()})


class Analyst:
    """Writes random queries over the tables t and u."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.parameters: list[Any] = []

    def query(self) -> tuple[str, str, list[Any]]:
        """Return a query over paths, the same query over plain columns, and the parameters of both."""
        self.parameters = []
        text = self.rng.choice(self.KINDS)(self)
        self.forms: dict[tuple[str, str], str] = {}
        paths = re.sub(r"@(\w+)\.(\w+)", lambda match: self._path(*match.groups()), text)
        return paths, re.sub(r"@(\w+)\.(\w+)", r"\1.\2", text), self.parameters

    def _path(self, alias: str, name: str) -> str:
        path, kind, _, needs_cast = FIELDS[name]
        forms = [f"{alias}.{path}::{kind}", f"CAST({alias}.{path} AS {kind})", f"TRY_CAST({alias}.{path} AS {kind})"]
        forms += [] if needs_cast else [f"{alias}.{path}"] * 4
        return self.forms.setdefault((alias, name), self.rng.choice(forms))

    def of(self, *texts: str) -> str:
        return self.rng.choice(texts)

    # ---- expressions of one type; `a` is the alias of a table

    def number(self, a: str, depth: int = 0) -> str:
        if depth > 1 or self.rng.random() < 0.4:
            return self.of(f"@{a}.n", f"@{a}.n", f"@{a}.d", f"@{a}.p", f"@{a}.id", "2", "1.5")
        x, y = self.number(a, depth + 1), self.number(a, depth + 1)
        return self.of(
            f"({x} + {y})", f"({x} - {y})", f"({x} * 2)", f"abs({x})", f"coalesce({x}, 0)", f"coalesce(@{a}.n, @{a}.p, 5)",
            f"CASE WHEN {self.condition(a, depth + 1)} THEN {x} ELSE {y} END", f"nullif({x}, 1)", f"({x} / 4)",
            f"greatest({x}, {y})", f"least({x}, 3)", f"(@{a}.n % 3)", f"length({self.text(a, depth + 1)})",
            f"year(@{a}.ts)", f"date_part('day', @{a}.ts)", f"list_sum(@{a}.l)", f"len(@{a}.l)", f"(@{a}.l)[1]",
            f"(@{a}.o).p", f"list_position(@{a}.l, 1)", f"ifnull({x}, {y})", f"if({self.condition(a, depth + 1)}, {x}, 9)",
            f"-{x}", f"list_max(list_transform(@{a}.l, e -> e + @{a}.id))", f"try_cast(@{a}.k AS int)", f"len(@{a}.s)",
            f"date_diff('day', TIMESTAMP '2024-02-27', @{a}.ts)", f"sign({x})", f"len([e FOR e IN @{a}.l IF e > 1])",
        )  # fmt: skip

    def text(self, a: str, depth: int = 0) -> str:
        if depth > 1 or self.rng.random() < 0.4:
            return self.of(f"@{a}.k", f"@{a}.q", f"@{a}.k", "'b'")
        x, y = self.text(a, depth + 1), self.text(a, depth + 1)
        return self.of(
            f"lower({x})", f"upper({x})", f"({x} || {y})", f"coalesce({x}, 'z')", f"substr({x}, 1, 2)", f"concat({x}, {y})",
            f"replace({x}, 'a', 'z')", f"CASE {x} WHEN 'a' THEN {y} ELSE 'else' END", f"strftime(@{a}.ts, '%Y-%m')",
            f"left({x}, 1)", f"(@{a}.s)[1]", f"(@{a}.o).q", f"concat_ws('-', {x}, {y})", f"@{a}.n::string",
            f"array_to_string(@{a}.s, '+')", f"list_aggregate(@{a}.s, 'max')", f"trim({x})", f"nullif({x}, 'a')",
            f"regexp_replace({x}, '[ab]', 'c')", f"split_part({x}, 'b', 1)", f"date_trunc('day', @{a}.ts)::date::string",
        )  # fmt: skip

    def condition(self, a: str, depth: int = 0) -> str:
        kind = self.rng.random()
        if depth < 2 and kind < 0.3:
            return f"({self.condition(a, depth + 1)} {self.of('AND', 'OR')} {self.condition(a, depth + 1)})"
        if depth < 2 and kind < 0.37:
            return f"NOT ({self.condition(a, depth + 1)})"
        x, t = self.number(a, depth + 1), self.text(a, depth + 1)
        op = self.of("=", "<>", "<", "<=", ">", ">=")
        return self.of(
            f"{x} {op} {self.number(a, depth + 1)}", f"{x} {op} {self.of('1', '2.5', '-1', '1000000')}", f"{t} {op} 'b'",
            f"{t} = {self.text(a, depth + 1)}", f"@{a}.b", f"@{a}.b = true", f"@{a}.b IS NOT TRUE", f"{x} IS NULL",
            f"{t} IS NOT NULL", f"{x} IN (1, 2, 3)", f"{t} IN ('a', 'x', '')", f"{t} NOT IN ('a', 'b')",
            f"{x} BETWEEN 0 AND 3", f"{t} LIKE 'a%'", f"{t} ILIKE '%Y%'", f"{x} IS DISTINCT FROM 2", f"{t} IS NOT DISTINCT FROM NULL",
            f"list_contains(@{a}.l, 1)", f"@{a}.ts > TIMESTAMP '2024-02-29 00:00:00'", f"starts_with({t}, 'a')",
            f"regexp_matches({t}, '^[ax]')", f"@{a}.ts::date = DATE '2024-02-28'", f"contains({t}, 'b')",
            f"(@{a}.n, @{a}.k) IN ((1, 'a'), (2, 'b'))", f"@{a}.n = ANY([1, 5])", f"list_has_any(@{a}.s, ['x'])",
            f"@{a}.ts BETWEEN '2024-02-27' AND '2024-03-01'", f"({x} > 1) = @{a}.b", f"@{a}.n > @{a}.p",
        )  # fmt: skip

    def any_value(self, a: str) -> str:
        return self.of(
            self.number(a), self.text(a), self.condition(a), f"@{a}.ts", f"@{a}.l", f"@{a}.b", f"@{a}.k", f"@{a}.n"
        )

    def key(self, a: str) -> str:
        return self.of(
            f"@{a}.k", f"@{a}.b", f"@{a}.q", f"@{a}.n", f"@{a}.p", f"lower(@{a}.q)", f"@{a}.ts::date", f"@{a}.n % 2"
        )

    def aggregate(self, a: str) -> str:
        x, t = self.number(a, 1), self.text(a, 1)
        found = self.of(
            "count(*)", f"count({x})", f"count(DISTINCT {x})", f"sum({x})", f"min({x})", f"max({t})", f"avg({x})",
            f"string_agg({t}, ',' ORDER BY @{a}.id)", f"list({x} ORDER BY @{a}.id)", f"bool_and(@{a}.b)", f"min(@{a}.ts)",
            f"arg_max({t}, @{a}.id)", f"median(@{a}.n)", f"quantile_disc({x}, 0.5)", f"histogram({t})", f"max(@{a}.b)",
            f"count_if({self.condition(a, 1)})", f"sum(DISTINCT @{a}.n)", f"list_sort(list(DISTINCT @{a}.k))", f"max(@{a}.n, 2)",
            f"first({x} ORDER BY @{a}.id)", f"bit_or(@{a}.p)", f"arg_min(@{a}.id, ({x}, @{a}.id))", f"approx_count_distinct(@{a}.k) > 0",
            f"quantile_cont(@{a}.n, 0.5)", f"product(@{a}.p)", f"count(DISTINCT @{a}.k)", f"list(@{a}.k ORDER BY @{a}.id DESC)[1]",
        )  # fmt: skip
        plain = " ORDER BY" not in found and found.endswith(")")
        return f"{found} FILTER (WHERE {self.condition(a, 1)})" if plain and self.rng.random() < 0.3 else found

    def window(self, a: str) -> str:
        x, order = self.number(a, 1), f"@{a}.id"
        function = self.of(
            "row_number()", f"lag({x}, 1) ", f"lead({self.text(a, 1)}, 2, 'none')", f"sum({x})", f"first_value({x})", "rank()",
            f"last_value({x} IGNORE NULLS)", "ntile(3)", f"max({x})", f"count({x}) FILTER (WHERE {self.condition(a, 1)})",
            f"lag(@{a}.n IGNORE NULLS)", f"nth_value(@{a}.k, 2)", f"avg({x})", "dense_rank()", f"list(@{a}.k)", f"min(@{a}.k)",
        )  # fmt: skip
        is_range = not re.match("row_number|rank|dense|ntile|lag|lead", function)
        frame = self.of(
            "", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING"
        )
        order = self.of(
            order, f"{self.number(a, 1)}, {order}", f"@{a}.k DESC, {order}", f"@{a}.ts NULLS FIRST, {order}"
        )
        partition = self.of("", f"PARTITION BY {self.key(a)}")
        return f"{function} OVER ({partition} ORDER BY {order} {frame if is_range else ''})"

    def parameter(self, value: Any) -> str:
        self.parameters.append(value)
        return "?"

    def items(self, make: Any, count: int = 3) -> str:
        return ", ".join(f"{make()} AS x{number}" for number in range(count))

    # ---- queries

    def plain(self) -> str:
        return f"SELECT {self.items(lambda: self.any_value('t'))} FROM t WHERE {self.condition('t')}"

    def with_windows(self) -> str:
        tail = self.of("", f" WHERE {self.condition('t')}", f" QUALIFY {self.window('t')} IS NOT NULL")
        return f"SELECT @t.id AS i, {self.items(lambda: self.window('t'))} FROM t{tail}"

    def qualified(self) -> str:
        rank = f"row_number() OVER (PARTITION BY {self.key('t')} ORDER BY {self.number('t', 1)} DESC, @t.id)"
        return self.of(
            f"SELECT {self.items(lambda: self.any_value('t'))} FROM t QUALIFY {rank} <= 2",
            f"SELECT @t.id AS i, {rank} AS r FROM t QUALIFY r = 1",
            "SELECT @t.k AS k, count(*) AS n FROM t GROUP BY @t.k QUALIFY rank() OVER (ORDER BY count(*), @t.k) < 3",
            "SELECT @t.id AS i, sum(@t.n) OVER w AS s, max(@t.k) OVER w AS m FROM t WINDOW w AS (PARTITION BY @t.b ORDER BY @t.id)",
        )

    def joined(self) -> str:
        how = self.of("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
        on = self.of(
            "@a.n = @b.n",
            "@a.k = @b.k AND @a.p = @b.p",
            "@a.id = @b.id",
            "lower(@a.q) = lower(@b.q) AND @b.n > 3",
            "@a.n = @b.p AND @a.d < @b.d",
        )
        both = "a" if how in ("SEMI JOIN", "ANTI JOIN") else self.of("a", "b")
        out = ", ".join([self.items(lambda: self.any_value("a"), 2), f"{self.any_value(both)} AS y"])
        return f"SELECT {out} FROM t a {how} u b ON {on} WHERE {self.condition(both)}"

    def grouped(self) -> str:
        one, two = self.key("t"), self.key("t")
        sets = self.of(
            "g, h", "ALL", "1, 2", "ROLLUP (g, h)", "CUBE (g, h)", "GROUPING SETS ((g), (h), ())", f"{one}, {two}"
        )
        having = self.of(
            "", "", f" HAVING {self.aggregate('t')} IS NOT NULL", " HAVING count(*) > 2", " HAVING max(@t.n) > 3"
        )
        return f"SELECT {one} AS g, {two} AS h, {self.items(lambda: self.aggregate('t'), 2)} FROM t WHERE {self.condition('t')} GROUP BY {sets}{having}"

    def totals(self) -> str:
        return f"SELECT {self.items(lambda: self.aggregate('t'), 4)} FROM t WHERE {self.condition('t')}"

    def ctes(self) -> str:
        inner = f"SELECT @t.id AS i, {self.key('t')} AS g, {self.number('t')} AS x, {self.text('t')} AS y FROM t WHERE {self.condition('t')}"
        outer = self.of(
            "SELECT g, sum(x) AS s, max(y) AS m FROM q GROUP BY g",
            "SELECT * FROM q WHERE x > 1 OR y = 'b'",
            "SELECT a.i, b.x FROM q a JOIN q b ON a.g = b.g AND a.i < b.i WHERE a.x > 0",
            "SELECT g, x, row_number() OVER (PARTITION BY g ORDER BY x, i) AS r FROM q",
            "SELECT i, y || '!' AS z, coalesce(x, 0) + 1 AS w FROM q ORDER BY i LIMIT 5",
            "SELECT DISTINCT g, y FROM q",
            "SELECT DISTINCT ON (g) g, i FROM q ORDER BY g, i",
            "SELECT q.i, @u.k AS k FROM q JOIN u ON q.x = @u.n",
            "SELECT count(*) AS c FROM q WHERE x = (SELECT max(x) FROM q)",
            "SELECT g, count(*) AS c FROM (FROM q WHERE x IS NOT NULL) GROUP BY g HAVING count(*) > 1",
        )  # fmt: skip
        return f"WITH q AS ({inner}) {outer}"

    def whole_rows(self) -> str:
        return self.of(
            f"WITH q AS (SELECT * FROM t WHERE {self.condition('t')}) SELECT {self.items(lambda: self.any_value('q'))} FROM q WHERE {self.condition('q')}",
            f"SELECT {self.key('q')} AS g, {self.aggregate('q')} AS x FROM (SELECT * FROM t WHERE {self.condition('t')}) q GROUP BY g",
            f"SELECT @x.id AS i FROM t x WHERE EXISTS (FROM u y WHERE @y.k = @x.k AND {self.condition('y')})",
        )

    def set_operation(self) -> str:
        word = self.of(
            "UNION",
            "UNION ALL",
            "INTERSECT",
            "EXCEPT",
            "UNION BY NAME",
            "UNION ALL BY NAME",
            "INTERSECT ALL",
            "EXCEPT ALL",
        )
        names = self.rng.sample(["k", "n", "b", "p", "q", "d"], 2)
        one, two = (", ".join(f"@{t}.{name} AS {name}" for name in names) for t in "tu")
        tail = self.of("", " ORDER BY ALL LIMIT 7", f" ORDER BY {names[0]}, {names[1]} LIMIT 5")
        text = f"SELECT {one} FROM t WHERE {self.condition('t')} {word} SELECT {two} FROM u WHERE {self.condition('u')}{tail}"
        return self.of(text, f"SELECT count(*) AS c, max({names[0]}) AS m FROM ({text}) q")

    def correlated(self) -> str:
        inner = f"FROM u WHERE {self.of('@u.k = @t.k', '@u.n = @t.n', '@u.id < @t.id')} AND {self.condition('u', 1)}"
        return self.of(
            f"SELECT @t.id AS i, (SELECT {self.aggregate('u')} {inner}) AS x FROM t",
            f"SELECT @t.id AS i FROM t WHERE {self.of('EXISTS', 'NOT EXISTS')} (SELECT 1 {inner})",
            f"SELECT @t.id AS i FROM t WHERE @t.n {self.of('=', '>=')} (SELECT max(@u.n) {inner})",
            f"SELECT @t.id AS i FROM t WHERE @t.k {self.of('IN', 'NOT IN')} (SELECT @u.k FROM u WHERE {self.condition('u', 1)} AND @u.k IS NOT NULL)",
            f"SELECT @t.id AS i, s.x FROM t, LATERAL (SELECT {self.aggregate('u')} AS x {inner}) s",
            f"SELECT @t.id AS i, s.x FROM t LEFT JOIN LATERAL (SELECT @u.id AS x {inner} ORDER BY @u.id LIMIT 1) s ON true",
            "SELECT @t.id AS i FROM t WHERE @t.n > ALL (SELECT @u.p FROM u WHERE @u.p IS NOT NULL)",
        )  # fmt: skip

    def pivoted(self) -> str:
        rows = f"SELECT @t.k AS k, @t.b AS b, @t.n AS n, @t.p AS p FROM t WHERE {self.condition('t')}"
        return self.of(
            f"PIVOT ({rows}) ON b IN (true, false) USING {self.of('sum', 'max', 'count')}(n) GROUP BY k",
            f"PIVOT ({rows}) ON p IN (0, 1, 2) USING count(*) AS c, max(n) AS m GROUP BY k",
            f"SELECT * FROM ({rows}) PIVOT (sum(n) FOR p IN (0, 1) GROUP BY k)",
            "UNPIVOT (SELECT @t.id AS i, @t.n AS n, @t.p::bigint AS p FROM t) ON n, p INTO NAME name VALUE value",
            "SELECT i, name, value FROM (SELECT @t.id AS i, @t.k AS k, @t.q AS q FROM t) UNPIVOT INCLUDE NULLS (value FOR name IN (k, q))",
        )  # fmt: skip

    def lists(self) -> str:
        return "SELECT @t.id AS i, " + self.items(
            lambda: self.of(
                "list_transform(@t.l, e -> e * 2 + @t.n)", "list_filter(@t.l, e -> e > 1)", "list_sort(@t.l)", "(@t.l)[1:2]",
                "list_reverse(@t.s)", "list_concat(@t.l, [9])", "[@t.n, @t.p]", "{'a': @t.n, 'b': @t.k}", "[@t.k, 'z', NULL]",
                "list_zip(@t.l, @t.s)", "list_distinct(@t.s)", "list_transform(@t.s, e -> upper(e) || @t.k)", "list_unique(@t.l)",
                "struct_pack(n := @t.n, l := @t.l).n", "list_reduce(list_append(@t.l, 0), (x, y) -> coalesce(x, 0) + coalesce(y, 0))",
                "MAP {'x': 5}['x']", "(@t.o).q || '!'", "len(list_filter(@t.s, e -> e = @t.q))", "@t.l = [1]", "@t.o",
                "[e + 1 FOR e IN @t.l IF e IS NOT NULL]", "list_intersect(@t.s, ['x', 'y'])", "row(@t.n, @t.k)", "list_slice(@t.s, 2, 3)",
            )
        ) + f" FROM t WHERE {self.condition('t')}"  # fmt: skip

    def unnested(self) -> str:
        return self.of(
            "SELECT @t.id AS i, e.x FROM t, unnest(@t.l) AS e(x) WHERE e.x > 1",
            "SELECT e.x, count(*) AS c, sum(@t.n) AS s FROM t CROSS JOIN unnest(@t.s) AS e(x) GROUP BY e.x",
            "SELECT @t.id AS i, unnest(@t.l) AS x FROM t",
            "SELECT s.x, max(@t.n) AS m FROM t, LATERAL (SELECT unnest(@t.s) AS x) s GROUP BY ALL",
            "SELECT x, count(*) AS c FROM (SELECT unnest(@t.l) AS x FROM t WHERE @t.n > 1) GROUP BY x",
            "SELECT @t.id AS i, (SELECT sum(x) FROM unnest(@t.l) AS e(x)) AS s FROM t",
            "SELECT @t.id AS i, unnest(@t.s) AS x, generate_subscripts(@t.s, 1) AS y FROM t",
        )

    def with_parameters(self) -> str:
        number, text = self.parameter(self.rng.choice([1, 3, 2.5])), self.parameter(self.rng.choice(["b", "it's", ""]))
        return self.of(
            f"SELECT @t.id AS i, @t.n + {number} AS x FROM t WHERE @t.k = {text}",
            f"SELECT @t.k AS k, count(*) AS c FROM t WHERE @t.n > {number} OR @t.q = {text} GROUP BY @t.k",
            f"SELECT coalesce(@t.n, {number}) AS x, coalesce(@t.k, {text}) AS y FROM t",
        )

    def others(self) -> str:
        return self.of(
            f"SELECT {self.items(lambda: self.any_value('t'))} FROM t ORDER BY {self.number('t', 1)} DESC NULLS LAST, @t.id LIMIT 5 OFFSET 2",
            f"SELECT {self.items(lambda: self.any_value('t'))} FROM t ORDER BY @t.k, @t.id DESC LIMIT 4",
            "SELECT @a.id AS i, @b.id AS j FROM t a ASOF JOIN u b ON @a.k = @b.k AND @a.id >= @b.id",
            "SELECT DISTINCT @t.k AS k, @t.b AS b FROM t ORDER BY k, b",
            "SELECT @t.id AS i, w.x FROM t JOIN (VALUES (1, 'one'), (2, 'two')) w(n, x) ON @t.n = w.n",
            "WITH RECURSIVE r AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 5) SELECT r.i, @t.k AS k FROM r JOIN t ON @t.n = r.i",
            "FROM t SELECT @t.k AS k, max(@t.n) AS m GROUP BY k",
            "SELECT @t.ts::date AS day, count(*) AS c, sum(count(*)) OVER (ORDER BY day) AS total FROM t GROUP BY day",
            "SELECT date_trunc('day', @t.ts) AS day, sum(@t.n) AS s FROM t GROUP BY 1 ORDER BY 1",
            "SELECT @t.k AS k, sum(@t.n) / sum(sum(@t.n)) OVER () AS share FROM t GROUP BY @t.k",
            "SELECT time_bucket(INTERVAL '2 days', @t.ts) AS b, count(*) AS c FROM t GROUP BY b",
            "SELECT @t.id AS i, @t.ts + INTERVAL 1 DAY AS x, @t.ts - TIMESTAMP '2024-02-27' AS y FROM t",
            "SELECT grouping(@t.k) AS g, @t.k AS k, count(*) AS c FROM t GROUP BY ROLLUP (@t.k)",
            "SELECT CASE WHEN @t.n > 2 THEN 'high' WHEN @t.n IS NULL THEN 'none' ELSE 'low' END AS c, count(*) AS n FROM t GROUP BY c ORDER BY n DESC, c",
            "SELECT @a.k AS k, count(*) AS c FROM t a JOIN t b ON @a.k = @b.k AND @a.id < @b.id GROUP BY @a.k",
            "SELECT max(s) AS m FROM (SELECT @t.k AS k, sum(@t.n) AS s FROM t GROUP BY @t.k) WHERE s > 1",
            "SELECT @a.id AS i FROM t a POSITIONAL JOIN u b WHERE @a.k = @b.k",
            "SELECT t.*, 1 AS one FROM (SELECT @t.id AS i, @t.n AS n FROM t) t WHERE n > 2",
        )  # fmt: skip

    def shapes(self) -> str:
        x, c, agg = self.number("t"), self.condition("t"), self.aggregate("t")
        return self.of(
            f"WITH q AS (SELECT @t.id AS i, {x} AS x FROM t), q2 AS (WITH q AS (SELECT i, x FROM q WHERE i > 3) FROM q) SELECT q2.i, q.x FROM q JOIN q2 ON q.i = q2.i",
            "SELECT @a.id AS i, @b.id AS j FROM t a ASOF LEFT JOIN u b ON @a.k = @b.k AND @a.n >= @b.n AND @b.n IS NOT NULL WHERE @a.id < 0",
            f"SELECT @t.k AS k, @t.b AS b, {agg} AS x FROM t GROUP BY 1, 2 ORDER BY ALL",
            f"SELECT * EXCLUDE (y) FROM (SELECT @t.id AS i, {x} AS x, @t.k AS y FROM t WHERE {c})",
            f"SELECT * REPLACE (x + 1 AS x) FROM (SELECT @t.id AS i, @t.n AS x FROM t WHERE {c})",
            "SELECT * RENAME (x AS z) FROM (SELECT @t.id AS i, @t.n AS x FROM t)",
            "SELECT min(COLUMNS(*)) FROM (SELECT @t.id + 0 AS i, -@t.n AS n, @t.k || '!' AS k FROM t)",
            "SELECT COLUMNS('^n') + 1 FROM (SELECT @t.id + 0 AS i, -@t.n AS n, -@t.p AS n2 FROM t)",
            f"SELECT e.x.a AS a, e.x.b AS b FROM t, unnest([{{'a': @t.n + 0, 'b': @t.k}}, {{'a': -@t.p, 'b': 'x'}}]) AS e(x) WHERE {c}",
            f"SELECT @t.k AS k, string_agg(DISTINCT @t.q, '|' ORDER BY @t.q DESC) AS s FROM t WHERE {c} GROUP BY ALL HAVING s IS NOT NULL",
            "SELECT list_transform(@t.l, (e, i) -> e * i + coalesce(@t.n, 0)) AS x, list_filter(@t.s, e -> e > @t.k) AS y FROM t",
            "SELECT i, k FROM (SELECT @t.id AS i, @t.k AS k FROM t) q WHERE k = ANY (SELECT @u.k FROM u) AND i >= ALL (SELECT @u.id - 30 FROM u)",
            'SELECT "a.b", "A.B x" FROM (SELECT @t.n AS "a.b", @t.k AS "A.B x" FROM t) WHERE "a.b" > 1',
            "SELECT @t.k AS k, @t.b AS b, grouping_id(@t.k, @t.b) AS g, count(*) AS c FROM t GROUP BY GROUPING SETS ((@t.k), (@t.k, @t.b), ())",
            "SELECT @t.id AS i, sum(@t.n) OVER (ORDER BY @t.id RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS s FROM t",
            "SELECT @t.id AS i, count(*) OVER (PARTITION BY @t.k ORDER BY @t.id GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM t",
            "SELECT @t.id AS i, lag(@t.k, 1, @t.q) OVER (ORDER BY @t.id) AS x, lead(@t.n, 2, -1.5) OVER (ORDER BY @t.id) IS NULL AS y FROM t",
            f"SELECT MAP {{'n': @t.n, 'p': @t.p}}['p'] AS x, map([@t.k], [@t.n]) AS m, MAP {{'k': @t.k}}['k'] || '!' AS y FROM t WHERE @t.k IS NOT NULL AND {c}",
            "WITH RECURSIVE w AS (SELECT @t.id + 0 AS i, -@t.n AS n FROM t WHERE @t.id = 0 UNION ALL SELECT @t.id + 0, -@t.n FROM w JOIN t ON @t.id = w.i + 7) SELECT i, sum(n) OVER (ORDER BY i) AS s FROM w",
            f"SELECT {self.key('q')} AS g, {self.aggregate('q')} AS x FROM (FROM t UNION ALL FROM u) q WHERE {self.condition('q')} GROUP BY g",
            f"SELECT {self.items(lambda: self.any_value('q'))} FROM (SELECT * FROM t UNION ALL BY NAME SELECT * FROM u) q WHERE @q.id < 5",
            "SELECT @t.id AS i, (SELECT string_agg(e.x, '+' ORDER BY e.x) FROM unnest(@t.s) AS e(x) WHERE e.x <> @t.k) AS x FROM t",
            f"SELECT @t.id AS i FROM t WHERE ({x}, @t.b) IN (SELECT ({self.number('u')}), @u.b FROM u)",
            "SELECT @t.id AS i, CASE WHEN EXISTS (SELECT 1 FROM u WHERE @u.n = @t.n) THEN @t.k ELSE @t.q END AS x FROM t ORDER BY ALL DESC LIMIT 9",
            f"SELECT first_value(@t.k) OVER w AS a, {self.of('cume_dist', 'percent_rank')}() OVER w AS b FROM t WINDOW w AS (PARTITION BY @t.b ORDER BY @t.id)",
            "SELECT i, max(x) AS m FROM (SELECT @t.k AS i, unnest(@t.l || [@t.n, @t.p]) AS x FROM t) GROUP BY i HAVING max(x) > (SELECT avg(@u.n) FROM u WHERE @u.n < 100)",
            "SELECT @a.id AS i, @b.id AS j, @c.id AS k FROM t a JOIN u b ON @a.n = @b.n LEFT JOIN t c ON @c.p = @b.p AND @c.id < @a.id WHERE @a.id < 20",
            f"SELECT count(*) AS c FROM (SELECT DISTINCT ON (@t.k) @t.id AS i, {x} AS x FROM t ORDER BY @t.k, @t.id)",
            "SELECT @t.k AS k, list(@t.q ORDER BY @t.n NULLS FIRST, @t.id) FILTER (@t.b) AS l FROM t GROUP BY k",
        )  # fmt: skip

    def more_shapes(self) -> str:
        x, c, agg, text = self.number("t"), self.condition("t"), self.aggregate("t"), self.text("t")
        return self.of(
            f"WITH t AS (SELECT * FROM t WHERE @t.id < 40), u AS (SELECT @t.id AS i, {x} AS x FROM t) SELECT i, x FROM u WHERE x IS NOT NULL",
            "SELECT n, count(*) AS c FROM (SELECT @t.k AS n, @t.n AS k FROM t) q GROUP BY n",
            "SELECT @t.n AS id, @t.id AS n FROM t ORDER BY id NULLS FIRST, n LIMIT 9",
            "SELECT @t.k AS n, max(@t.n) AS k FROM t GROUP BY @t.k HAVING max(@t.n) > 1",
            'SELECT q."x y", q."Z", sum(q."x y") OVER (ORDER BY q.i) AS s FROM (SELECT @t.id AS i, @t.n AS "x y", @t.k AS "Z" FROM t) q',
            "SELECT @t.id AS i, s.m FROM t, LATERAL (SELECT max(@u.n) AS m FROM u WHERE @u.k = @t.k AND @u.n < (SELECT avg(@v2.n) FROM u v2 WHERE @v2.id > @t.id)) s",
            "SELECT @t.id AS i FROM t WHERE EXISTS (SELECT 1 FROM u WHERE @u.k = @t.k AND EXISTS (SELECT 1 FROM t t2 WHERE @t2.n = @u.n AND @t2.id <> @t.id))",
            f"SELECT @t.k AS k, sum(CASE WHEN {c} THEN @t.n ELSE 0 END) FILTER (WHERE @t.b) AS s, count(CASE WHEN @t.b THEN @t.k END) AS n FROM t GROUP BY k",
            "SELECT @a.id AS i, @b.n AS n FROM t a ASOF LEFT JOIN (SELECT * FROM u WHERE @u.n IS NOT NULL) b ON @a.k = @b.k AND @a.id > @b.id",
            "SELECT i, n, m FROM (SELECT @t.id AS i, @t.n AS n FROM t) POSITIONAL JOIN (SELECT @u.n AS m FROM u) LIMIT 20",
            "SELECT * EXCLUDE (n) REPLACE (k || '?' AS k) FROM (SELECT @t.id AS i, @t.n AS n, @t.k AS k FROM t)",
            "SELECT q.* EXCLUDE (i), q.i + 1 AS j FROM (SELECT @t.id AS i, @t.n AS n FROM t) q",
            "SELECT * RENAME (n AS m) FROM (SELECT @t.id AS i, @t.n AS n FROM t) WHERE n > 1",
            "(SELECT @t.k AS k FROM t EXCEPT SELECT @u.k FROM u) UNION ALL (SELECT @u.q FROM u INTERSECT SELECT @t.q FROM t) ORDER BY 1",
            "SELECT k, count(*) AS c FROM (SELECT @t.k AS k FROM t UNION SELECT @u.q FROM u) GROUP BY ALL ORDER BY k DESC NULLS LAST LIMIT 3",
            "SELECT @t.id AS i, array_agg(@t.n) OVER (ORDER BY @t.id ROWS 2 PRECEDING) AS l FROM t",
            "SELECT @t.id AS i, last_value(@t.k) OVER (PARTITION BY @t.b ORDER BY @t.id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS l FROM t QUALIFY i < 30",
            "SELECT @t.k AS k, row_number() OVER (ORDER BY @t.id) AS r FROM t QUALIFY r % 2 = 0 AND k IS NOT NULL",
            "SELECT @t.k AS k, @t.b AS b, count(*) AS c FROM t GROUP BY CUBE (k, b) HAVING grouping(k) = 1 OR k = 'a' ORDER BY ALL",
            "SELECT coalesce(@t.k, 'none') AS k, sum(@t.n) AS s FROM t GROUP BY ROLLUP (coalesce(@t.k, 'none'))",
            "SELECT struct_extract({'a': @t.n, 'b': @t.k}, 'a') + 1 AS x, struct_insert({'a': @t.n}, b := @t.k).b AS y FROM t",
            "SELECT {'n': @t.n, 'k': @t.k} AS s FROM t WHERE ({'n': @t.n}).n > 1",
            "SELECT @t.id AS i, list_append([@t.n], @t.p) AS a, list_prepend(@t.k, [@t.q]) AS b, list_concat([@t.n], [@t.p], [@t.id]) AS c FROM t",
            "SELECT s.k, count(*) AS c FROM (SELECT {'k': @t.k, 'n': @t.n} AS s FROM t) GROUP BY s.k",
            "SELECT i, u FROM (SELECT @t.id AS i, unnest([@t.k, @t.q]) AS u FROM t) WHERE u <> 'a'",
            "SELECT x, sum(i) AS s FROM (SELECT @t.id AS i, @t.k AS k, @t.q AS q FROM t) UNPIVOT (x FOR name IN (k, q)) GROUP BY x",
            "PIVOT (SELECT @t.k AS k, @t.b AS b, @t.n AS n FROM t) ON b USING sum(n) AS s GROUP BY k ORDER BY k",
            f"SELECT max(n) - min(n) AS r, first(k ORDER BY i) AS f FROM (SELECT @t.id AS i, @t.n AS n, @t.k AS k FROM t WHERE {c})",
            "SELECT @t.id AS i, (SELECT count(*) FROM u WHERE @u.n > @t.n) + (SELECT max(@u.id) FROM u) AS x FROM t",
            f"SELECT @t.k AS k, {agg} AS a FROM t WHERE @t.n = ANY (SELECT @u.n FROM u WHERE @u.b) OR @t.k IN (SELECT @u.q FROM u) GROUP BY 1",
            "SELECT a.i, b.x FROM (SELECT @t.id AS i, @t.k AS k FROM t) a JOIN (SELECT @u.k AS k, max(@u.n) AS x FROM u GROUP BY @u.k) b ON a.k = b.k",
            f"SELECT a.i, b.x FROM (SELECT @t.id AS i, @t.k AS k FROM t) a LEFT JOIN (SELECT @u.k AS k, {self.number('u')} AS x, @u.id AS i FROM u) b ON a.k = b.k AND a.i > b.i",
            "WITH a AS (SELECT @t.id AS i, @t.k AS k FROM t), b AS (SELECT i, k, lag(k) OVER (ORDER BY i) AS p FROM a) SELECT p, count(*) AS c FROM b WHERE p = k GROUP BY p",
            "SELECT date_trunc('month', @t.ts) AS m, count(DISTINCT @t.k) AS c, min(@t.ts) AS f FROM t GROUP BY m ORDER BY m",
            f"SELECT CASE @t.b WHEN true THEN @t.k WHEN false THEN @t.q ELSE {text} END AS x FROM t",
            "SELECT list(@t.k ORDER BY @t.id)[2:3] AS l, list(DISTINCT @t.b) IS NULL AS d, map(list(@t.id ORDER BY @t.id), list(@t.k ORDER BY @t.id))[3] AS m FROM t",
            "SELECT @t.id AS i, x.a, x.b FROM t, LATERAL (SELECT @t.n + 1 AS a, @t.k AS b) x WHERE x.a > 2",
            "SELECT @t.id AS i, e.x FROM t LEFT JOIN LATERAL unnest([@t.n, @t.p]) AS e(x) ON e.x > 1",
            "SELECT quantile_cont(@t.n, [0.25, 0.75]) AS q, mode(@t.b) IS NULL AS m, arg_max(@t.k, @t.n + @t.id / 1000.0) AS a FROM t WHERE @t.n IS NOT NULL",
            "SELECT sum(n) AS s FROM (SELECT DISTINCT @t.n AS n, @t.k AS k FROM t)",
            "SELECT @t.n BETWEEN @t.p AND 5 AS x, @t.k BETWEEN 'a' AND @t.q AS y, @t.n NOT IN (1, @t.p) AS z FROM t",
            "SELECT @t.id AS i, @t.n IS NOT DISTINCT FROM @t.p AS x, @t.k IS DISTINCT FROM @t.q AS y FROM t",
            "SELECT @t.k AS k, sum(sum(@t.n)) OVER (ORDER BY @t.k ROWS UNBOUNDED PRECEDING) AS s, rank() OVER (ORDER BY count(*) DESC, @t.k) AS r FROM t GROUP BY @t.k",
            "SELECT i, k FROM (SELECT @t.id AS i, @t.k AS k, row_number() OVER (PARTITION BY @t.k ORDER BY @t.id) AS r FROM t) WHERE r = 1 AND k IS NOT NULL",
            "SELECT t1.i, t2.i AS j FROM (SELECT @t.id AS i, @t.n AS n FROM t) t1 JOIN (SELECT @t.id AS i, @t.p AS n FROM t) t2 ON t1.n = t2.n AND t1.i < t2.i",
            "SELECT greatest(@t.n, @t.p) AS g, least(@t.k, @t.q) AS l, nullif(@t.k, @t.q) AS n, ifnull(@t.k, @t.q) AS f FROM t",
            "SELECT @t.k LIKE @t.q || '%' AS a, @t.k || @t.n AS b, concat(@t.k, @t.n, @t.b) AS c, format('{}-{}', @t.k, @t.n) AS d FROM t",
            "SELECT min(k) AS k, max(b) AS b FROM (SELECT @t.k AS k, @t.b AS b FROM t UNION ALL BY NAME SELECT @u.b AS b, @u.q AS k FROM u)",
            "SELECT count(*) AS c FROM t a, u b WHERE @a.k = @b.k AND (@a.n > @b.n OR @a.b = @b.b)",
            "SELECT @a.id AS i FROM t a WHERE (SELECT count(*) FROM u b WHERE @b.k = @a.k) > 2 AND NOT EXISTS (FROM u b WHERE @b.n = @a.n)",
            "SELECT i + 0 AS i, list_sort(list_filter(l, e -> e IS NOT NULL)) AS l FROM (SELECT @t.id AS i, [@t.n, @t.p, @t.id] AS l FROM t)",
            "SELECT i, list_aggregate(l, 'sum') AS s, list_contains(l, 2) AS c, len(l) AS n, l[1] AS f FROM (SELECT @t.id AS i, [@t.n, @t.p] AS l FROM t)",
            "SELECT k, sum(x) AS s FROM (SELECT @t.k AS k, unnest([@t.n, @t.p]) AS x FROM t) GROUP BY k HAVING sum(x) > 3 ORDER BY s, k",
            "SELECT 'n' || @t.n AS x, @t.n::string || @t.k AS y, (@t.n + 1)::string AS z, @t.b::string AS w FROM t",
            "SELECT @t.id AS i FROM t WHERE @t.n IN (SELECT max(@u.n) FROM u GROUP BY @u.k) AND (@t.k, @t.b) IN (SELECT @u.k, @u.b FROM u)",
            "SELECT @t.b AS b, bool_or(@t.n > 2) AS x, bit_xor(@t.p) AS y, any_value(@t.b) AS z, stddev_pop(@t.n) > 0 AS w FROM t GROUP BY @t.b",
            "SELECT i, j FROM (SELECT @t.id AS i, @t.n AS j FROM t ORDER BY j DESC NULLS LAST, i LIMIT 10) WHERE j > 1 ORDER BY i",
            "FROM (SELECT @t.id AS i, @t.k AS k FROM t) SELECT k, list(i ORDER BY i) AS l GROUP BY k",
            "SELECT (@t.n > 1) AS a, NOT @t.b AS b, (@t.n > 1 AND @t.b) IS NULL AS c, @t.b AND @t.k = 'a' AS d FROM t",
            "SELECT @t.n % 2 AS m, @t.n // 2 AS d, @t.n ** 2 AS p, -@t.n AS g, @t.n & 1 AS a FROM t WHERE @t.n >= 0",
        )  # fmt: skip

    KINDS = (
        plain, with_windows, qualified, joined, joined, grouped, grouped, totals, ctes, ctes, whole_rows, set_operation,
        correlated, pivoted, lists, unnested, with_parameters, others, others,
        shapes, shapes, more_shapes, more_shapes, more_shapes,
    )  # fmt: skip
