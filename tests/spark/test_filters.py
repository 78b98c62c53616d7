"""Filters that Spark pushes: translated with SQL's meaning of null, or left to Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from parquet_variant.parquet.predicate import bind, evaluate
from parquet_variant.spark.filters import predicates_of

_ROWS = {"n": [1, 5, None, 9], "s": ["a%b", "axb", None, "ab"]}


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        (EqualTo(("n",), 5), [1]),
        (GreaterThan(("n",), 5), [3]),
        (GreaterThanOrEqual(("n",), 5), [1, 3]),
        (LessThan(("n",), 5), [0]),
        (LessThanOrEqual(("n",), 5), [0, 1]),
        (In(("n",), (1, 9)), [0, 3]),
        (IsNull(("n",)), [2]),
        (IsNotNull(("n",)), [0, 1, 3]),
        (Not(EqualTo(("n",), 5)), [0, 3]),
        (Not(In(("n",), (1, 9))), [1]),
        (EqualNullSafe(("n",), 5), [1]),
        (EqualNullSafe(("n",), None), [2]),
        (Not(EqualNullSafe(("n",), 5)), [0, 2, 3]),
        (Not(EqualNullSafe(("n",), None)), [0, 1, 3]),
        (StringStartsWith(("s",), "a%"), [0]),
        (Not(StringStartsWith(("s",), "a%")), [1, 3]),
    ],
)
def test_a_filter_keeps_the_rows_that_spark_keeps(given, rows):
    columns = pa.table(_ROWS)
    (predicate,) = predicates_of([given])
    answer = evaluate(bind(predicate, {"n": pa.int64(), "s": pa.string()}), columns).to_pylist()
    assert [row for row, kept in enumerate(answer) if kept] == rows


def test_what_has_no_translation_is_left_to_spark():
    left = [
        StringContains(("s",), "x"),
        StringEndsWith(("s",), "x"),
        Not(StringContains(("s",), "x")),
        EqualTo(("a", "b"), 1),
    ]
    assert predicates_of([*left, IsNull(("n",))]) == predicates_of([IsNull(("n",))])
