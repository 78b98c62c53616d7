"""Random histories in every run, compared with a plain dict of rows; `make soak` for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.seeds import SEED
from soak.differential import History, reproducible_history
from soak.iceberg_history import IcebergHistory
from soak.plain_model import NULL, Model


@pytest.mark.parametrize("number", range(5))
def test_a_random_history_is_that_of_a_plain_model(tmp_path: Path, number: int) -> None:
    with reproducible_history(f"{SEED} {number}", tmp_path, 20):
        pass


@pytest.mark.parametrize("number", range(2))
def test_a_random_history_of_an_iceberg_table_is_that_of_a_plain_model(tmp_path: Path, number: int) -> None:
    with reproducible_history(f"{SEED} {number}", tmp_path, 16, IcebergHistory):
        pass


def test_the_comparison_sees_a_row_that_is_lost_or_wrong(tmp_path: Path) -> None:
    history = History(tmp_path, "any")
    row = next(iter(history.model.rows.values()))
    kept, row["a"] = row["a"], 1234
    with pytest.raises(AssertionError, match="is not"):
        history.compare(0)
    row["a"] = kept
    history.model.rows[4321] = row | {"k": 4321}
    with pytest.raises(AssertionError, match="4321"):
        history.compare(0)


def test_the_model_knows_what_is_unknown() -> None:
    model = Model({"k": "bigint", "v": "variant"}, {1: {"k": 1, "v": NULL}, 2: {"k": 2, "v": {"n": 5}}})
    assert not model.do({"op": "delete", "where": ["not", ["compare", "v:n", "=", 5]]})
    assert model.do({"op": "delete", "where": ["or", ["null", "v:n"], ["compare", "v:n", "=", 6]]})
    assert list(model.rows) == [2]
