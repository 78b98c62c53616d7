"""A shallow clone: its log names files of another table, which are read, and never changed or deleted."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    rows = {"id": [1, 2, 3], "v": pv.parse_json(['{"n":1}', '{"n":2}', '{"n":3}'])}
    pv.write(tmp_path / "source", rows, format="delta")
    log = "_delta_log/00000000000000000000.json"
    actions = [json.loads(line) for line in (tmp_path / "source" / log).read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = f"file://{tmp_path}/source/{action['add']['path']}"
    (tmp_path / "clone/_delta_log").mkdir(parents=True)
    (tmp_path / "clone" / log).write_text("".join(json.dumps(action) + "\n" for action in actions))
    return tmp_path / "clone"


def _values(table: Path) -> list[int]:
    return sorted(row["n"] for row in pv.open(table, allow_outside=True).read().to_pylist())


def test_all_changes_of_a_clone_leave_the_source_as_it_is(clone: Path) -> None:
    def opened() -> pv.Table:
        return pv.open(clone, allow_outside=True)

    with pytest.raises(TableError) as error:
        pv.open(clone).to_arrow()
    assert error.value.reason == "outside-table"
    opened().append({"id": [4], "v": pv.parse_json(['{"n":4}'])})
    opened().delete("id = 1")
    opened().update({"v:n": "20"}, "id = 2")
    news = {"id": [3, 9], "v": pv.parse_json(['{"n":30}', '{"n":90}'])}
    opened().merge(news, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert _values(clone) == [4, 20, 30, 90]
    opened().optimize()
    opened().vacuum(retention=timedelta(), force=True)
    assert _values(clone) == [4, 20, 30, 90]
    opened().restore(0)
    assert _values(clone) == [1, 2, 3]
    opened().vacuum(retention=timedelta(), force=True)
    assert opened().inspect().rows == 3
    assert opened().validate().ok
    assert opened().data_files()[0].startswith(str(clone.parent / "source"))
    opened().erase("id = 1")
    assert _values(clone) == [2, 3]
    opened().overwrite({"id": [7], "v": pv.parse_json(['{"n":7}'])})
    assert _values(clone) == [7]
    assert _values(clone.parent / "source") == [1, 2, 3]
