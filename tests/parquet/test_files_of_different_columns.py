"""Directories whose files differ in their columns: a column that a file lacks is null there, wherever it is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from object_store import environment, s3_application, s3_server

# The rows of each file, in the order of the files; `v` and `w` are Variants.
FILES = [
    {"k": ["a"]},
    {"k": ["b"], "v": ['{"s": 2}']},
    {"v": ['{"s": 3}'], "n": [30]},
    {"k": ["d"], "v": ['{"s": 4}'], "w": ["true"], "n": [40]},
]


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    with s3_server("lake", s3_application()) as endpoint, pytest.MonkeyPatch.context() as patched:
        for name, value in environment(endpoint).items():
            patched.setenv(name, value)
        yield


@pytest.fixture(params=["local", "remote"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    place = str(tmp_path)
    if request.param == "remote":
        request.getfixturevalue("server")
        place = f"s3://lake/{tmp_path.name}"
    for number, columns in enumerate(FILES):
        rows = {name: pv.parse_json(values) if name in "vw" else values for name, values in columns.items()}
        schemas = {"v": "s bigint"} if number % 2 and "v" in rows else None
        pv.write(f"{place}/{number}.parquet", pa.table(rows) if number == 0 else rows, schema=schemas)
    return place


def test_every_reader_sees_the_columns_of_all_files(directory: str) -> None:
    table = pv.open(directory)
    assert table.schema.names == ["k", "v", "n", "w"]
    rows = table.to_arrow()
    assert rows.schema.names == ["k", "v", "n", "w"]
    assert rows["k"].to_pylist() == ["a", "b", None, "d"]
    assert rows["n"].to_pylist() == [None, None, 30, 40]
    assert pv.VariantArray.from_arrow(rows, "v").to_pylist() == [None, {"s": 2}, {"s": 3}, {"s": 4}]
    assert table.to_arrow(["n", "k"]).to_pydict() == {"n": [None, None, 30, 40], "k": ["a", "b", None, "d"]}
    assert len(table.to_arrow(["w"])) == 4
    assert table.read("v").to_pylist() == [None, {"s": 2}, {"s": 3}, {"s": 4}]
    assert table.read("w").to_pylist() == [None, None, None, True]


def test_scans_and_queries_agree(directory: str) -> None:
    table = pv.open(directory)
    scanned = table.scan({"k": "k", "n": "n", "s": "$.s:bigint"}, column="v").to_arrow().to_pylist()
    queried = pv.sql(f"SELECT k, n, v:s::bigint AS s FROM '{directory}'").to_pylist()
    expected = [(None, None, "a"), (2, None, "b"), (3, 30, None), (4, 40, "d")]
    for rows in (scanned, queried):
        assert sorted(((row["s"], row["n"], row["k"]) for row in rows), key=str) == sorted(expected, key=str)
    assert table.scan(["k"], "n is null").to_arrow()["k"].to_pylist() == ["a", "b"]
    assert table.scan(["k"], "n > 30").to_arrow()["k"].to_pylist() == ["d"]
    assert pv.sql(f"SELECT sum(v:s) AS total, count(w) AS w FROM '{directory}'").to_pylist() == [{"total": 9, "w": 1}]
    assert pv.sql(f"SELECT * FROM '{directory}'").to_arrow().column_names == ["k", "v", "n", "w"]


def test_the_only_variant_may_be_missing_in_the_first_file(directory: str) -> None:
    files = [f"{directory}/{number}.parquet" for number in (0, 2, 1)]
    assert pv.open(files).scan({"s": "$.s:bigint"}).to_arrow()["s"].to_pylist() == [None, 3, 2]
    assert pv.sql("SELECT count(*) AS n FROM t", t=files).to_pylist() == [{"n": 3}]
    assert len(pv.open(directory)) == 4


def test_a_column_that_no_file_has_is_refused(directory: str) -> None:
    table = pv.open(directory)
    for read in (
        lambda: table.to_arrow(["x"]),
        lambda: table.scan(["x"]),
        lambda: table.read("x"),
        lambda: table.scan({"s": "$.s"}, column="x").to_arrow(),
    ):
        with pytest.raises(pv.VariantError):
            read()


def test_values_of_types_that_pyarrow_cannot_cast_are_joined(tmp_path: Path) -> None:
    lists = pa.array([[None], [], [None, None]], pa.list_(pa.null()))
    for number in range(2):
        pv.write(f"{tmp_path}/{number}.parquet", pa.table({"x": lists, "v": pv.parse_json(["1", "2", "3"])}))
    assert pv.open(tmp_path).to_arrow(["x"])["x"].to_pylist() == lists.to_pylist() * 2


@pytest.mark.parametrize("column", ["v", "w"])
def test_quality_counts_the_rows_of_files_that_lack_the_column(directory: str, column: str) -> None:
    table = pv.open(directory, column=column)
    assert str(table.diff(table)).count("4 rows") >= 1
    profile, contract = pv.profile(directory, column=column), table.contract()
    assert profile.rows == 4
    result = table.check(contract)
    assert (result.rows, result.bad_rows) == (4, 0)
    schema = "s bigint" if column == "v" else "boolean"
    assert pv.infer(directory, column=column).schema.to_ddl() == schema
    with pytest.raises(pv.VariantError):
        pv.infer(directory, column="x")


@pytest.mark.parametrize("values", [[3, 4], ["3", "x"], [{"q": 1}, None], [[1], None]], ids=str)
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_column_of_the_type_null_has_the_type_of_another_file(tmp_path: Path, values: list[Any], order: str) -> None:
    for name, rows in zip(order, (pa.nulls(2), pa.array(values)), strict=True):
        pq.write_table(pa.table({"n": rows, "v": pv.parse_json(["1", "2"]).storage}), tmp_path / f"{name}.parquet")
    table, expected = pv.open(tmp_path), [None, None, *values] if order == "ab" else [*values, None, None]
    assert table.schema.field("n").type == pa.array(values).type
    assert table.to_arrow()["n"].to_pylist() == expected
    assert table.scan(["n"]).to_arrow()["n"].to_pylist() == expected
    assert sorted(map(str, pv.sql("SELECT n FROM t", t=table).to_arrow()["n"].to_pylist())) == sorted(
        map(str, expected)
    )
    if values == [3, 4]:
        assert table.scan(["n"], "n = 3").to_arrow()["n"].to_pylist() == [3]
    table.append({"n": pa.array(values), "v": pv.parse_json(["1", "2"])})
    assert sorted(map(str, table.to_arrow()["n"].to_pylist())) == sorted(map(str, expected + values))


NULLS_INSIDE = {
    "a struct": ([{"k": None, "z": "a"}], [{"k": 3, "z": "b"}]),
    "a list": ([[None], []], [[1, 2], [3]]),
    "a list of structs": ([[{"k": None}]], [[{"k": {"a": [5]}}]]),
    "a map": ([[("p", None)]], [[("q", 2)]]),
}


@pytest.mark.parametrize("extension", ["parquet", "vortex"])
@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("kind", NULLS_INSIDE)
def test_a_type_null_inside_a_column_is_that_of_another_file(
    tmp_path: Path, kind: str, order: str, extension: str
) -> None:
    if extension == "vortex":
        pytest.importorskip("vortex")
    nulls, values = NULLS_INSIDE[kind]
    map_type = pa.map_(pa.string(), pa.int64())
    typed = pa.array(values, map_type if kind == "a map" else None)
    empty = pa.array(nulls, pa.map_(pa.string(), pa.null()) if kind == "a map" else None)
    place = tmp_path / "t"
    place.mkdir()
    for name, rows in zip(order, (empty, typed), strict=True):
        rows_of_file = pa.table({"x": rows, "id": range(len(rows))}).append_column(
            pa.field(
                "v", pv.parse_json(["1"]).storage.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"}
            ),
            pv.parse_json(["1"] * len(rows)).storage,
        )
        pv.write(place / f"{name}.{extension}", rows_of_file)
    table, expected = pv.open(place), [*nulls, *values] if order == "ab" else [*values, *nulls]
    assert table.schema.field("x").type == table.to_arrow()["x"].type
    assert table.to_arrow()["x"].to_pylist() == table.to_arrow(["x"])["x"].to_pylist() == expected
    assert table.scan(["x"]).to_arrow()["x"].to_pylist() == expected
    assert table.scan(["x", "id"], "id = 0").to_arrow()["x"].to_pylist() == [
        (nulls if name == "a" else values)[0] for name in order
    ]
    assert pv.sql("SELECT x FROM t ORDER BY id", t=table).to_arrow()["x"].type == table.schema.field("x").type
    table.rewrite(tmp_path / "again")
    assert pv.open(tmp_path / "again").to_arrow()["x"].to_pylist() == expected
    for rows in (empty, typed):
        table.append({"x": rows, "id": range(len(rows)), "v": pv.parse_json(["1"] * len(rows))})
    assert sorted(map(str, table.to_arrow()["x"].to_pylist())) == sorted(map(str, expected * 2))
    if extension == "parquet":
        table.publish("delta")
        assert sorted(map(str, pv.open(place).to_arrow()["x"].to_pylist())) == sorted(map(str, expected * 2))


@pytest.mark.parametrize("extension", ["parquet", "vortex"])
def test_rows_are_not_appended_in_a_type_that_loses_values(tmp_path: Path, extension: str) -> None:
    if extension == "vortex":
        pytest.importorskip("vortex")
    rows: dict[str, tuple[Any, Any]] = LOSING | {
        "a part of a decimal": (pa.array([1], pa.decimal128(9, 2)), [0.125]),
        "zeros of a text": ([1], ["05"]),
    }
    for number, kind in enumerate(("a field of a struct", "a time of day", "a number", *list(rows)[-2:])):
        first, second = rows[kind]
        place = tmp_path / str(number)
        place.mkdir()
        pv.write(place / f"a.{extension}", {"x": first, "v": pv.parse_json(["1"])})
        with pytest.raises(pv.SchemaError, match="would lose values"):
            pv.open(place).append({"x": second, "v": pv.parse_json(["1"])})
        assert len(pv.open(place)) == 1
        pv.open(place).append({"x": pa.nulls(1), "v": pv.parse_json(["1"])})
        assert len(pv.open(place)) == 2


def test_a_dictionary_is_read_as_the_strings_of_the_first_file(tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", {"x": ["b"], "v": pv.parse_json(["1"])})
    categories = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["a", "b"]))
    pq.write_table(pa.table({"x": categories}), tmp_path / "b.parquet")
    table = pv.open(tmp_path)
    assert table.to_arrow()["x"].to_pylist() == table.scan(["x"]).to_arrow()["x"].to_pylist() == ["b", "b", "a", None]
    table.append({"x": categories, "v": pv.parse_json(["1", "2", "3"])})
    assert len(table) == 7


LOSING = {
    "a field of a struct": ([{"a": 1}], [{"a": 1, "b": 2}]),
    "a field of elements": ([[{"a": 1}]], [[{"a": 1, "b": 2}]]),
    "a time of day": ([dt.date(2024, 1, 2)], [dt.datetime(2024, 1, 2, 5)]),
    "a number": ([True], [5]),
    "a part of a number": (pa.array([1.5], pa.float32()), [0.1]),
    "a Variant": ([{"q": 1}], pv.parse_json(['{"a": 1}']).storage),
    "the metadata of a Variant": (pv.parse_json(['{"a": 1}']).storage, [{"q": 1}]),
}


@pytest.mark.parametrize(("first", "second"), LOSING.values(), ids=LOSING)
def test_a_column_whose_values_the_type_of_the_first_file_would_lose_is_refused(
    tmp_path: Path, first: Any, second: Any
) -> None:
    for name, values in (("a", first), ("b", second)):
        pq.write_table(pa.table({"k": [name], "x": values}), tmp_path / f"{name}.parquet")
    table = pv.open(tmp_path)
    for read in (table.to_arrow, lambda: table.scan(["x"]).to_arrow(), lambda: pv.sql("SELECT x FROM t", t=table)):
        with pytest.raises(pv.VariantError) as raised:
            read()
        assert raised.value.reason in ("files-differ", "no-variant-column", "not-a-variant")
    assert table.to_arrow(["k"])["k"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([{"a": 1, "b": 2}], [{"b": 3}]),
        (pa.array([2.5]), pa.array([float("nan")], pa.float32())),
        ([1], pa.array([None], pa.null())),
        (pa.array([2**40]), pa.array([3], pa.int32())),
        (["x"], pa.array(["y"]).dictionary_encode()),
    ],
)
def test_a_column_whose_values_the_type_of_the_first_file_holds_is_read(
    tmp_path: Path, first: Any, second: Any
) -> None:
    for name, values in (("a", first), ("b", second)):
        pq.write_table(pa.table({"x": values}), tmp_path / f"{name}.parquet")
    rows = pv.open(tmp_path).to_arrow()["x"].to_pylist()
    assert str(rows) == str(pv.open(tmp_path).scan(["x"]).to_arrow()["x"].to_pylist())
    assert len(rows) == 2 and str(rows[1]).strip("{}").endswith(str(pa.array(second).to_pylist()[0]).strip("{}"))


def test_variants_inside_structs_with_other_typed_columns_are_joined(tmp_path: Path) -> None:
    for number, schema in enumerate(["s bigint", None, "s string"]):
        values = pv.parse_json([f'{{"s": {number}}}', '{"s": "x"}'])
        values = values if schema is None else pv.shred_variant(values, schema)
        field = pa.field("v", values.storage.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
        struct = pa.StructArray.from_arrays([values.storage], fields=[field])
        pq.write_table(pa.table({"x": struct}), tmp_path / f"{number}.parquet")
    storage = pv.open(tmp_path).to_arrow()["x"].combine_chunks().field("v")
    assert pv.VariantArray(storage).to_pylist() == [row for n in range(3) for row in ({"s": n}, {"s": "x"})]


@pytest.mark.parametrize("values", [[{"q": 1}], [1], ["{}"]])
def test_a_column_that_is_a_variant_only_in_some_files_is_refused(tmp_path: Path, values: Any) -> None:
    pv.write(tmp_path / "a.parquet", {"k": [1], "v": pv.parse_json(['{"a": 1}'])})
    pq.write_table(pa.table({"k": [1], "v": values}), tmp_path / "b.parquet")
    table = pv.open(tmp_path, column="v")
    for read in (
        table.read,
        table.contract,
        table.validate,
        table.optimize,
        lambda: table.rewrite(tmp_path / "new"),
        lambda: table.diff(table),
        lambda: pv.profile(tmp_path, column="v"),
    ):
        with pytest.raises(pv.VariantError, match=r"b\.parquet"):
            read()


def test_a_struct_without_the_variant_of_other_files_has_nulls(tmp_path: Path) -> None:
    values = pv.parse_json(['{"a": 1}'])
    pq.write_table(pa.table({"s": pa.StructArray.from_arrays([values.storage], ["v"])}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": [{"q": 1}]}), tmp_path / "b.parquet")
    table = pv.open(tmp_path, column="s.v")
    assert table.read().to_pylist() == [{"a": 1}, None]
    assert table.scan({"a": "$.a:bigint"}).to_arrow()["a"].to_pylist() == [1, None]
    assert str(table.diff(table)).count("2 rows") >= 1


def _values(table: pv.Table, column: str) -> list[Any]:
    return sorted(table.read(column).to_pylist(), key=str)


def test_files_without_the_column_are_rewritten_compacted_and_valid(directory: str, tmp_path: Path) -> None:
    table = pv.open(directory)
    rows = {column: _values(table, column) for column in "vw"}
    for options in ({"layout": "unshredded"}, {"schema": "infer", "column": "v"}, {"schema": "boolean", "column": "w"}):
        written = table.rewrite(f"{tmp_path}-new", mode="overwrite", **options)
        new = pv.open(f"{tmp_path}-new")
        assert len(written) == 4 and {column: _values(new, column) for column in "vw"} == rows, options
        assert new.schema.names == ["k", "v", "n", "w"]
    assert str(table.validate()).startswith("4 files, 4 rows: valid")
    assert table.compat(require={"duckdb": "1.5"})
    pv.write(f"{directory}/4.parquet", pa.table({"k": ["e"]}))
    for column in "vw":
        table.optimize(column=column, reshred=True)
        assert _values(table, column) == sorted([*rows[column], None], key=str)
        assert sorted(filter(None, table.to_arrow()["k"].to_pylist())) == ["a", "b", "d", "e"]


def test_a_column_is_required_if_every_file_requires_it(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64(), nullable=False)])
    for name, names in (("a.parquet", ["a", "b"]), ("b.parquet", ["a"])):
        pq.write_table(
            pa.table({n: [1] for n in names}, schema=pa.schema([schema.field(n) for n in names])), tmp_path / name
        )
    assert [field.nullable for field in pv.open(tmp_path).schema] == [False, True]
    pq.write_table(pa.table({"a": [None]}, schema=pa.schema({"a": pa.int64()})), tmp_path / "c.parquet")
    assert [field.nullable for field in pv.open(tmp_path).schema] == [True, True]


def test_files_of_which_none_has_the_column_are_refused(tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(pa.table({"k": [number]}), tmp_path / f"{number}.parquet")
    table = pv.open(tmp_path)
    for write in (table.optimize, table.validate, lambda: table.rewrite(tmp_path / "new", layout="unshredded")):
        with pytest.raises(pv.VariantError, match=r"no Variant column.*\.parquet"):
            write()


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_column_is_nullable_if_it_is_in_any_file(tmp_path: Path, order: str) -> None:
    for name, rows in zip(order, ([1], [None]), strict=True):
        schema = pa.schema([pa.field("n", pa.int64(), nullable=rows == [None])])
        pq.write_table(pa.table({"n": rows}, schema=schema), tmp_path / f"{name}.parquet")
    rows = pv.open(tmp_path).to_arrow()
    assert rows.schema == pv.open(tmp_path).schema
    assert rows.schema.field("n").nullable
    assert rows.validate(full=True) is None
