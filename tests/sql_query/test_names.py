"""Names that look like something else (dots, quotes, case twins, internal names) mean what they mean in DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import duckdb

import parquet_variant as pv
from parquet_variant.errors import VariantError

NAMES = [
    "a", "b", "a.b", "b.a", "a.b.c", "t", "t.a", "v", "value", "metadata", "select", "order", "a b", " a", 'a"b', "a'b",
    "`a`", "a\\b", "é", "1", "1.v:$['a']:bigint", "_table_1", "_variant_function_1", "__row", "_rowid", "rowid", "*",
    "$.a", "v:a", "a:b", "id", "id_1", "count_star()", "\n", "%", "a;b", "--", "ß", "😀",
]  # fmt: skip


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def of_duckdb(query: str, table: pa.Table) -> tuple[list[str], list[tuple[Any, ...]]] | None:
    """The names and rows that DuckDB has for a query as a subquery, where it numbers names; None for an error."""
    with duckdb.connect() as connection:
        connection.register("t", table)
        try:
            found = connection.sql(f"SELECT * FROM ({query})")
            return list(found.columns), found.fetchall()
        except duckdb.Error:
            return None


def of_ours(query: str, table: Any) -> tuple[list[str], list[tuple[Any, ...]]] | None:
    try:
        found = pv.sql(query, t=table).to_arrow()
    except VariantError:
        return None
    return found.column_names, list(zip(*(column.to_pylist() for column in found.columns), strict=True))


columns_of_tables = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique_by=str.lower)


def table_of(names: list[str], fields: list[str]) -> pa.Table:
    """A table whose columns are whole numbers and structs of whole numbers in turn."""
    columns: dict[str, Any] = {}
    for number, name in enumerate(names):
        if number % 2 and fields:
            columns[name] = pa.array([{field: 10 * number + i for i, field in enumerate(fields)}] * 2)
        else:
            columns[name] = pa.array([number, number + 100])
    return pa.table(columns)


@given(names=columns_of_tables, fields=columns_of_tables, data=st.data())
def test_dotted_names_mean_what_they_mean_in_duckdb(names: list[str], fields: list[str], data: st.DataObject) -> None:
    table = table_of(names, fields)
    pool = [*names, *fields, "t"]
    parts = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
    plain = [part for part in parts if part.isidentifier() and part not in ("select", "order")]
    quoted = data.draw(st.booleans()) or len(plain) < len(parts)
    reference = ".".join(map(quote, parts) if quoted else parts)
    for query in (f"SELECT {reference} AS x FROM t", f"SELECT count(*) AS x FROM t WHERE {reference} IS NOT NULL"):
        expected = of_duckdb(query, table)
        ours = of_ours(query, table)
        # A whole row of a table ("SELECT t FROM t") is the one thing that is refused here and means something there.
        if expected is None or len(parts) > 1 or parts[0].lower() in map(str.lower, names):
            assert ours == expected


@given(names=columns_of_tables, data=st.data())
def test_output_names_are_those_of_duckdb(names: list[str], data: st.DataObject) -> None:
    table = table_of(names, ["a", "a.b", "id"])
    structs = [name for name in names if pa.types.is_struct(table.schema.field(name).type)]
    terms = [quote(name) for name in names] + ["*", "1 AS id", "2 AS id_1", "3 AS ID_2", '4 AS "a.b"']
    terms += [f"{quote(name)}.{quote(field)}" for name in structs for field in ("a", "a.b", "id")]
    query = f"SELECT {', '.join(data.draw(st.lists(st.sampled_from(terms), min_size=1, max_size=4)))} FROM t"
    expected, ours = of_duckdb(query, table), of_ours(query, table)
    assert ours is not None
    assert expected is not None
    assert ours[1] == expected[1]
    assert len(set(ours[0])) == len(ours[0])
    if len({name.lower() for name in ours[0]}) == len(ours[0]):
        assert ours[0] == expected[0]


def test_values_of_repeated_names_are_all_there() -> None:
    events = pv.parse_json(['{"a": {"id": 1}, "b": {"id": "x"}, "id": true}'])
    query = "SELECT v:a.id::int, v:b.id, v:id::boolean, 5 AS id, v:a.id::int AS ID FROM t"
    row = {"id": 1, "id_1": "x", "id_2": True, "id_3": 5, "ID": 1}
    assert pv.sql(query, t=events).to_pylist() == [row]
    assert pv.sql(
        f"SELECT id_2, id_1, id_3, id FROM ({query.replace(', v:a.id::int AS ID', '')})", t=events
    ).to_pylist() == [{"id_2": True, "id_1": "x", "id_3": 5, "id": 1}]
    assert pv.sql("SELECT * FROM t a, t b", t=events).column_names == ["v", "v_1"]
    assert pv.sql("SELECT id_1:z FROM (SELECT v:a.id::int, v:b AS id FROM t)", t=events).to_pylist() == [{"z": None}]


@pytest.fixture(params=["parquet", "delta", "arrow"])
def dotted(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    variants = pv.parse_json(['{"x": 1}', '{"x": 2}'])
    structs = pa.array([{"b": 20, "c.d": {"e": 3}}, {"b": 10, "c.d": {"e": 4}}])
    table = {"a.b": pa.array([1, 2]), "a": structs, "v": variants, "v.x": pa.array([7, 8])}
    if request.param == "arrow":
        return table
    path = tmp_path / "t"
    pv.write(path / "a.parquet", table) if request.param == "parquet" else pv.write(path, table, format="delta")
    return path


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ('SELECT a.b, "a.b" FROM t ORDER BY 2', [(20, 1), (10, 2)]),
        ('SELECT t.a.b, t."a.b" FROM t ORDER BY 2', [(20, 1), (10, 2)]),
        ('SELECT "a.b" FROM t WHERE a.b = 20', [(1,)]),
        ('SELECT a."c.d".e FROM t WHERE "a.b" = 2', [(4,)]),
        ('SELECT "v.x" FROM t WHERE v:x::int = 2', [(8,)]),
        ("SELECT a.b FROM t a WHERE a.a.b = 10", [(10,)]),
    ],
)
def test_a_dot_is_a_field_and_a_quoted_name_is_a_column(dotted: Any, query: str, rows: list[Any]) -> None:
    found = pv.sql(query, t=dotted).to_arrow()
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == rows


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT v.x FROM t", "use a colon, v:x"),
        ("SELECT a.b.c FROM t", "not a struct"),
        ("SELECT a.z FROM t", "choose from b, c.d"),
        ("SELECT z.b FROM t", "unknown table z|unknown column z"),
    ],
)
def test_a_wrong_field_is_named(dotted: Any, query: str, key: str) -> None:
    with pytest.raises(VariantError, match=key):
        pv.sql(query, t=dotted)


def test_conditions_of_changes_resolve_names_alike(tmp_path: Path) -> None:
    table = {
        "a.b": pa.array([1, 2, 20]),
        "a": pa.array([{"b": 20}, {"b": 10}, {"b": 1}]),
        "v": pv.parse_json(["1"] * 3),
    }
    pv.write(tmp_path, table, format="delta")
    assert pv.open(tmp_path).update({'"a.b"': "99"}, "a.b = 10").rows_updated == 1
    assert pv.open(tmp_path).delete("a.b = 20").rows_deleted == 1
    assert pv.sql('SELECT "a.b" FROM t ORDER BY 1', t=tmp_path).to_arrow()["a.b"].to_pylist() == [20, 99]
    source = pa.table({"a.b": [1, 10], "a": pa.array([{"b": 0}, {"b": 0}])})
    merge = pv.open(tmp_path).merge(source, 'target.a.b = source."a.b"')
    merged = merge.when_matched_delete().execute()
    assert merged.rows_deleted == 2
    with pytest.raises(VariantError, match="cannot set"):
        pv.open(tmp_path).update({"a.b": "5"})


def test_an_assignment_takes_the_column_of_exactly_its_name(tmp_path: Path) -> None:
    rows = pa.table({"$": [1], "$.a": [2], "v.a": [3], "v": pv.parse_json(['{"a": 4}'])})
    pv.write(tmp_path / "t", rows, format="delta")
    pv.open(tmp_path / "t").update({"$": "10", "$.a": '"$.a" * 10', "v.a": "30", "v:a": "40"}, '"$.a" = 2')
    found = pv.sql('SELECT "$", "$.a", "v.a", v:a FROM t', t=tmp_path / "t").to_pylist()
    assert found == [{"$": 10, "$.a": 20, "v.a": 30, "a": 40}]


@pytest.mark.parametrize(
    "query", ['SELECT "" FROM t', 'SELECT v:a AS "" FROM t', 'SELECT v:a FROM t ""', 'SELECT v:a FROM t WHERE "" = 1']
)
def test_an_empty_name_is_refused_before_the_engine_sees_it(query: str) -> None:
    with pytest.raises(VariantError, match='the name "" is empty'):
        pv.sql(query, t={"": pa.array([1]), "v": pv.parse_json(['{"a": 1}'])})


def test_empty_keys_and_columns_next_to_an_empty_name_can_be_read() -> None:
    table = {"": pa.array([1]), "v": pv.parse_json(['{"": 5, "a": {"": 6}}']), "k": pa.array([2])}
    found = pv.sql("""SELECT k, v:['']::int AS x, v[""]::int AS y, v:a['']::int AS z FROM t""", t=table)
    assert pv.sql('SELECT k, v:""::int AS x, v:``::int AS y, v:a.""::int AS z FROM t', t=table).to_pylist() == (
        found.to_pylist()
    )
    assert found.to_pylist() == [{"k": 2, "x": 5, "y": 5, "z": 6}]


def test_a_name_with_nul_is_refused_because_the_engine_would_cut_it(tmp_path: Path) -> None:
    rows = {"a\0b": [1], "c": [2]}
    for query in ("SELECT * FROM t", 'SELECT "a\0b" FROM t'):
        with pytest.raises(VariantError, match="contains NUL"):
            pv.sql(query, t=rows)
    assert pv.sql("SELECT c FROM t", t=rows).to_pylist() == [{"c": 2}]
    pv.write(tmp_path, rows, format="delta")
    with pytest.raises(VariantError, match="SQL allows no NUL"):
        pv.open(tmp_path).delete('"a\0b" = 1')
