"""Directories whose files differ in their columns: a column that a file lacks is null there, wherever it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
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
