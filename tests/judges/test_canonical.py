"""`pv_canonical(v)` groups, distinguishes and joins Variants in Spark as `pv.sql` compares them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.judges.conftest import EngineProcess, start_engine

import parquet_variant as pv

# Encodings of {"n": k, "s": "x"}: casts of the number, orders of the keys, and dictionaries with other keys.
_NUMBERS = [
    "smallint",
    "int",
    "bigint",
    "decimal(4,0)",
    "decimal(9,2)",
    "decimal(18,3)",
    "decimal(38,6)",
    "double",
    "float",
]
_OBJECTS = [f"to_variant_object(named_struct('n', CAST(k AS {kind}), 's', 'x'))" for kind in _NUMBERS]
_OBJECTS += [f"to_variant_object(named_struct('s', 'x', 'n', CAST(k AS {kind})))" for kind in _NUMBERS[::4]]
_TEXTS = [
    '{"n": @, "s": "x"}',
    '{"s": "x", "n": @.0}',
    '{ "n":@.00,\n"s" : "\\\\u0078"}',
    '{"n": @e0, "s": "x"}',
    '{"s":"x","n":@}',
]
_OBJECTS += [f"parse_json(replace('{text}', '@', CAST(k AS STRING)))" for text in _TEXTS]
_OBJECTS += [
    'variant_get(parse_json(concat(\'{"z": 1, "in": {"n": \', k, \', "s": "x"}, "a": 2}\')), \'$.in\')',
    'variant_get(parse_json(concat(\'[{"s": "x", "n": \', k, \'.0}, {"b": 1}]\')), \'$[0]\')',
    "variant_get(to_variant_object(named_struct('q', named_struct('s', 'x', 'n', k))), '$.q')",
]
_ROWS = f"""
    SELECT k, e, CASE e {" ".join(f"WHEN {number} THEN {value}" for number, value in enumerate(_OBJECTS))} END AS v
    FROM (SELECT CAST(id % 5000 AS INT) AS k, CAST(id DIV 5000 AS INT) AS e FROM range(100000))
"""


@pytest.fixture(scope="module", params=["4.1", "4.2"])
def engine(request: pytest.FixtureRequest) -> Iterator[EngineProcess]:
    yield from start_engine(request.param, {"spark.sql.shuffle.partitions": "2"})


def test_equal_values_have_equal_keys(engine: EngineProcess, tmp_path: Path) -> None:
    assert len(_OBJECTS) == 20
    engine.python("import parquet_variant as pv\npv.spark.register_functions(spark)\nresult = None")
    engine.python(f"spark.sql({_ROWS!r}).createOrReplaceTempView('rows')\nresult = None")
    engine.python(f"spark.table('rows').coalesce(1).write.parquet({str(tmp_path / 'rows')!r})\nresult = None")
    engine.python(f"spark.read.parquet({str(tmp_path / 'rows')!r}).createOrReplaceTempView('t')\nresult = None")

    def compared(query: str, key: str) -> tuple[list[Any], list[Any]]:
        judged = engine.sql(query.replace("KEY", f"pv_canonical({key})"))
        ours = pv.sql(query.replace("KEY", key), t=tmp_path / "rows").to_pylist()
        return [list(row.values()) for row in ours], judged

    of_group = "SELECT KEY AS g, count(*) AS c FROM t GROUP BY KEY"
    groups = f"SELECT count(*) AS groups, min(c) AS fewest, max(c) AS most FROM ({of_group})"
    for query, key, expected in (
        (groups, "v", [[5000, 20, 20]]),
        ("SELECT count(*) AS c FROM (SELECT DISTINCT KEY AS g FROM t)", "v", [[5000]]),
    ):
        ours, judged = compared(query, key)
        assert ours == judged == expected, query
    joined = "SELECT count(*) AS c, count(DISTINCT a.k) AS k FROM t a JOIN t b ON {} = {} WHERE a.e = 3"
    judged = engine.sql(joined.format("pv_canonical(a.v)", "pv_canonical(b.v)"))
    ours = pv.sql(joined.format("a.v", "b.v"), t=tmp_path / "rows").to_pylist()
    assert [list(row.values()) for row in ours] == judged == [[100_000, 5000]]
