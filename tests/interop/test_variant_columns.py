"""`pv.write(variant_columns=)`: dicts and values of several types become Variants on request."""

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
