"""Lists of dicts, one per row, as input of `Table.append`, `overwrite` and `merge`, in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.arrays.chunked_array import variant_table
from parquet_variant.tables.row_input import rows_by_column

ROWS = [{"id": 1, "v": {"a": 1}}, {"id": 2, "v": [True]}, {"id": 3}]


@pytest.fixture(params=["delta", "iceberg", "parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> pv.Table:
    if request.param == "iceberg":
        pytest.importorskip("fastavro", reason="fastavro is not installed")
    columns = {"id": pa.array([0]), "v": pv.parse_json(["0"])}
    if request.param == "parquet":
        (tmp_path / "table").mkdir()
        pv.write(tmp_path / "table" / "a.parquet", columns)
    else:
        pv.write(tmp_path / "table", columns, format=request.param)
    return pv.open(tmp_path / "table")


def rows(table: pv.Table) -> list[dict[str, object]]:
    return sorted(pv.open(table.source).scan().to_pylist(), key=lambda row: row["id"])


def test_the_keys_are_columns(table: pv.Table) -> None:
    table.append(ROWS)
    expected = [{"id": 0, "v": 0}, *ROWS[:2], {"id": 3, "v": None}]
    assert rows(table) == expected


def test_overwrites_and_merges_take_them_too(table: pv.Table) -> None:
    if table.format != "parquet":
        table.overwrite(ROWS[:1])
        merge = pv.open(table.source).merge(ROWS, "target.id = source.id")
        merge.when_not_matched_insert_all().execute()
        assert rows(table) == [*ROWS[:2], {"id": 3, "v": None}]


IDS = [1, 2]
VALUES = [{"a": 5, "s": "x"}, {"a": 6, "s": "y"}]
MIXED = [{"a": 5}, [1, {"c": None}]]
FORMS = {
    "pandas": (pd.DataFrame({"id": IDS, "v": VALUES}), VALUES),
    "mixed values of pandas": (pd.DataFrame({"id": IDS, "v": MIXED}), MIXED),
    "polars": (pl.DataFrame({"id": IDS, "v": VALUES}), VALUES),
    "lazy polars": (pl.LazyFrame({"id": IDS, "v": VALUES}), VALUES),
    "Arrow structs": (pa.table({"id": IDS, "v": VALUES}), VALUES),
    "Arrow lists": (pa.table({"id": IDS, "v": [[1], []]}), [[1], []]),
    "columns by name": ({"id": IDS, "v": MIXED}, MIXED),
}


@pytest.mark.parametrize("form", FORMS)
def test_dicts_lists_and_structs_of_a_variant_column_are_variants(table: pv.Table, form: str) -> None:
    data, values = FORMS[form]
    expected = [{"id": number, "v": value} for number, value in zip(IDS, values, strict=True)]
    table.append(data)
    assert rows(table) == [{"id": 0, "v": 0}, *expected]
    pv.open(table.source).overwrite(data)
    assert rows(table) == expected
    if table.format != "parquet":
        merge = pv.open(table.source).merge(data, "id")
        result = merge.when_matched_update_all().when_not_matched_insert_all().execute()
        assert (result.rows_updated, rows(table)) == (2, expected)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("is_named", [False, True])
def test_write_takes_the_dicts_of_an_existing_table_too(table: pv.Table, mode: Any, is_named: bool) -> None:
    if table.format != "parquet":
        format: Any = table.format if is_named else None
        pv.write(table.source, pd.DataFrame({"id": [1], "v": [{"a": [1]}]}), mode=mode, format=format)
        assert rows(table) == [{"id": 0, "v": 0}, {"id": 1, "v": {"a": [1]}}][mode == "overwrite" :]


def test_dicts_of_ordinary_columns_are_structs_and_an_empty_directory_is_refused(tmp_path: Path) -> None:
    data = pd.DataFrame({"id": IDS, "s": VALUES})
    pv.write(tmp_path / "table", data, format="delta")
    pv.open(tmp_path / "table").append(data)
    assert pv.open(tmp_path / "table").to_arrow().column("s").to_pylist() == VALUES * 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(pv.VariantError, match="empty has no Parquet files"):
        pv.open(tmp_path / "empty").append(data)


def test_the_schema_of_the_table_is_not_read_for_columns_that_need_no_conversion(table: pv.Table) -> None:
    def refuse() -> pa.Schema:
        raise AssertionError("the schema is read")

    columns = {"id": pa.array(IDS), "v": pv.parse_json(["1", '{"a": 1}'])}
    for data in (columns, variant_table(columns), pd.DataFrame({"id": IDS, "note": ["x", None]})):
        assert len(rows_by_column(data, refuse)) == 2


def test_a_path_in_the_place_of_a_column_is_named_with_its_other_form(table: pv.Table) -> None:
    with pytest.raises(pv.VariantError, match=r"no column '?v:a'?: .*, or use a path, such as \$\.a"):
        table.scan({"a": "v:a"}).to_arrow()


def test_wrong_columns_and_values_are_errors(table: pv.Table) -> None:
    with pytest.raises(pv.VariantError, match="column 'id', which has the type int64: Could not convert 'x'"):
        table.append([{"id": "x"}])
    with pytest.raises(pv.VariantError, match="nope"):
        table.append([{"id": 1, "v": 1, "nope": 1}])
    assert len(rows(table)) == 1


def test_a_table_with_one_variant_column_takes_values(tmp_path: Path) -> None:
    table = pv.create(tmp_path / "t", "v variant", format="delta")
    table.append([{"a": 1}, {"b": [1]}])
    table.append([{"v": {"a": 2}}, {"v": None}])  # the keys are the columns
    table.append([{"tags": [1, 2]}])
    assert [row["v"] for row in pv.open(tmp_path / "t").scan().to_pylist()] == [
        {"a": 1}, {"b": [1]}, {"a": 2}, None, {"tags": [1, 2]},
    ]  # fmt: skip


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_rows_of_lists_are_rows_and_not_batches(tmp_path: Path, format: Literal["delta", "iceberg"]) -> None:
    pytest.importorskip("fastavro", reason="fastavro is not installed")
    rows = [{"tags": ["a", "b"]}, {"tags": []}, {"tags": [1, [2]]}]
    path = tmp_path / "values"
    for row in rows:
        pv.write(path, [row], format=format, mode="append")
    assert sorted(pv.to_json(pv.open(path).read()).to_pylist()) == [
        '{"tags":["a","b"]}',
        '{"tags":[1,[2]]}',
        '{"tags":[]}',
    ]
    columns = {"v": pv.parse_json(["1"]), "w": pv.parse_json(["2"])}
    pv.write(tmp_path / "columns", columns, format=format)
    pv.open(tmp_path / "columns").append([{"v": [1, 2], "w": (3,)}])
    found = [pv.to_json(pv.open(tmp_path / "columns").read(column=name)).to_pylist() for name in "vw"]
    assert list(map(sorted, found)) == [["1", "[1,2]"], ["2", "[3]"]]


def test_batches_in_a_list_have_arrays(tmp_path: Path) -> None:
    for number, array in enumerate(
        (pa.array([1, 2]), np.array([1, 2]), pa.chunked_array([[1], [2]]), pl.Series([1, 2]))
    ):
        pv.write(tmp_path / str(number), [{"n": array}, {"n": array}], format="delta")
        assert pv.open(tmp_path / str(number)).to_arrow().column("n").to_pylist() == [1, 2, 1, 2]


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_merge_fills_columns_from_keys_of_json(table_format: Any, tmp_path: Path) -> None:
    rows: list[Any] = [{"id": 2, "at": "2026-01-02T00:00:00Z", "s": "y"}, {"id": 3, "at": "no time", "s": "z"}]
    file = tmp_path / "news.ndjson"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for number, source in enumerate([file, str(file), pv.open(file), rows]):
        at = pa.array(["2026-01-01T00:00:00Z"] * 2).cast(pa.timestamp("us", "UTC"))
        old = {"id": [1, 2], "at": at, "v": pv.from_python([{"s": "x"}] * 2)}
        pv.write(tmp_path / f"{number}", old, format=table_format)
        merge = pv.open(tmp_path / f"{number}").merge(source, "id", columns=["id", "at"])
        result = merge.when_matched_update_all("source.at > target.at").when_not_matched_insert_all().execute()
        assert (result.rows_updated, result.rows_inserted) == (1, 1)
        merged = pv.sql("SELECT id, day(at) AS day, v FROM t ORDER BY id", t=tmp_path / f"{number}").to_pylist()
        assert [(row["id"], row["day"], row["v"]) for row in merged] == [
            (1, 1, '{"s":"x"}'), (2, 2, '{"s":"y"}'), (3, None, '{"at":"no time","s":"z"}'),
        ]  # fmt: skip
        with pytest.raises(pv.VariantError, match="did you mean id"):
            pv.open(tmp_path / f"{number}").merge(source, "id", columns="Id")
        with pytest.raises(pv.VariantError):
            pv.open(tmp_path / f"{number}").merge(pv.open(tmp_path / f"{number}"), "id", columns="id")


def test_rows_with_another_column_or_json_text_name_the_remedy(table: pv.Table) -> None:
    remedy = "; leave it out, or (add it|use Delta or Iceberg) with schema_mode='merge'"
    with pytest.raises(pv.VariantError, match=rf"has no column '?extra'?: its columns are id, v{remedy}"):
        table.append([{"id": 1, "v": {}, "extra": 2}])
    answer = pv.sql("SELECT id, v FROM t", t=table)
    with pytest.raises(pv.VariantError, match="use parse_json or cast_to_variant"):
        table.append(answer.to_arrow())
    table.append(answer)  # with its Variants
    table.append(pa.table({"id": answer.to_arrow()["id"], "v": pv.parse_json(answer.to_arrow()["v"]).to_arrow()}))
