"""Arrow columns that say how values are stored (run ends, views, dictionaries) reach every writer as plain ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv

TEXTS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3]), pa.array(["x", "y"]))
STRUCTS = pa.struct([("a", pa.string_view())])
COLUMNS = {
    "runs": TEXTS,
    "runs of numbers": pa.RunEndEncodedArray.from_arrays(pa.array([1, 4], pa.int16()), pa.array([1, None]))[1:],
    "runs of a dictionary": pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 3]), pa.array(["x", "y"]).dictionary_encode()
    ),
    "runs in structs": pa.StructArray.from_arrays([TEXTS], ["a"]),
    "runs in lists": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), TEXTS),
    "list views of structs": pa.array([[{"a": "x"}], None, [{"a": None}]], pa.list_view(STRUCTS)),
    "large list views": pa.array([["x"], None, []], pa.large_list_view(pa.string_view())),
    "bytes in structs": pa.array([{"a": b"x"}, None, {"a": None}], pa.struct([("a", pa.binary_view())])),
    "maps": pa.array([[("k", [1])], None, []], pa.map_(pa.string(), pa.list_view(pa.int64()))),
    "a slice of maps": pa.array(
        [[("z", 0)], [("k", 1), ("l", 2)], None, [("m", 3)]], pa.map_(pa.string_view(), pa.int64())
    )[1:],
    "slices of maps in lists": pa.array(
        [[[("z", 0)]], [[("k", 1)], None], None, [[("m", 3)]]], pa.list_(pa.map_(pa.string_view(), pa.int64()))
    )[1:],
    "dictionary of views": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None], pa.int8()), pa.array(["x", "y"], pa.string_view())
    ),
    "dictionary of nulls": pa.nulls(3).dictionary_encode(),
    "chunks of dictionaries with a null entry": pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays([0], pa.array(["x"])),
            pa.DictionaryArray.from_arrays([0, 1], pa.array(["y", None])),
        ]
    ),
    "lists of size zero": pa.array([[], None, [], []], pa.list_(pa.string(), 0))[1:],
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("writer", ["parquet", "delta", "vortex"])
def test_they_are_written(writer: str, name: str, tmp_path: Path) -> None:
    path, rows = tmp_path / "t", {"x": COLUMNS[name], "v": pv.parse_json(['{"a":1}', None, "[2]"])}
    if writer == "vortex":
        pytest.importorskip("vortex")
    pv.write(path, rows, format=writer)
    found = pv.open(path, format=writer).to_arrow()
    assert found["x"].to_pylist() == COLUMNS[name].to_pylist()


@pytest.mark.parametrize("kind", [pa.list_(pa.null()), pa.list_(pa.null(), 2)], ids=str)
def test_lists_of_nulls_are_read(kind: pa.DataType, tmp_path: Path) -> None:
    pytest.importorskip("vortex")
    rows = {"x": pa.array([[None, None], None, [None, None]], kind), "v": pv.parse_json(["1", None, "2"])}
    pv.write(tmp_path / "t", rows)
    pv.write(tmp_path / "t.vortex", rows)
    for found in (pv.open(tmp_path / "t").to_arrow(), pa.table(pv.open(tmp_path / "t.vortex").to_arrow())):
        assert found["x"].to_pylist() == rows["x"].to_pylist()


@pytest.mark.parametrize("writer", ["parquet", "delta"])
@pytest.mark.parametrize("kind", [pa.month_day_nano_interval(), pa.dense_union([pa.field("a", pa.int8())])])
def test_types_that_no_file_has_are_reported(writer: str, kind: pa.DataType, tmp_path: Path) -> None:
    rows = {"x": pa.nulls(1, kind), "v": pv.parse_json(["1"])}
    with pytest.raises(pv.VariantError) as caught:
        pv.write(tmp_path / "t", rows, format=writer)
    assert caught.value.reason == "unsupported-type"


def test_a_decimal_too_wide_for_delta_is_reported(tmp_path: Path) -> None:
    rows = {"x": pa.nulls(1, pa.decimal256(60)), "v": pv.parse_json(["1"])}
    with pytest.raises(pv.VariantError) as caught:
        pv.write(tmp_path / "t", rows, format="delta")
    assert caught.value.reason == "unsupported-type"
    pv.write(tmp_path / "t", rows)
