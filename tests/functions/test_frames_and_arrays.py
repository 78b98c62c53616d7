"""Data frames and NumPy values where people pass them: as rows, as numbers, and by mistake as options."""

from pathlib import Path

import numpy as np
import pytest

import parquet_variant as pv

pd = pytest.importorskip("pandas")


def test_data_frames_are_rows_of_from_python() -> None:
    rows = pd.DataFrame({"id": [1, 2], "s": ["a", "b"]})
    assert pv.to_json(pv.from_python(rows)).to_pylist() == ['{"id":1,"s":"a"}', '{"id":2,"s":"b"}']
    assert pv.to_json(pv.from_python(pd.Series([{"a": 1}, None]))).to_pylist() == ['{"a":1}', None]


@pytest.mark.parametrize("value", [pd.NaT, pd.NA, None])
def test_missing_values_of_pandas_are_null_parameters(value: object) -> None:
    assert pv.sql("SELECT ? IS NULL AS x", params=[value]).to_pylist() == [{"x": True}]


def test_numbers_of_numpy_are_counts(tmp_path: Path) -> None:
    written = pv.write(tmp_path / "a.parquet", pv.parse_json(["1", "2"]), row_group_bytes=np.int64(1 << 20))
    assert written.rows == 2
    assert pv.open(tmp_path / "a.parquet").scan({"v": "$:int"}, threads=np.int32(1)).to_pylist() == [{"v": 1}, {"v": 2}]


def test_arrays_and_frames_as_options_are_refused_by_name(tmp_path: Path) -> None:
    names, frame = np.array(["a", "b"]), pd.DataFrame({"id": [1]})
    pv.write(tmp_path / "t", frame, format="delta")
    table = pv.open(tmp_path / "t")
    with pytest.raises(pv.VariantError, match="errors is array"):
        table.scan({"id": "id"}, errors=names)
    with pytest.raises(pv.VariantError, match="partition"):
        pv.write(tmp_path / "u", frame, format="delta", partition_by=names)
    with pytest.raises(pv.VariantError, match="list: write a string"):
        table.merge(frame, ["id"]).when_matched_delete().execute()
    for option in ("file_bytes", "row_group_bytes", "threads"):
        with pytest.raises(pv.VariantError, match=f"{option} is array"):
            pv.ingest([{"a": 1}], tmp_path / "v", format="delta", **{option: names})
