"""A Delta table whose log names a file of another place: no command shows it unasked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv


@pytest.fixture(params=["path", "link"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    victim = tmp_path / "victim.parquet"
    pv.write(victim, pv.parse_json(['{"secret": 1}']), column="v")
    table = tmp_path / "table"
    pv.write(str(table), {"v": pv.parse_json(['{"a": 1}'])}, format="delta")
    (log,) = table.glob("_delta_log/*.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = [action["add"] for action in actions if "add" in action]
    if request.param == "link":
        (table / add["path"]).unlink()
        (table / add["path"]).symlink_to(victim)
    else:
        add["path"] = "../victim.parquet"
    add["size"] = victim.stat().st_size
    log.write_text("\n".join(map(json.dumps, actions)))
    return str(table)


@pytest.mark.parametrize(
    "words",
    [
        ["cat"],
        ["query", "-s", "$.secret:int"],
        ["query", "SELECT v:secret::int AS secret FROM t"],
        ["inspect"],
        ["validate"],
        ["infer"],
    ],
    ids=" ".join,
)
def test_files_of_elsewhere_are_shown_only_if_allowed(
    variant: Callable[..., Any], table: str, words: list[str]
) -> None:
    refused = variant(words[0], table, *words[1:])
    assert refused.code == 1
    assert "outside of the table: pass --allow-outside" in refused.error
    assert "secret" not in refused.out
    shown = variant(words[0], table, *words[1:], "--allow-outside")
    assert shown.code == 0, shown.error
    assert shown.out


@pytest.mark.parametrize(
    "words", [["explore"], ["sql-view", "--engine", "duckdb"], ["optimize"], ["delete", "--where", "v:secret::int = 1"]]
)
def test_what_cannot_be_allowed_is_refused(variant: Callable[..., Any], table: str, words: list[str]) -> None:
    refused = variant(words[0], table, *words[1:])
    assert refused.code == 1
    assert "secret" not in refused.out
    assert (Path(table).parent / "victim.parquet").exists()
