"""`pv.write(variant_columns=)`: dicts and values of several types become Variants on request."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import parquet_variant as pv


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
def test_columns_of_dicts_and_mixed_values_become_variants_on_request(tmp_path, format):
    frame = pd.DataFrame({"id": [1, 2, 3], "attrs": [{"a": 1}, {"b": "x"}, None], "mixed": [1, "x", [1, {"c": None}]]})
    with pytest.raises(pv.VariantError, match="variant_columns"):
        pv.write(tmp_path / "refused", frame, format=format)
    dest = tmp_path / ("t.parquet" if format == "parquet" else "t")
    pv.write(dest, frame, format=format, variant_columns=["attrs", "mixed"])
    table = pv.open(dest)
    assert table.schema.names == ["id", "attrs", "mixed"]
    assert pv.open(dest, column="attrs").read().to_pylist() == [{"a": 1}, {"b": "x"}, None]
    assert pv.open(dest, column="mixed").read().to_pylist() == [1, "x", [1, {"c": None}]]
    with pytest.raises(pv.VariantError, match="does not exist"):
        pv.write(tmp_path / "missing", frame, format=format, variant_columns="attr")
    rows = pa.table({"id": [1], "s": [{"a": [1]}]})
    pv.write(tmp_path / "s.parquet", rows, variant_columns="s")
    assert pv.open(tmp_path / "s.parquet").read().to_pylist() == [{"a": [1]}]


@pytest.mark.parametrize("values", [[{"a": 1}, {"b": "x"}, None], [{"a": 5}, 7, [1, {"c": None}]], ["x", None, 1.5]])
@pytest.mark.parametrize("form", [list, tuple, lambda values: np.array([*values, None], object)[:-1], pd.Series])
def test_python_values_in_a_mapping_become_variants_without_keys_of_other_rows(tmp_path, form, values):
    pv.write(tmp_path / "a.parquet", {"id": [1, 2, 3], "attrs": form(values)}, variant_columns="attrs")
    assert pv.open(tmp_path / "a.parquet").read().to_pylist() == values


def test_the_error_for_a_list_of_several_types_names_the_argument(tmp_path):
    with pytest.raises(pv.SchemaError, match=r"column 'attrs' .* variant_columns=\['attrs'\]"):
        pv.write(tmp_path / "a.parquet", {"attrs": [{"a": 1}, 7]})


@pytest.mark.parametrize("names", [["a", "a"], ["0", 0]])
def test_equal_names_in_a_data_frame_are_an_error(tmp_path, names):
    with pytest.raises(pv.VariantError, match="duplicate column names"):
        pv.write(tmp_path / "a.parquet", pd.DataFrame([[1, 2]], columns=names))


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg", "vortex"])
def test_variants_inside_other_types_are_written_as_variants_and_are_objects_in_rows(tmp_path, format):
    # pyarrow drops the marks of the arrays.
    values = pa.array(pv.parse_json(['{"a": 1}', "[1, {}]", None, '"x"']))
    keys = pa.array(["k", "l", "m", "n"])
    offsets = pa.array([0, 2, None, 4], pa.int32())
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "s": pa.StructArray.from_arrays(
                [values[:3], pa.array([1, 2, 3])], ["v", "n"], mask=pa.array([False, True, False])
            ),
            "l": pa.ListArray.from_arrays(offsets, values),
            "m": pa.MapArray.from_arrays(offsets, keys, values),
        }
    )
    expected = [
        {"id": 1, "s": {"v": {"a": 1}, "n": 1}, "l": [{"a": 1}, [1, {}]], "m": [("k", {"a": 1}), ("l", [1, {}])]},
        {"id": 2, "s": None, "l": [None, "x"], "m": [("m", None), ("n", "x")]},
        {"id": 3, "s": {"v": None, "n": 3}, "l": None, "m": None},
    ]
    pv.write(tmp_path / "t", rows, format=format)
    assert pv.open(tmp_path / "t").scan().to_pylist() == expected
    assert pv.open(tmp_path / "t").scan(where="id > 1").to_pylist() == expected[1:]
    query = "SELECT id, s.v:a::int AS a, l[2]::string AS x FROM t ORDER BY id"
    found = pv.sql(query, t=tmp_path / "t").to_pylist()
    assert found == [{"id": 1, "a": 1, "x": "[1,{}]"}, {"id": 2, "a": None, "x": "x"}, {"id": 3, "a": None, "x": None}]
