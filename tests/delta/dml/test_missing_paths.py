"""Changes of Delta and Iceberg tables whose condition names a path that no row has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main


@pytest.mark.parametrize("package", ["delta", "iceberg"], ids=["delta", "iceberg"])
def test_a_change_with_a_misspelled_path(package: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(table, {"v": pv.parse_json(['{"user": {"id": 1}}', '{"user": {"id": 2}}'])}, format=package)
    new = {"v": pv.parse_json(['{"user": {"id": 1}, "k": 1}'])}

    def merge(on: str) -> Any:
        return (
            pv.open(table, format=package)
            .merge(new, on)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )

    changes = (
        lambda: pv.open(table, format=package).delete("v:usr.id::int = 1"),
        lambda: pv.open(table, format=package).delete("v:usr.id::int = 1", dry_run=True),
        lambda: pv.open(table, format=package).update({"v:k": "1"}, "v:usr.id::int = 1"),
        lambda: merge("target.v:usr.id::int = source.v:user.id::int"),
        lambda: merge("target.v:user.id::int = source.v:usr.id::int"),
        lambda: pv.open(table, format=package).delete("v:usr.id = 1"),
        lambda: merge("v:usr.id"),
    )
    for change in changes:
        with pytest.raises(pv.VariantError, match=r"did you mean v:user\.id\?") as caught:
            change()
        assert caught.value.reason == "no-such-path"
    assert len(pv.open(table, format=package).read()) == 2
    assert pv.open(table, format=package).delete("v:user.id::int = 9").rows_deleted == 0
    assert merge("target.v:user.id::int = source.v:user.id::int").rows_updated == 1


@pytest.mark.parametrize("package", ["delta", "iceberg"], ids=["delta", "iceberg"])
@pytest.mark.parametrize(
    ("condition", "is_reported"),
    [
        ("v:opt::int = 1 AND v:id::int = 9", True),
        ("v:opt::int = 1 OR v:id::int = 9", False),
        ("v:opt::int = 1 OR lower(v:name::string) = 'x'", True),
        ("NOT (v:opt::int = 1 AND v:id::int < 9)", False),
        ("NOT (v:opt::int = 1 OR v:id::int < 9)", True),
        ("v:opt IS NULL AND v:id::int = 9", False),
        ("v:opt IS NOT NULL", True),
        ("NOT (v:opt IS NOT NULL) AND v:id::int = 9", False),
        ("coalesce(v:opt::int, v:id::int) = 9", False),
        ("CASE WHEN v:opt::int = 1 THEN true ELSE v:id::int = 9 END", False),
        ("v:opt::int NOT BETWEEN v:id::int AND 5", True),
        ("v:id::int NOT BETWEEN 0 AND v:opt::int", False),
        ("v:opt::int IN (1, 2)", True),
        ("k = 9 OR v:opt::int = 1", False),
        ("(v:opt::int = 1 OR v:id::int = 9) AND k < 5", False),
        ("v:opt::int = 1 OR (v:ended::int = 1 AND k = 1)", True),
        ("v:opt = 1 AND v:id = 9", True),
        ("v:opt = 1 OR v:id = 9", False),
        ("v:opt LIKE 'x%'", True),
        ("v:opt::int NOT IN (1, 2)", True),
        ("v:id::int + v:opt::int > k", True),
        ("NOT v:opt::string LIKE 'x%' AND k = 1", True),
        ("regexp_matches(v:opt::string, 'x')", True),
        ("v:opt::int = 1 AND coalesce(v:id::int, 1) = 9", True),
        ("greatest(v:opt::int, v:id::int) = 9", False),
    ],
)
def test_a_missing_path_that_the_condition_needs_is_reported(
    package: Any, condition: str, is_reported: bool, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    pv.write(table, {"k": [1, 2], "v": pv.parse_json(['{"id": 1}', '{"id": 2}'])}, format=package)
    for options in ({}, {"dry_run": True}):
        result = pv.open(table, format=package).delete(condition, **options)
        assert result.rows_deleted == 0
        assert any("no row has the path v:" in hint for hint in result.hints) == is_reported
    assert main(["delete", str(table), "--where", condition]) == int(is_reported)


@pytest.mark.parametrize("package", ["delta", "iceberg"], ids=["delta", "iceberg"])
def test_paths_of_a_table_without_rows_are_not_reported(package: Any, tmp_path: Path) -> None:
    pv.write(tmp_path, {"v": pv.parse_json(['{"a": 1}'])}, format=package)
    assert pv.open(tmp_path).delete("v:a = 1").rows_deleted == 1
    assert pv.open(tmp_path).delete("v:b = 1").hints == ()
    merge = pv.open(tmp_path).merge({"v": pv.parse_json(['{"a": 2}'])}, "target.v:a = source.v:a")
    assert merge.when_not_matched_insert_all().execute().hints == ()
