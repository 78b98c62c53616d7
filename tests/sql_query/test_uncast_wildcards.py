"""A path with wildcards and without a type has the type of all elements, in SQL, scans and commands."""

from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main

ROWS = [
    '{"items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}], "tags": [["x"], ["y", "z"]], "mixed": [1, "one"]}',
    '{"items": [], "tags": null, "mixed": [2.5]}',
    '{"other": true}',
]
EXPECTED = [{"s": ["a", "b"], "n": [1, 2], "t": [["x"], ["y", "z"]]}, {"s": [], "n": [], "t": None}]
PATHS = {"s": "$.items[*].sku", "n": "$.items[*].n", "t": "$.tags[*][*]"}


@pytest.fixture(params=["json", "parquet", "unshredded", "delta", "memory"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    values = pv.parse_json(ROWS)
    if request.param == "memory":
        return values
    if request.param == "json":
        (tmp_path / "rows.ndjson").write_text("\n".join(ROWS))
        return tmp_path / "rows.ndjson"
    if request.param == "delta":
        pv.write(tmp_path / "t", {"v": values}, format="delta")
        return tmp_path / "t"
    schema = "items array<struct<sku: string, n: bigint>>, tags array<array<string>>"
    pv.write(tmp_path / "a.parquet", values, schema=schema if request.param == "parquet" else None)
    return tmp_path / "a.parquet"


def test_elements_of_one_type_are_typed(source: object) -> None:
    query = "SELECT v:items[*].sku AS s, v:items[*].n AS n, v:tags[*][*] AS t FROM t LIMIT 2"
    assert pv.sql(query, t=source).to_pylist() == EXPECTED
    assert pv.open(source).scan(PATHS).to_pylist()[:2] == EXPECTED


def test_functions_of_lists_take_typed_elements(source: object) -> None:
    query = "SELECT list_sum(v:items[*].n) AS n, list_contains(v:items[*].sku, 'b') AS b FROM t LIMIT 1"
    assert pv.sql(query, t=source).to_pylist() == [{"n": 3, "b": True}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v:items[*].n AS n FROM t GROUP BY v:items[*].n ORDER BY v:items[*].n DESC",
        "SELECT DISTINCT v:items[*].n AS n FROM t ORDER BY n DESC",
        "SELECT v:items[*].n AS n, count(*) OVER (PARTITION BY v:items[*].n) AS c FROM t ORDER BY n DESC",
    ],
)
def test_lists_of_one_type_are_grouped_and_ordered(source: object, query: str) -> None:
    assert [row["n"] for row in pv.sql(query, t=source).to_pylist()] == [[1, 2], [], None]


def test_lists_of_one_type_are_compared(source: object) -> None:
    query = "SELECT count(*) AS c FROM t WHERE v:items[*].n = [1, 2] OR 7 IN v:items[*].n"
    assert pv.sql(query, t=source).to_pylist() == [{"c": 1}]


def test_elements_of_several_types_are_shown_as_json(source: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert pv.sql("SELECT v:mixed[*] AS m FROM t LIMIT 1", t=source).to_pylist() == [{"m": ["1", '"one"']}]
    if not isinstance(source, Path):
        return
    for words in (["--select", "m=$.mixed[*]"], ["SELECT v:mixed[*] AS m FROM t"]):
        for option, shown in ((["--json"], '{"m":[1,"one"]}'), ([], '[1,"one"]')):
            assert main(["query", str(source), *words, *option]) == 0
            assert shown in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT x.l, count(*) AS n FROM x GROUP BY x.l ORDER BY n", [(["c"], 1), (["a", "b"], 2)]),
        ("SELECT l, max(n) FROM x GROUP BY ALL ORDER BY 2", [(["a", "b"], 2), (["c"], 3)]),
        ("SELECT DISTINCT l FROM x ORDER BY l", [(["a", "b"],), (["c"],)]),
        ("SELECT x.n FROM x JOIN x y ON x.l = y.l AND x.n < y.n", [(1,)]),
        ("SELECT n FROM x WHERE l = ['c']", [(3,)]),
        ("SELECT l FROM (SELECT l FROM x) WHERE len(l) = 1", [(["c"],)]),
    ],
)
def test_lists_of_subqueries_have_the_type_of_their_elements(query: str, rows: list[tuple[object, ...]]) -> None:
    values = pv.parse_json(['{"l": ["a", "b"], "n": 1}', '{"l": ["a", "b"], "n": 2}', '{"l": ["c"], "n": 3}'])
    found = pv.sql(f"WITH x AS (SELECT v:l[*] AS l, v:n::int AS n FROM t) {query}", t=values).to_pylist()
    assert [tuple(row.values()) for row in found] == rows
