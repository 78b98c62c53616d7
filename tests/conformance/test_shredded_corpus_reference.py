"""The parquet-testing corpus of shredded variants, read by pyarrow and put together by the reference."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import ConflictError, SchemaError, VariantError
from parquet_variant.layouts import draft_object, draft_paths, final
from parquet_variant.layouts.rows import array_of_rows, rows_of_array
from parquet_variant.schema.draft_object_storage import object_storage_type
from parquet_variant.schema.draft_paths_storage import paths_storage_type
from parquet_variant.schema.shredding_schema import ShreddingSchema

_ROOT = Path(__file__).resolve().parents[2]
_CORPUS = Path(os.environ.get("PARQUET_TEST_DATA") or _ROOT / "../shared/parquet-testing") / "shredded_variant"
_CASES = json.loads((_CORPUS / "cases.json").read_text()) if (_CORPUS / "cases.json").is_file() else []
_READABLE = [case for case in _CASES if "error_message" not in case and "parquet_file" in case]
_REASONS = {40: "both-set", 42: "both-set", 127: "unsupported-type", 128: "non-object-value"}

pytestmark = pytest.mark.skipif(not _CASES, reason=f"no corpus in {_CORPUS}: set PARQUET_TEST_DATA")


def _name(case: dict[str, Any]) -> str:
    return f"{case['case_number']}-{case['test']}"


def _read(case: dict[str, Any]) -> tuple[Any, list[Any]]:
    column = pq.read_table(_CORPUS / case["parquet_file"])["var"]
    return column.type, rows_of_array(column)


def _expected(case: dict[str, Any]) -> list[Variant | None]:
    names = case.get("variant_files") or [case["variant_file"]]
    return [name and Variant.from_bytes((_CORPUS / name).read_bytes()) for name in names]


@pytest.mark.parametrize("case", _READABLE, ids=_name)
def test_each_readable_case_gives_the_expected_values(case: dict[str, Any]) -> None:
    storage, rows = _read(case)

    assert [final.reconstruct(row, storage) for row in rows] == _expected(case)


@pytest.mark.parametrize("case", [case for case in _CASES if "error_message" in case], ids=_name)
def test_each_forbidden_case_fails_with_its_reason(case: dict[str, Any]) -> None:
    storage, rows = _read(case)

    with pytest.raises((ConflictError, SchemaError)) as caught:
        [final.reconstruct(row, storage) for row in rows]

    assert caught.value.reason == _REASONS[case["case_number"]]
    assert caught.value.path is not None


@pytest.mark.parametrize("case", [case for case in _CASES if case["case_number"] in (40, 42, 128)], ids=_name)
def test_each_conflict_can_be_read_by_its_typed_columns(case: dict[str, Any]) -> None:
    storage, rows = _read(case)

    for row in rows:
        value = final.reconstruct(row, storage, on_conflict="typed")
        assert value == final.reconstruct(_without_conflict(row), storage)


def _without_conflict(group: Any) -> Any:
    """The row as its writer should have made it: no `value` where a `typed_value` is."""
    if isinstance(group, list):
        return [_without_conflict(one) for one in group]
    if not isinstance(group, dict):
        return group
    below = {name: _without_conflict(one) for name, one in group.items()}
    return below | {"value": None} if below.get("typed_value") is not None and "value" in below else below


@pytest.mark.parametrize("case", _READABLE, ids=_name)
def test_each_readable_case_survives_both_drafts(case: dict[str, Any]) -> None:
    schema = ShreddingSchema.from_storage(_read(case)[0])
    expected = _expected(case)
    chain = ((draft_paths, paths_storage_type(schema)), (draft_object, object_storage_type(schema)))

    for layout, storage in chain:
        rows = rows_of_array(array_of_rows([layout.shred_value(value, schema) for value in expected], storage))
        assert [layout.reconstruct(row, storage) for row in rows] == expected


def test_the_corpus_was_not_cut() -> None:
    assert len(_READABLE) >= 60
    assert {case["case_number"] for case in _CASES if "error_message" in case} == {*_REASONS}
    assert issubclass(ConflictError, VariantError)
