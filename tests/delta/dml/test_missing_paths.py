"""A change whose condition names a path that no row has is an error in Delta and Iceberg tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv


@pytest.mark.parametrize("package", [pv.delta, pv.iceberg], ids=["delta", "iceberg"])
def test_a_change_with_a_misspelled_path(package: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    package.write(table, {"v": pv.parse_json(['{"user": {"id": 1}}', '{"user": {"id": 2}}'])})
    new = {"v": pv.parse_json(['{"user": {"id": 1}, "k": 1}'])}

    def merge(on: str) -> Any:
        return package.merge(table, new, on).when_matched_update_all().when_not_matched_insert_all().execute()

    changes = (
        lambda: package.delete(table, "v:usr.id::int = 1"),
        lambda: package.delete(table, "v:usr.id::int = 1", dry_run=True),
        lambda: package.update(table, {"v:k": "1"}, "v:usr.id::int = 1"),
        lambda: merge("target.v:usr.id::int = source.v:user.id::int"),
        lambda: merge("target.v:user.id::int = source.v:usr.id::int"),
    )
    for change in changes:
        with pytest.raises(pv.VariantError, match=r"did you mean v:user\.id\?") as caught:
            change()
        assert caught.value.reason == "no-such-path"
    assert len(package.read(table)) == 2
    assert package.delete(table, "v:user.id::int = 9").rows_deleted == 0
    assert merge("target.v:user.id::int = source.v:user.id::int").rows_updated == 1


@pytest.mark.parametrize("package", [pv.delta, pv.iceberg], ids=["delta", "iceberg"])
def test_only_a_path_that_the_condition_needs_is_reported(package: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    package.write(table, {"k": [1, 2], "v": pv.parse_json(['{"a": 1}', '{"a": 2}'])})
    for condition in ("k = 9 OR v:done::int = 1", "(v:done::int = 1 OR v:a::int = 9) AND k < 5"):
        assert package.delete(table, condition).rows_deleted == 0
    for condition in ("k = 1 AND v:done::int = 1", "v:done::int = 1 OR (v:ended::int = 1 AND k = 1)"):
        with pytest.raises(pv.VariantError, match="no row has the path v:done"):
            package.delete(table, condition)
