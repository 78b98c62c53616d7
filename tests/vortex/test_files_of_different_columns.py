"""Vortex directories whose files differ in their columns are read as Parquet directories are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv

pytest.importorskip("vortex")

# The rows of each file, in the order of the files; `v` and `w` are Variants.
FILES = [
    {"k": ["a"], "n": pa.nulls(1)},
    {"k": ["b"], "v": ['{"s": 2}']},
    {"v": ['{"s": 3}'], "n": [30]},
    {"k": ["d"], "v": ['{"s": 4}'], "w": ["true"], "n": pa.array([40], pa.int32())},
]


@pytest.fixture(params=["auto", "struct", "variant"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for number, columns in enumerate(FILES):
        rows = {name: pv.parse_json(values) if name in "vw" else values for name, values in columns.items()}
        if "v" in rows:
            schema = {"v": "s bigint"} if number % 2 else None
            pv.write(tmp_path / f"{number}.vortex", rows, schema=schema, layout=request.param)
        else:
            pv.write(tmp_path / f"{number}.vortex", pa.table(rows))
    return tmp_path


def test_every_reader_sees_the_columns_of_all_files(directory: Path) -> None:
    table = pv.open(directory)
    assert sorted(table.schema.names) == ["k", "n", "v", "w"]
    rows = table.to_arrow(["k", "n", "v"])
    assert rows.column_names == ["k", "n", "v"]
    assert rows["k"].to_pylist() == ["a", "b", None, "d"]
    assert rows["n"].to_pylist() == [None, None, 30, 40]
    assert pv.VariantArray.from_arrow(rows, "v").to_pylist() == [None, {"s": 2}, {"s": 3}, {"s": 4}]
    assert sorted(table.to_arrow().column_names) == ["k", "n", "v", "w"]
    assert table.read("v").to_pylist() == [None, {"s": 2}, {"s": 3}, {"s": 4}]
    assert table.read("w").to_pylist() == [None, None, None, True]
    assert len(table.to_arrow(["w"])) == len(table) == 4


def test_scans_and_queries_agree(directory: Path) -> None:
    table = pv.open(directory)
    scanned = table.scan({"k": "k", "n": "n", "s": "$.s:bigint"}, column="v").to_arrow().to_pylist()
    queried = pv.sql("SELECT k, n, v:s::bigint AS s FROM t", t=table).to_pylist()
    expected = [(None, None, "a"), (2, None, "b"), (3, 30, None), (4, 40, "d")]
    for rows in (scanned, queried):
        assert sorted(((row["s"], row["n"], row["k"]) for row in rows), key=str) == sorted(expected, key=str)
    assert table.scan(["k"], "n is null").to_arrow()["k"].to_pylist() == ["a", "b"]
    assert table.scan(["k"], "n > 30").to_arrow()["k"].to_pylist() == ["d"]
    assert table.scan(["w"]).to_arrow().num_rows == 4
    assert pv.sql("SELECT sum(v:s) AS total, count(w) AS w FROM t", t=table).to_pylist() == [{"total": 9, "w": 1}]
    assert table.scan({"s": "$.s:bigint"}, "$.s > 2", column="v").explain().files_total == 4


def test_a_column_that_no_file_has_is_refused(directory: Path) -> None:
    table = pv.open(directory)
    for read in (
        lambda: table.to_arrow(["x"]),
        lambda: table.scan(["x"]),
        lambda: table.read("x"),
        lambda: table.scan({"s": "$.s"}, column="x"),
    ):
        with pytest.raises(pv.VariantError) as raised:
            read()
        assert raised.value.reason == "no-such-column"


def test_a_column_that_would_lose_values_is_refused_with_its_file(tmp_path: Path) -> None:
    for name, values in (("a", [1]), ("b", [1.5])):
        pv.write(tmp_path / f"{name}.vortex", {"n": pa.array(values), "v": pv.parse_json(["1"])})
    for read in (pv.open(tmp_path).to_arrow, lambda: pv.open(tmp_path).scan(["n"]).to_arrow()):
        with pytest.raises(pv.VariantError) as raised:
            read()
        assert raised.value.reason == "files-differ"
