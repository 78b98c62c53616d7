"""Names that collide with internal ones, or that SQL must quote, in every operation that changes rows."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from chosen_steps import chosen_cases

# The names of numbering columns inside, now and before, in several spellings, and names that SQL must quote.
_NAMES = [
    "", "__row", "__ROW", "__Row", "#", "######", "answer", "clause", "c0", "l", "r", "target", "source", "t",
    'a"b', '"', "a.b", "a b", "select", "Ünï", "a`b", "x'y", "v:a", "$", "$.x", "__row ", "ROW",
]  # fmt: skip
_VECTORS = {"delta.enableDeletionVectors": True}
_ROW_IDS = {"delta.enableRowTracking": True}
_CHANGE_DATA = {"delta.enableChangeDataFeed": True}
_PROPERTIES = [{}, _VECTORS, _ROW_IDS, _CHANGE_DATA]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _table(path: Path, name: str, properties: dict[str, bool]) -> str:
    """A table whose column of the tested name counts down, so that it is no row number by chance."""
    table = str(path / "t")
    data = pa.table({"id": [0, 1, 2, 3], name: [40, 30, 20, 10]})
    variants = pv.parse_json(['{"n": 0}', '{"n": 1}', '{"n": 2}', '{"n": 3}'])
    columns = {"id": data["id"], name: data[name], "v": variants}
    pv.write(table, columns, format="delta", properties=properties)
    return table


def _rows(table: str, name: str) -> list[tuple[int, int, object]]:
    rows = pv.open(table).to_arrow()
    variants = pv.VariantArray(rows["v"].combine_chunks()).to_pylist()
    return sorted(zip(rows["id"].to_pylist(), rows[name].to_pylist(), [v["n"] for v in variants], strict=True))


@pytest.mark.parametrize(("name", "properties"), chosen_cases(list(product(_NAMES, _PROPERTIES)), 32))
def test_a_column_of_any_name_is_the_users(tmp_path: Path, name: str, properties: dict[str, bool]) -> None:
    table = _table(tmp_path, name, properties)
    column = _quoted(name)
    assert pv.open(table).delete(f"{column} = 30").rows_deleted == 1
    assert _rows(table, name) == [(0, 40, 0), (2, 20, 2), (3, 10, 3)]
    updated = pv.open(table).update({"v:n": f"{column} + v:n::int", "id": f"id + {column}"}, f"{column} < 40")
    assert updated.rows_updated == 2
    assert _rows(table, name) == [(0, 40, 0), (13, 10, 13), (22, 20, 22)]
    assert pv.open(table).update(new_values={name: 11}, where=f"{column} = 10").rows_updated == 1
    source = pa.table({"id": [22, 0, 99], name: [21, 41, 91]})
    rows = {"id": source["id"], name: source[name], "v": pv.parse_json(['{"n": 7}', '{"n": 8}', '{"n": 9}'])}
    merge = pv.open(table).merge(rows, "target.id = source.id").when_matched_update_all(f"source.{column} > 21")
    result = merge.when_matched_delete().when_not_matched_insert_all().execute()
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (1, 1, 1)
    assert _rows(table, name) == [(0, 41, 8), (13, 11, 13), (99, 91, 9)]
    by_name = {"id": source["id"], name: pa.array([21, 41, 91]), "v": rows["v"]}
    merge = pv.open(table).merge(by_name, f"target.{column} = source.{column}")
    result = merge.when_matched_update({"id": f"source.{column} * 2"}).execute()
    assert result.rows_updated == 2
    assert [row[0] for row in _rows(table, name)] == [13, 82, 182]
    if properties == _CHANGE_DATA:
        kinds = pv.open(table).changes(since=1)
        assert kinds["_change_type"].to_pylist().count("delete") == 2
        assert set(kinds.filter(pa.compute.equal(kinds["_commit_version"], 1))[name].to_pylist()) == {30}


@pytest.mark.parametrize("alias", ["my table", "select", 'a"b', "T", "__row"])
def test_aliases_of_a_merge_may_need_quotes(tmp_path: Path, alias: str) -> None:
    table = _table(tmp_path, "k", {})
    rows = {"id": [1, 9], "k": [31, 91], "v": pv.parse_json(['{"n": 1}', '{"n": 9}'])}
    merge = pv.open(table).merge(rows, f"t2.id = {_quoted(alias)}.id", source_alias=alias, target_alias="t2")
    result = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert _rows(table, "k") == [(0, 40, 0), (1, 31, 1), (2, 20, 2), (3, 10, 3), (9, 91, 9)]


def test_a_dotted_name_is_a_field_and_a_quoted_one_the_column(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    structs = pa.array([{"b": 1}, {"b": 20}, {"b": 3}])
    pv.write(table, pa.table({"a": structs, "a.b": [10, 20, 20], "k": [1, 2, 3]}), format="delta")
    assert pv.open(table).delete("a.b = 20").rows_deleted == 1
    assert pv.open(table).to_arrow()["k"].to_pylist() == [1, 3]
    assert pv.open(table).update({"k": '"a.b" + a.b'}, '"a.b" = 20').rows_updated == 1
    assert pv.open(table).to_arrow()["k"].to_pylist() == [1, 23]
    source = pa.table({"k": [100], "b": [1], "ab": [20]})
    merged = pv.open(table).merge(source, "target.a.b = source.b").when_matched_update({"k": "source.k"}).execute()
    assert merged.rows_updated == 1
    assert pv.open(table).to_arrow()["k"].to_pylist() == [100, 23]
    merged = pv.open(table).merge(source, 'target."a.b" = source.ab').when_matched_delete().execute()
    assert merged.rows_deleted == 1
    assert pv.open(table).to_arrow()["k"].to_pylist() == [100]
