"""Expressions of Delta tables' rules, as DuckDB evaluates them, compared with Spark: the same values, or refused."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from parquet_variant.errors import TableError
from parquet_variant.tables.delta.protocol.actions import parse_schema
from parquet_variant.tables.write_plan import Rules

ROWS = pa.table(
    {
        "ts": pa.array(
            [datetime(2020, 1, 2, 3, 4, 5, 6, UTC), None, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)],
            pa.timestamp("us", "UTC"),
        ),
        "dd": [date(2020, 2, 29), None, date(1969, 12, 31)],
        "s": ["abc", None, " Äb_%"],
        "n": pa.array([7, None, -7], pa.int64()),
        "i": pa.array([3, None, -3], pa.int32()),
        "f": [2.5, None, -2.7],
        "d": pa.array([Decimal("2.50"), None, Decimal("-2.75")], pa.decimal128(10, 2)),
        "b": [True, None, False],
        "arr": pa.array([[1, 2], None, [3]], pa.list_(pa.int32())),
        "st": pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int32())])),
    }
)
# By the type of the column that they would be the value of.
ALIKE = {
    "bigint": """
        year(ts); month(ts); day(ts); hour(ts); minute(ts); second(ts); quarter(dd); weekofyear(dd); dayofyear(dd)
        dayofweek(dd); datediff(dd, ts); cast(f as int); cast(d as int); cast(n / 2 as int); cast(2.7 as int)
        length(s); char_length(s); coalesce(n, 5); nvl(n, 5); nullif(n, 7); abs(n); ceil(d); floor(d); floor(n / 2)
        greatest(n, i); least(n, i, 5); n % 3; n % -3; mod(n, 3); n div 2; n * 2 + 1; -n; arr[0]; size(arr); st.a + 1
        if(n > 0, 1, 2); case n when 7 then 1 end; year(ts) * 100 + month(ts); try_cast(s as int); int(d)
    """,
    "string": """
        date_format(ts, 'yyyy-MM-dd HH:mm:ss'); date_format(dd, 'yyyyMM'); concat(s, n); concat(s, '-', dd); s || n
        upper(s); lower(s); trim(s); ltrim(s); substring(s, 1, 2); substring(s, 2); left(s, 2); right(s, 2); md5(s)
        coalesce(s, 'q'); case when n > 0 then 'p' when n < 0 then 'm' else 'z' end; cast(d as string)
        cast(dd as string); concat(year(ts), '-', month(ts)); n::string; concat(b, s); concat(s); 'it\\'s'; "text"
    """,
    "boolean": """
        n IS NULL; isnull(n); isnotnull(n); n <=> NULL; n != 7; f > 1; n between 0 and 8; n in (7, 8); n in (7, null)
        not (n = 7); n > 0 and s is not null; s like 'a%'; s like '_b%'; s rlike 'b'; s rlike '^a.c$'
        s like '%b\\\\_\\\\%'; s like 'a\\\\_'
        startswith(s, 'a'); endswith(s, 'c'); contains(s, 'b'); ts > '1990-01-01'; n > '5'; b is true; b and n > 0
        ts >= timestamp'2020-01-01 00:00:00'; dd = date'2020-02-29'; `n` > 1; d = 2.5
    """,
    "date": "to_date(ts); cast(ts as date); trunc(dd, 'MM'); trunc(dd, 'week'); last_day(dd); date_add(dd, 5)",
    "timestamp": "date_trunc('HOUR', ts); date_trunc('week', ts); ts + interval 1 day; cast(dd as timestamp)",
    "double": "n / 2; f / 2; f * f; round(f, 1); cast(n as double); d * 2; i + f",
}
REFUSED = """
    hash(n); xxhash64(n); split(s, 'b')[0]; date_format(ts, 'E'); substring(s, 0, 2); substring(s, -2, 2); s ilike 'A%'
    cast(ts as string); concat(f, 'x'); cast(date_trunc('day', ts) as string); concat(year(ts), hash(n)); n ^ 3
    floor(f); d / 2; array_contains(arr, 1); weekday(dd); st.a[0]; dd + interval 1 day; only_spark(n)
"""


def listed(text: str) -> list[str]:
    return [item.strip() for line in text.splitlines() for item in line.split("; ") if item.strip()]


def made(text: str, kind: str) -> list[Any]:
    column = {"name": "g", "type": {"bigint": "long"}.get(kind, kind)}
    schema = parse_schema(json.dumps({"type": "struct", "fields": [column]}))
    return Rules(generated=(("g", text),)).completed(ROWS, schema)["g"].to_pylist()


@pytest.mark.spark
@pytest.mark.parametrize("kind", ALIKE)
def test_what_is_evaluated_is_what_spark_says(spark: Any, kind: str) -> None:
    rows = spark.createDataFrame(ROWS)
    texts = listed(ALIKE[kind])
    wanted = rows.selectExpr(*(f"CAST({text} AS {kind}) AS c{at}" for at, text in enumerate(texts))).toArrow()
    found = {text: made(text, kind) for text in texts}
    assert found == {text: wanted[f"c{at}"].to_pylist() for at, text in enumerate(texts)}


@pytest.mark.parametrize("text", listed(REFUSED))
def test_what_may_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(TableError) as caught:
        made(text, "string")
    assert caught.value.reason == "unsupported-feature"
