"""The parquet-testing corpus of shredded variants, read by pyarrow and put together by the reference."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

from draft_schemas import object_storage_type, paths_storage_type
from parquet_variant.errors import ConflictError, SchemaError, VariantError
from parquet_variant.layouts.reference.rows import array_of_rows, draft_object, draft_paths, final, rows_of_array
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from shredded_corpus import CASES, CONTRADICTORY, MISSING, READABLE, REASONS, REFUSED, Case, expected, path

pytestmark = pytest.mark.skipif(not CASES, reason=MISSING)


def _name(case: Case) -> str:
    return f"{case['case_number']}-{case['test']}"


def _read(case: Case) -> tuple[Any, list[Any]]:
    column = pq.read_table(path(case))["var"]
    return column.type, rows_of_array(column)


@pytest.mark.parametrize("case", READABLE, ids=_name)
def test_each_readable_case_gives_the_expected_values(case: Case) -> None:
    storage, rows = _read(case)

    assert [final.reconstruct(row, storage) for row in rows] == expected(case)


@pytest.mark.parametrize("case", REFUSED, ids=_name)
def test_each_forbidden_case_fails_with_its_reason(case: Case) -> None:
    storage, rows = _read(case)

    with pytest.raises((ConflictError, SchemaError)) as caught:
        [final.reconstruct(row, storage) for row in rows]

    assert caught.value.reason == REASONS[case["case_number"]]
    assert caught.value.path is not None


@pytest.mark.parametrize("case", [case for case in CASES if case["case_number"] in (40, 42, 128)], ids=_name)
def test_each_conflict_can_be_read_by_its_typed_columns(case: Case) -> None:
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


@pytest.mark.parametrize("case", CONTRADICTORY, ids=_name)
def test_a_field_in_both_columns_is_an_error_or_by_request_the_shredded_one(case: Case) -> None:
    storage, rows = _read(case)

    with pytest.raises(ConflictError) as caught:
        [final.reconstruct(row, storage) for row in rows]

    assert caught.value.reason == "shredded-field-in-value"
    assert [final.reconstruct(row, storage, on_conflict="typed") for row in rows] == expected(case)


@pytest.mark.parametrize("case", READABLE, ids=_name)
def test_each_readable_case_survives_both_drafts(case: Case) -> None:
    schema = ShreddingSchema.from_storage(_read(case)[0])
    values = expected(case)
    chain = (
        (draft_paths, paths_storage_type(schema.type_tree())),
        (draft_object, object_storage_type(schema.type_tree())),
    )

    for layout, storage in chain:
        rows = rows_of_array(array_of_rows([layout.shred_value(value, schema) for value in values], storage))
        assert [layout.reconstruct(row, storage) for row in rows] == values


def test_the_corpus_was_not_cut() -> None:
    assert len(READABLE) >= 60
    assert {40, 42, 127, 128} <= {case["case_number"] for case in REFUSED} <= {*REASONS}
    assert issubclass(ConflictError, VariantError)
