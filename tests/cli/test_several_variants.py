"""Tables with more than one Variant, and with Variants inside of structs, lists and maps, at the command line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from cli.conftest import Run
from parquet_variant.files.parquet.format.arrow_schema import tagged

ROWS = [
    {"id": 7, "v": {"a": 1}, "w": "x", "s": {"i": 1, "v": {"a": 1}}, "l": ["x", {"b": {"c": 1}}],
     "m": {"k": "x", "l": {"b": {"c": 1}}}, "n": {"1": "a"}},
    {"id": 8, "v": None, "w": {"b": {"c": 1}}, "s": {"i": 2, "v": None}, "l": [], "m": {}, "n": None},
    {"id": 9, "v": [1, 2], "w": None, "s": None, "l": [None], "m": {"m": None}, "n": {}},
]  # fmt: skip


def _field(name: str, array: pa.Array) -> pa.Field:
    return tagged(pa.field(name, array.type), array.type)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    v = pv.parse_json(['{"a":1}', None, "[1,2]"]).storage
    w = pv.parse_json(['"x"', '{"b":{"c":1}}', None]).storage
    inside = [pa.field("i", pa.int64()), _field("v", v)]
    s = pa.StructArray.from_arrays([pa.array([1, 2, 3]), v], fields=inside, mask=pa.array([False, False, True]))
    offsets = pa.array([0, 2, 2, 3], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, w, type=pa.list_(_field("element", w)))
    items = pa.map_(pa.string(), _field("value", w))
    maps = pa.MapArray.from_arrays(offsets, pa.array(["k", "l", "m"]), w, type=items)
    numbers = pa.array([[(1, "a")], None, []], pa.map_(pa.int64(), pa.string()))
    columns = {"id": pa.array([7, 8, 9]), "v": v, "w": w, "s": s, "l": lists, "m": maps, "n": numbers}
    fields = [_field(name, array) if name in "vw" else pa.field(name, array.type) for name, array in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


@pytest.fixture(scope="module", params=["parquet", "shredded", "delta", "vortex"])
def stored(request: pytest.FixtureRequest, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table in each kind of storage; Vortex holds Variants at the top only."""
    path: Path = tmp_path_factory.mktemp(request.param) / f"t.{request.param}"
    if request.param == "delta":
        pv.write(path, table, format="delta")
    elif request.param == "vortex":
        pv.write(path, {name: table[name] for name in ("id", "v", "w")}, format="vortex")
    else:
        pv.write(path, table, schema="infer" if request.param == "shredded" else None)
    return path


def _held(path: Path) -> list[str]:
    return ["id", "v", "w"] if path.suffix == ".vortex" else list(ROWS[0])


def test_cat_prints_whole_rows(variant: Run, stored: Path) -> None:
    done = variant("cat", stored)
    assert done.code == 0
    assert done.rows == [{name: row[name] for name in _held(stored)} for row in ROWS]


@pytest.mark.parametrize("column", ["v", "w", "s.v"])
def test_cat_prints_the_column_that_is_named(variant: Run, stored: Path, column: str) -> None:
    if column == "s.v" and stored.suffix == ".vortex":
        return
    expected = [(row["s"] or {"v": None})["v"] if column == "s.v" else row[column] for row in ROWS]  # type: ignore[index]
    assert variant("cat", stored, "--column", column).rows == expected


def test_two_variants_alone_are_rows_too(variant: Run, table: pa.Table, tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", table.select(["v", "w"]))
    assert variant("cat", tmp_path / "a.parquet").rows == [{"v": row["v"], "w": row["w"]} for row in ROWS]


def test_select_gives_another_variant_whole(variant: Run, stored: Path) -> None:
    done = variant("query", stored, "-s", "id", "-s", "w", "-s", "a=$.a:int", "--column", "v", "--json")
    assert done.rows == [{"id": 7, "w": "x", "a": 1}, {"id": 8, "w": {"b": {"c": 1}}, "a": None},
                         {"id": 9, "w": None, "a": None}]  # fmt: skip
    if stored.suffix in (".parquet", ".shredded"):
        nested = variant("query", stored, "-s", "s", "-s", "l", "-s", "m", "--json").rows
        assert nested == [{name: row[name] for name in "slm"} for row in ROWS]


@pytest.mark.parametrize("command", ["cat", "inspect", "infer", "validate", "query"])
def test_nested_columns_are_named_with_dots(variant: Run, stored: Path, command: str) -> None:
    if stored.suffix == ".vortex":
        return
    more = ["-s", "a=$.a:int", "--json"] if command == "query" else []
    done = variant(command, stored, "--column", "s.v", *more)
    assert done.code == 0, done.err
    if command == "query":
        assert done.rows == [{"a": 1}, {"a": None}, {"a": None}]


def test_errors_name_the_option(variant: Run, stored: Path) -> None:
    error = variant("query", stored, "-s", "a=$.a:int").error
    assert "column=" not in error
    if stored.suffix != ".vortex":
        assert "--column" in error
