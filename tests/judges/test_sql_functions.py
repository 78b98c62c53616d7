"""Functions of Variants in `pv.sql` give what Spark 4.3 gives: generated values, 500 and more calls of a function."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

_KEYS = ["a", "b", "c", "x y", "A", "é"]
_ROWS = 24
_PATHS = [
    "$.a", "$.b", "$.c", "$.a.b", "$.a[0]", "$.b[1]", "$.b[4]", "$[0]", "$[2]", "$[0].a", "$.A.c", '$["é"]', "$.a.b.c",
    "$[1][0]", "$.c[0].a", '$["x y"]',
]  # fmt: skip
_VALUES = ["1", "-2.5", "'z'", "true", "NULL", "parse_json('null')", "parse_json('{\"b\": [1]}')", "parse_json('[2]')"]
_TYPES = [
    "int", "bigint", "double", "string", "boolean", "decimal(10,2)", "tinyint", "float", "array<string>", "array<int>",
    "map<string,string>", "struct<a:int,b:string>", "date", "smallint",
]  # fmt: skip


def _value(random: random.Random, depth: int = 0) -> Any:
    kinds = ["null", "bool", "int", "big", "decimal", "double", "text", *["array", "object"] * (4 if depth < 3 else 0)]
    kind = random.choice(kinds)
    if kind == "array":
        return [_value(random, depth + 1) for _ in range(random.randrange(4))]
    if kind == "object":
        return {key: _value(random, depth + 1) for key in random.sample(_KEYS, random.randrange(5))}
    scalars = {
        "null": None, "bool": random.random() < 0.5,
        "int": random.randrange(-200, 200), "big": random.randrange(10**12),
        "decimal": random.randrange(-9999, 9999) / 100, "double": random.random() * 1e30,
        "text": random.choice(["", "7", "true", "2024-01-31", "é\n", "12.5", "x"]),
    }  # fmt: skip
    return scalars[kind]


def _texts(seed: int) -> list[str | None]:
    """Return JSON texts, most of them objects and arrays, and a NULL."""
    generator = random.Random(seed)
    values = [_value(generator) for _ in range(_ROWS - 1)]
    return [None, *map(json.dumps, values)]


@pytest.fixture(scope="module")
def judge(spark: Any) -> Any:
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 3):
        pytest.skip(f"the functions are those of Spark 4.3, and PySpark is {spark.version}")
    return spark


def _numbered(texts: Sequence[str | None]) -> pa.Table:
    """Return rows that Spark keeps in the plan, so that no query over them needs a Python worker."""
    return pa.table({"n": pa.array(range(len(texts)), pa.int32()), "s": pa.array(texts, pa.string())})


def _compared(judge: Any, calls: list[str], texts: list[str | None], tail: str = "") -> int:
    """Run calls over the same rows in both engines, compare the results, and return the number of calls."""
    judge.createDataFrame(_numbered(texts)).createOrReplaceTempView("_texts")
    judge.sql("CREATE OR REPLACE TEMPORARY VIEW t AS SELECT n, s, try_parse_json(s) AS v FROM _texts")
    data = _numbered(texts).append_column("v", [pv.parse_json(texts, errors="null")])
    for start in range(0, len(calls), 16):
        part = calls[start : start + 16]
        columns = ", ".join(f"{call} AS c{number}" for number, call in enumerate(part))
        query = f"SELECT {columns} FROM t {tail or 'ORDER BY n'}"
        expected = [row.asDict(recursive=True) for row in judge.sql(query).collect()]
        found = pv.sql(query, t=data).to_pylist()
        assert len(found) == len(expected), query
        for row, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            for number, call in enumerate(part):
                mine, judged = _plain(ours[f"c{number}"]), _plain(theirs[f"c{number}"])
                assert mine == judged, (
                    f"{call} of {texts[row] if not tail else row}: {mine!r}, and Spark has {judged!r}"
                )
    return len(calls) * len(texts)


def _plain(value: Any) -> Any:
    """Return a value with lists of pairs (also an empty one) as dicts, and NaN as text."""
    if isinstance(value, list) and all(isinstance(entry, tuple) for entry in value):
        value = dict(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, (float, Decimal)) and value != value else value


@pytest.mark.parametrize("prefix", ["", "try_"])
def test_variant_get(judge: Any, prefix: str) -> None:
    calls = [f"to_json({prefix}variant_get(v, '{path}'))" for path in [*_PATHS, "$"]]
    if prefix:  # the other form raises
        pairs = [(path, kind) for path in ("$", "$.a", "$.b", "$[0]", "$.b[1]") for kind in _TYPES]
        calls += [f"try_variant_get(v, '{path}', '{kind}')" for path, kind in pairs]
    assert _compared(judge, calls, _texts(1) + _texts(2)) >= 500


def test_set_insert_append_and_delete(judge: Any) -> None:
    texts, counts = _texts(3), dict.fromkeys(["try_variant_set", "try_variant_insert", "try_variant_array_append"], 0)
    generator = random.Random(4)
    for name in counts:
        pairs = [(path, value) for path in _PATHS for value in _VALUES]
        calls = [f"to_json({name}(v, '{path}', {value}))" for path, value in generator.sample(pairs, 32)]
        if name == "try_variant_set":
            calls += [f"to_json({name}(v, '{path}', 5, false))" for path in _PATHS]
        counts[name] = _compared(judge, calls, texts)
    paths = [", ".join(f"'{path}'" for path in generator.sample(_PATHS, 1 + n % 3)) for n in range(22)]
    calls = [f"to_json(variant_delete(v, {path}))" for path in [*paths, "NULL, '$.a'", "NULL"]]
    counts["variant_delete"] = _compared(judge, calls, texts)
    assert min(counts.values()) >= 500, counts


@pytest.mark.parametrize("name", ["variant_set", "variant_insert", "variant_array_append"])
def test_changes_fail_where_spark_fails(judge: Any, name: str) -> None:
    generator = random.Random(6)
    outcomes = set()
    texts = _texts(5)[1:]
    judge.createDataFrame(_numbered(texts)).createOrReplaceTempView("t")
    for number, text in enumerate(texts):
        # Paths whose first step fits the value, so that some calls succeed.
        paths = [path for path in _PATHS if path[2].isdigit() == text.startswith("[")]
        path, value = generator.choice(paths), generator.choice([1, "'z'", "parse_json('[2]')"])
        query = f"SELECT to_json({name}(parse_json(s), '{path}', {value})) AS j FROM t"
        try:
            expected = judge.sql(f"{query} WHERE n = {number}").collect()[0][0]
        except Exception as error:
            expected = type(error).__name__ and "fails"
        try:
            found = pv.sql(query, t=pa.table({"s": [text]})).to_pylist()[0]["j"]
        except pv.VariantError:
            found = "fails"
        assert found == expected, f"{query} of {text}"
        outcomes.add(found == "fails")
    assert outcomes == {False, True}


def test_functions_of_one_variant(judge: Any) -> None:
    strip = ["(@)", "(@, false)", "(@, true)"]
    names = [f"{name}(@)" for name in ("is_variant_null", "is_valid_variant", "schema_of_variant", "to_json")]
    names += [f"to_json(variant_strip_nulls{arguments})" for arguments in strip]
    values = ["v", "try_parse_json(s)", "variant_get(v, '$.a')", "variant_get(v, '$[0]')", "variant_get(v, '$.b')"]
    calls = [name.replace("@", value) for name in names for value in values]
    texts = [text for seed in range(10, 15) for text in _texts(seed)]
    assert _compared(judge, calls, texts) // len(names) >= 500


def test_parse_json(judge: Any) -> None:
    generator = random.Random(7)
    texts: list[str | None] = []
    for text in [text for seed in range(20, 42) for text in _texts(seed) if text is not None][:500]:
        place, kind = generator.randrange(len(text)), generator.randrange(5)
        broken = {0: text[:place], 1: text[:place] + generator.choice('{}[],:"x1 ') + text[place:], 2: f" {text} \n"}
        texts.append(broken.get(kind, text))
    texts += [
        "",
        " ",
        "nul",
        "NaN",
        "1e400",
        "-0",
        "-0.0",
        "1.",
        ".5",
        "01",
        "1E5",
        '"\\u00e9"',
        "[1,]",
        "{}{}",
    ]
    calls = ["to_json(try_parse_json(s))", "schema_of_variant(try_parse_json(s))"]
    alone = [text for text in texts if text is not None and not _has_more(text)]
    assert _compared(judge, calls, alone) >= 800
    # The differences that docs/sql-variants.md names.
    for text, ours, theirs in (("{} x", None, "{}"), ('{"a": 1, "a": 2}', '{"a":2}', None)):
        query = f"SELECT to_json(try_parse_json('{text}')) AS v"
        assert (pv.sql(query).to_pylist()[0]["v"], judge.sql(query).collect()[0][0]) == (ours, theirs)


def _has_more(text: str) -> bool:
    """Return whether anything follows the first value of a text."""
    try:
        return bool(text.lstrip()[json.JSONDecoder().raw_decode(text.lstrip())[1] :].strip())
    except ValueError:
        return False


@pytest.mark.parametrize("name", ["variant_explode", "variant_explode_outer"])
def test_explode(judge: Any, name: str) -> None:
    tail = f", LATERAL {name}({{}}) AS e ORDER BY n, e.pos, e.key"
    texts = [text for seed in range(50, 58) for text in _texts(seed)]
    calls = ["n", "e.pos", "e.key", "to_json(e.value)"]
    counts = [
        _compared(judge, calls, texts, tail.format(value)) for value in ("v", "variant_get(v, '$.a')", "parse_json(s)")
    ]
    assert sum(counts) // len(calls) >= 500


def test_aggregates_and_objects(judge: Any) -> None:
    texts = [text for seed in range(60, 82) for text in _texts(seed)]
    for groups in (len(texts), len(texts) // _ROWS * 3):  # of one row, and of several
        calls = [f"n % {groups}", "schema_of_variant_agg(v)", "schema_of_variant_agg(variant_get(v, '$.a'))"]
        assert _compared(judge, calls, texts, f"GROUP BY n % {groups} ORDER BY n % {groups}") >= 500
    calls = [f"to_json(to_variant_object({value}))" for value in (
        "named_struct('a', n, 'b', s)", "array(n, 2)", "array(s, 'x')", "named_struct('v', v, 'l', array(s))",
        "array(named_struct('n', n))", "named_struct('x', named_struct('y', s, 'z', n > 3))",
    )]  # fmt: skip
    assert _compared(judge, calls, [text for seed in range(90, 94) for text in _texts(seed)]) >= 500
