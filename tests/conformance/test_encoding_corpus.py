"""Apache's parquet-testing/variant: every value is decoded as its dictionary says, and re-encoded to equal meaning."""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parquet_variant import Variant
from parquet_variant.types import VariantType

# How the corpus spells a type in JSON -> the Python object that we give.
_READ = {
    "binary": base64.b64decode,
    "date": dt.date.fromisoformat,
    "time": lambda text: dt.time.fromisoformat(re.sub(r":(\d{6})$", r".\1", text)),
    "timestamp": dt.datetime.fromisoformat,
    "timestampntz": dt.datetime.fromisoformat,
    "timestamp_nanos": lambda text: np.datetime64(text.removesuffix("+00:00"), "ns"),
    "timestampntz_nanos": lambda text: np.datetime64(text, "ns"),
    "uuid": uuid.UUID,
}


def _corpus(directory: Path) -> dict[str, tuple[Variant, Any]]:
    text = (directory / "variant" / "data_dictionary.json").read_text()
    expected = json.loads(re.sub(r",\s*}", "}", text), parse_float=Decimal)
    found = {}
    for file in sorted((directory / "variant").glob("*.metadata")):
        variant = Variant(file.read_bytes(), file.with_suffix(".value").read_bytes())
        found[file.stem] = (variant, expected.get(file.stem))
    return found


def test_every_value_is_what_the_dictionary_says(parquet_test_data: Path) -> None:
    corpus = _corpus(parquet_test_data)
    assert len(corpus) >= 28
    for name, (variant, expected) in corpus.items():
        kind = name.removeprefix("primitive_")
        actual = variant.validate().to_python()
        if name == "long_string":  # not in the dictionary
            assert actual.endswith("and \U0001f926!!") and len(actual.encode()) > 63
            continue
        wanted = _READ[kind](expected) if kind in _READ else expected
        if kind == "float":
            assert np.float32(actual) == np.float32(wanted)
        elif kind == "double":
            assert actual == float(wanted)
        elif kind == "decimal16":  # the dictionary's own number was rounded to a double
            assert actual == Decimal("12345678912345678.90")
        else:
            assert actual == wanted, name


def test_all_types_are_in_the_corpus(parquet_test_data: Path) -> None:
    assert {variant.type for variant, _ in _corpus(parquet_test_data).values()} == set(VariantType)


@pytest.mark.parametrize("canonical_metadata", [b"\x01\x00\x00", b"\x11\x00\x00"])
def test_re_encoded_values_mean_the_same(parquet_test_data: Path, canonical_metadata: bytes) -> None:
    for name, (variant, _) in _corpus(parquet_test_data).items():
        again = Variant.from_python([variant]).validate()[0]
        assert again == variant, name
        assert again.type == variant.type, name
        assert again.to_json() == variant.to_json(), name
        if variant.type not in (VariantType.OBJECT, VariantType.ARRAY):
            assert Variant.from_python(variant) == Variant(canonical_metadata, variant.value), name
