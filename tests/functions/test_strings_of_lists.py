"""Lists of strings become columns without pyarrow's conversion, which imports pandas."""

import sys

import numpy as np
import pyarrow as pa
import pytest

from parquet_variant.ops.columns.arguments import as_arrow


@pytest.mark.parametrize(
    "values",
    [
        [],
        [""],
        ["a"],
        ["a", "", "bcd"],
        ["é", "a"],
        ["\x00", "日本"],
        [None],
        ["a", None],
        [None, "é"],
        ["a" * 300] * 9,
    ],
)
def test_a_list_of_strings_is_the_column_that_pyarrow_makes(values, monkeypatch):
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    made = as_arrow(values, pa.string())
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))


@pytest.mark.parametrize("values", [[1], ["a", 1], [None, b"a", {}], [np.array([1, 2]), "a"], ["a", ["b"]]])
def test_a_list_of_other_values_is_refused_as_by_pyarrow(values, monkeypatch):
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, TypeError)):
        as_arrow(values, pa.string())
