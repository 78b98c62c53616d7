"""Hypothesis strategies for tests of libraries that read or write Variants.

Owns generated values, JSON texts, layouts and malformed bytes. Hypothesis is imported on first use. Leaves the corpora
to the test suite.

Examples
--------
>>> from hypothesis import given
>>> from parquet_variant import testing
>>> @given(testing.variants())
... def test_round_trip(variant):
...     assert type(variant).from_bytes(variant.to_bytes()) == variant
>>> test_round_trip()
"""

from parquet_variant.testing.strategies import (
    json_texts,
    lay_out,
    mutated_variants,
    python_values,
    shredding_schemas,
    variants,
)

__all__ = ["json_texts", "lay_out", "mutated_variants", "python_values", "shredding_schemas", "variants"]
