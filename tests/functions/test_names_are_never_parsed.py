"""Names of keys and columns are never parsed as paths or expressions, whatever characters they have."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

NAMES = [
    *(".a", ".", "..", "./feature", ".a.b", "a.b", "a'b", 'a"b', "a`b", "[0]", "a[0]", "[*]", "*", " ", "", "a b"),
    *("a\0b", "é", "日本", "Order", "order", "$", "$.a", "typed_value", "value", "metadata", "%41", "a/b", "a\nb", ":"),
    *(";", "list", "element", "ORDER BY", "--", "a,b", "{x}", "=", "#", "?", "\u202e", "😀"),
]
ROWS = 40
OBJECTS = [{name: f"{name}{row:03}" for name in NAMES} | {"n": {name: [row] for name in NAMES}} for row in range(ROWS)]
ARRAY = pv.parse_json([json.dumps(row) for row in OBJECTS])
SCHEMA = pv.ShreddingSchema.object(
    {name: pa.string() for name in NAMES}
    | {"n": pv.ShreddingSchema.object({name: pv.ShreddingSchema.array(pv.ShreddingSchema.of("int")) for name in NAMES})}
)


def _values(name: str) -> list[str]:
    return [row[name] for row in OBJECTS]


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["unshredded", "shredded"])
def test_values_of_any_key(schema: Any) -> None:
    array = ARRAY if schema is None else pv.shred_variant(ARRAY, schema)
    assert pv.to_python(array) == OBJECTS
    for name in NAMES:
        path = pv.VariantPath((name,))
        for form in (path, str(path)):
            assert pv.variant_get(array, form, "string").to_pylist() == _values(name)
        assert pv.variant_get(array, ("n", name, 0), "int").to_pylist() == list(range(ROWS))
        struct = pa.struct([pa.field(name, pa.string())])
        assert pv.variant_get(array, "$", struct).to_pylist() == [{name: value} for value in _values(name)]
        assert pv.variant_get(pv.variant_set(array, path, 7), path, "int").to_pylist() == [7] * ROWS
        assert pv.to_python(pv.cast_to_variant(pa.array([{name: 1}]))) == [{name: 1}]
    assert pv.ShreddingSchema.of(SCHEMA.to_ddl()) == SCHEMA


def _write(package: Any, path: Path) -> None:
    if package == "delta":
        pv.create(path, pa.schema([ARRAY.arrow_field.with_name("v")]))
        pv.open(path, format=package).append({"v": ARRAY}, schema={"v": SCHEMA})
    elif package == "iceberg":
        pv.write(path, {"v": ARRAY}, format=package, schema={"v": SCHEMA})
    else:
        pv.write(path, {"v": pv.shred_variant(ARRAY, SCHEMA)}, format=package)


@pytest.mark.parametrize("package", ["parquet", "delta", "iceberg"])
def test_tables_with_any_key(package: Any, tmp_path: Path) -> None:
    if package == "iceberg":
        pytest.importorskip("fastavro")
    path = tmp_path / "t"
    _write(package, path)
    assert pv.to_python(pv.open(path, format=package).read()) == OBJECTS
    for name in NAMES:
        key = str(pv.VariantPath((name,)))
        found = pv.open(path, format=package).scan({"x": (key, "string")}).to_arrow()["x"].to_pylist()
        assert found == _values(name)
        last = _values(name)[-2]
        literal = last.replace("'", "''")
        found = (
            pv.open(path, format=package)
            .scan({"x": (key, "string")}, f"{key}:string >= '{literal}'")
            .to_arrow()["x"]
            .to_pylist()
        )
        assert found == _values(name)[-2:]


@pytest.mark.parametrize("destination", ["parquet", "delta", "iceberg"])
def test_ingest_of_keys_that_begin_with_a_dot(destination: str, tmp_path: Path) -> None:
    if destination == "iceberg":
        pytest.importorskip("fastavro")
    lines = [json.dumps({"exports": {".": f"x{n}", "./feature": {"node": f"a{n}"}, ".a": n}}) for n in range(1000)]
    (tmp_path / "a.ndjson").write_text("\n".join(lines))
    pv.ingest(tmp_path / "a.ndjson", tmp_path / "t", format=destination)
    package = destination
    columns = {"x": ("$.exports['./feature'].node", "string"), "y": ("$.exports['.']", "string")}
    found = pv.open(tmp_path / "t", format=package).scan(columns, "$.exports['.a']:int = 7").to_arrow()
    assert found.to_pylist() == [{"x": "a7", "y": "x7"}]


@pytest.mark.parametrize("package", ["parquet", "delta", "iceberg"])
def test_columns_whose_names_are_paths(package: Any, tmp_path: Path) -> None:
    if package == "iceberg":
        pytest.importorskip("fastavro")
    rows = {".a": [1, 2], "s": [{".b": 1}, {".b": 2}], "a.b": [3, 4], "a": [{"b": 5}, {"b": 6}]}
    if package == "delta":
        pv.create(tmp_path / "t", pa.table(rows).schema)
        pv.open(tmp_path / "t", format=package).append(rows)
    else:
        pv.write(tmp_path / "t", rows, format=package)
    assert pv.open(tmp_path / "t", format=package).to_arrow().select(list(rows)).to_pydict() == rows
    for name in (".a", "a.b"):
        found = pv.open(tmp_path / "t", format=package).scan({"x": name}, f'"{name}" = {rows[name][1]}').to_arrow()
        assert found["x"].to_pylist() == [rows[name][1]]


def test_columns_whose_names_are_patterns_of_polars(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    for name in ("*", "^.*$", "^a$", ""):
        pv.write(tmp_path / "t.parquet", {name: [1, 2], "b": [3, 4]}, mode="overwrite")
        table = pv.open(tmp_path / "t.parquet")
        assert table.to_arrow().to_pydict() == {name: [1, 2], "b": [3, 4]}
        assert table.scan().to_polars().to_dict(as_series=False) == {name: [1, 2], "b": [3, 4]}
        assert table.lazy().filter(polars.col("b") > 3).collect().to_dict(as_series=False) == {name: [2], "b": [4]}


def test_a_column_of_iceberg_has_a_name(tmp_path: Path) -> None:
    pytest.importorskip("fastavro")
    with pytest.raises(pv.TableError, match="a column has no name"):
        pv.write(tmp_path / "t", {"": [1], "b": [2]}, format="iceberg")
    with pytest.raises(pv.TableError, match="two columns are named 'a'"):
        pv.write(tmp_path / "t", {"s": [{"a": 1, "A": 2}], "b": [2]}, format="iceberg")


def test_struct_field_is_never_called_with_a_single_name() -> None:
    """pyarrow parses a single name that begins with a dot as a path, but not the names of a list."""
    faults = []
    for module in Path(pv.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "struct_field":
                names = node.args[-1]
                is_list = isinstance(names, ast.List) or (
                    isinstance(names, ast.Call) and ast.unparse(names.func) == "list"
                )
                if not is_list:
                    faults.append(f"{module.name}:{node.lineno}: {ast.unparse(node)}")
    assert not faults
