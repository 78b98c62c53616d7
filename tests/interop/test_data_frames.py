"""Arrays in pandas, polars, DuckDB and NumPy, and their frames as rows to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import parquet_variant as pv

TEXTS = ['{"a": 1, "b": "x"}', None, '{"a": "q"}', "null", "[1, 2.5]"]


@pytest.fixture(params=[None, "a bigint, b string"])
def events(request: pytest.FixtureRequest) -> pv.VariantArray:
    """The same rows, unshredded and shredded."""
    array = pv.parse_json(TEXTS)
    return array if request.param is None else pv.shred_variant(array, request.param)


def test_a_series_has_the_dtype_and_comes_back(events: pv.VariantArray) -> None:
    series = events.to_pandas("v")
    assert (str(series.dtype), series.name, series.isna().tolist()) == (
        "variant",
        "v",
        [False, True, False, False, False],
    )
    assert pv.VariantArray.from_pandas(series).equals(events)
    assert pv.VariantArray.from_pandas(pd.Series([{"a": 1}, None, "x"])).to_pylist() == [{"a": 1}, None, "x"]


def test_a_series_is_cut_taken_joined_and_aligned_as_others_are(events: pv.VariantArray) -> None:
    series = events.to_pandas()
    wanted = [None if value is None else value for value in events]
    assert [None if v is pd.NA else v for v in series.iloc[::-2]] == wanted[::-2]
    assert [None if v is pd.NA else v for v in series[series.notna()]] == [v for v in wanted if v is not None]
    assert len(pd.concat([series, series.iloc[:2]], ignore_index=True)) == 7
    assert series.reindex([4, 9]).isna().tolist() == [False, True]
    frame = pd.DataFrame({"id": range(5), "v": series})
    assert frame.merge(pd.DataFrame({"id": [2]}), on="id")["v"][0] == events[2]
    assert frame.sort_values("id", ascending=False)["v"].iloc[0] == events[4]
    assert (series == series).tolist() == [True, pd.NA, True, True, True]
    assert series.dropna().shape == (4,)
    with pytest.raises(IndexError):
        series.array[7]
    assert "1" in repr(frame)


def test_the_accessor_answers_as_the_functions(events: pv.VariantArray) -> None:
    series = events.to_pandas("v")
    series.index = list("abcde")
    found = series.variant.get("$.a", "bigint", errors="null")
    assert (found.index.tolist(), found.name, str(found.dtype)) == (list("abcde"), "v", "int64[pyarrow]")
    assert found.fillna(-1).tolist() == [1, -1, -1, -1, -1]
    with pytest.raises(pv.CastError):
        series.variant.get("$.a", "bigint")
    with pytest.raises(pv.SchemaError):
        series.variant.get("$.a", "bigint", errors="ignore")
    assert series.variant.to_json()["e"] == "[1,2.5]"
    assert series.variant.schema() == pv.schema_of_variant_agg(events)
    with pytest.raises(AttributeError, match="dtype variant"):
        pd.Series([1]).variant.schema()


def test_polars_namespaces(events: pv.VariantArray) -> None:
    frame = pl.DataFrame({"id": range(5)}).with_columns(events.to_polars("v"))
    query = frame.lazy().select(
        pl.col("v").variant.get("$.a", "bigint", errors="null").alias("a"),
        pl.col("v").variant.get("$.a").alias("raw"),
        pl.col("v").variant.to_json().alias("json"),
    )
    found = query.collect()
    assert found["a"].to_list() == [1, None, None, None, None]
    assert pv.to_json(pv.VariantArray.from_arrow(found["raw"])).to_pylist() == ["1", None, '"q"', None, None]
    assert found["json"].to_list()[4] == "[1,2.5]"
    assert frame["v"].variant.type().to_list()[0] == "object"
    assert pv.VariantArray.from_arrow(frame["v"]).equals(events)


def test_duckdb_takes_variants(events: pv.VariantArray) -> None:
    connection = duckdb.connect()
    pv.duckdb.register(connection, events=events[:3])
    assert connection.sql("SELECT typeof(v) FROM events LIMIT 1").fetchall() == [("VARIANT",)]
    assert connection.sql("SELECT v.a::varchar FROM events WHERE v IS NOT NULL").fetchall() == [("1",), ("q",)]


def test_numpy_gets_objects(events: pv.VariantArray) -> None:
    found = np.asarray(events)
    assert (found.dtype, found.shape, found[1]) == (object, (5,), None)
    assert found[0] == events[0]


@pytest.mark.parametrize("index", [[2, 0], [-1], np.array([True, False, True, False, False]), [], pa.array([1, 1])])
def test_rows_by_indices_and_masks(events: pv.VariantArray, index: Any) -> None:
    picked = np.asarray(index)
    rows = np.flatnonzero(picked) if picked.dtype == bool else picked
    assert events[index].to_pylist() == [events.to_pylist()[int(row)] for row in rows]


@pytest.mark.parametrize("index", [[5], [-6], [True], ["a"], [1.5], [None]])
def test_rows_that_are_not_there(events: pv.VariantArray, index: Any) -> None:
    with pytest.raises(IndexError):
        events[index]


def test_a_field_by_name(events: pv.VariantArray) -> None:
    assert events["a"].to_pylist() == [1, None, "q", None, None]
    assert events["none"].null_count == 5


def test_the_repr_of_notebooks_escapes_texts() -> None:
    html = pv.parse_json(['{"a": "<script>"}'])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def frames(events: pv.VariantArray) -> dict[str, Any]:
    return {
        "pandas": pd.DataFrame({"id": range(5), "v": events.to_pandas()}),
        "polars": pl.DataFrame({"id": range(5)}).with_columns(events.to_polars("v")),
        "columns": {"id": list(range(5)), "v": events},
        "arrow": pa.table(pl.DataFrame({"id": range(5)}).with_columns(events.to_polars("v"))),
    }


@pytest.mark.parametrize("kind", ["pandas", "polars", "columns", "arrow"])
def test_data_frames_are_rows_everywhere(events: pv.VariantArray, kind: str, tmp_path: Path) -> None:
    rows = frames(events)[kind]
    pv.write(tmp_path / "a.parquet", rows)
    assert pv.open(tmp_path / "a.parquet").read().equals(events)
    assert pv.open(tmp_path / "a.parquet").to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 4]
    pv.write(str(tmp_path / "delta"), rows, format="delta")
    pv.open(str(tmp_path / "delta")).append(rows)
    assert len(pv.open(str(tmp_path / "delta")).read()) == 10


def test_a_relation_of_duckdb_is_rows(tmp_path: Path) -> None:
    relation = duckdb.connect().sql("SELECT 1 AS id, {'a': 1}::VARIANT AS v")
    pv.write(tmp_path / "a.parquet", relation)
    assert pv.open(tmp_path / "a.parquet").read().to_pylist() == [{"a": 1}]


@pytest.mark.parametrize("data", [5, "text", [1, 2], {"a": object()}, {}, {"a": [1], "b": [1, 2]}])
def test_data_that_is_not_rows_is_refused(data: Any, tmp_path: Path) -> None:
    with pytest.raises(pv.VariantError):
        pv.write(tmp_path / "a.parquet", data)


def test_objects_of_a_frame_that_have_no_arrow_type_are_reported(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    for column in ([1, "a"], [1j, 2j]):
        with pytest.raises(pv.SchemaError, match="cannot convert column 'o'"):
            pv.write(tmp_path / "a.parquet", pd.DataFrame({"o": column}))


def test_json_files_are_read_into_an_array(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n\n{"a": 2}\n')
    (tmp_path / "b.json").write_text('[{"a": 3}, {"a": 4}]')
    assert pv.read_json(tmp_path)["a"].to_pylist() == [1, 2, 3, 4]
    assert pv.read_json([tmp_path / "a.ndjson"], schema="a bigint").is_shredded
    (tmp_path / "c.ndjson").write_text("1\n{\n")
    with pytest.raises(pv.JsonError, match="line 2"):
        pv.read_json(tmp_path / "c.ndjson")
    assert pv.read_json(tmp_path / "c.ndjson", on_error="null").to_pylist() == [1, None]
    with pytest.raises(pv.VariantFileError):
        pv.read_json(tmp_path / "none")


@pytest.mark.parametrize("rows", [[{"a": 1}, None], [[1, 2], [3, 4]], ["x"]])
def test_a_series_of_variants_can_be_shown_and_made_a_numpy_array(rows):
    series = pv.from_python(rows).to_pandas()
    assert series.to_numpy().shape == (len(rows),)
    assert len(repr(series).splitlines()) == len(rows) + 1


def test_a_column_that_pyarrow_made_of_an_array_is_written_as_a_variant(
    events: pv.VariantArray, tmp_path: Path
) -> None:
    """pyarrow keeps the storage of an array that it is given, and not the name of its type."""
    rows = pa.table({"id": range(len(events)), "v": events})
    pv.write(tmp_path / "a.parquet", rows)
    assert "VARIANT annotation in 1 file" in str(pv.open(tmp_path / "a.parquet").inspect())
    pv.write(tmp_path / "delta", rows, format="delta")
    pv.open(tmp_path / "delta").append([rows, rows.to_batches()[0]])
    pv.write(tmp_path / "a.vortex", rows)
    for source, times in ((tmp_path / "a.parquet", 1), (tmp_path / "delta", 3), (tmp_path / "a.vortex", 1)):
        found = pv.sql("SELECT v:a::string AS a FROM t", t=source)
        assert found.to_arrow()["a"].to_pylist() == ["1", None, "q", None, None] * times


def test_rows_of_a_pandas_series_are_set_and_filled() -> None:
    series = pv.from_python([{"a": 1}, [1], None]).to_pandas("v")
    earlier = series.copy()
    series[1] = pv.Variant.from_python("new")
    series.loc[0] = None
    assert pv.VariantArray.from_pandas(series).to_pylist() == [None, "new", None]
    series.iloc[0:2] = [1, {"b": 2}]
    assert pv.VariantArray.from_pandas(series.fillna("none")).to_pylist() == [1, {"b": 2}, "none"]
    assert pv.VariantArray.from_pandas(series.where([True, False, True])).to_pylist() == [1, None, None]
    assert pv.VariantArray.from_pandas(series.reindex([5, 0], fill_value=7)).to_pylist() == [7, 1]
    assert pv.VariantArray.from_pandas(earlier).to_pylist() == [{"a": 1}, [1], None]


def test_rows_of_a_pandas_series_that_are_not_there_are_an_index_error() -> None:
    series = pv.from_python([1, 2, 3]).to_pandas()
    for rows in ([99], [0, -4], [3]):
        with pytest.raises(IndexError):
            series.array[rows]
        with pytest.raises(IndexError):
            series.array.take(rows)
    assert pv.VariantArray.from_pandas(series.array[[-1, 0]]).to_pylist() == [3, 1]


def test_a_pandas_series_is_grouped_by_its_values() -> None:
    rows = pv.parse_json(['{"a": 1}', "2", None, '{"a": 1.0}'])
    frame = pd.DataFrame({"v": rows.to_pandas(), "n": [1, 2, 3, 4]})
    sums = frame.groupby("v", sort=False)["n"].sum()
    assert sums.tolist() == [5, 2]
    assert [value.to_python() for value in sums.index] == [{"a": 1}, 2]


def test_what_pandas_takes_for_missing_is_missing() -> None:
    series = pd.Series([None, float("nan"), pd.NaT, pd.NA, [None], 0], dtype="variant")
    assert series.isna().tolist() == [True] * 4 + [False] * 2
