"""What is skipped could not match: answers with and without statistics are the same, for files, row groups and tables.

Random predicates over random rows whose types change from file to file; statistics in Delta's log damaged at random.
What is damaged may say nothing, or something that cannot be read. It may not be wrong.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from fuzz.samples import random_ddl
from fuzz.seeds import random_source, tries

_TYPES = ["bigint", "int", "double", "decimal(20, 3)", "string", "boolean", "timestamp", "date"]
_COLUMNS = {f"{name}{number}": (f"$.{name}", kind) for name in "abc" for number, kind in enumerate(_TYPES)} | {
    "id": "id"
}


def _rows(source: random.Random, first: int) -> dict[str, Any]:
    low = source.randrange(-20, 20)
    makers = [
        lambda: source.randrange(low, low + 5),
        lambda: source.randrange(low, low + 5) / 4,
        lambda: source.choice(["x", "y", "z" * 70, "é", "2024-01-01", "1"]),
        lambda: source.choice([True, False]),
        lambda: None,
        lambda: source.choice([1e300, -0.0, 2**53 + 1, 10**20, {"d": 1}, [1]]),
    ]
    usual = {name: source.choice(makers[:3]) for name in "abc"}
    texts = []
    for _ in range(source.randrange(1, 30)):
        row = {}
        for name in "abc":
            make = usual[name] if source.random() < 0.9 else source.choice(makers)
            if source.random() < 0.9:
                row[name] = make()
        texts.append(json.dumps(row) if source.random() < 0.97 else source.choice(["1", "null", "[]"]))
    return {"id": pa.array(range(first, first + len(texts))), "v": pv.parse_json(texts)}


def _predicate(source: random.Random, depth: int = 2) -> str:
    if depth and source.random() < 0.5:
        left, right = _predicate(source, depth - 1), _predicate(source, depth - 1)
        return source.choice([f"({left} and {right})", f"({left} or {right})", f"not ({left})"])
    name = source.choice(list(_COLUMNS))
    kind = "bigint" if name == "id" else _TYPES[int(name[1:])]
    if kind in ("timestamp", "date"):
        return f"{name} is {source.choice(['', 'not '])}null"
    number = source.choice(["0", "1", "-3", "2.5", "7", str(2**53), "1e10"])
    literal = {"string": source.choice(["'x'", "'y'", "'zz'", "''"]), "boolean": source.choice(["true", "false"])}
    value = literal.get(kind, str(source.randrange(-20, 20)) if kind in ("bigint", "int") else number)
    return source.choice([
        f"{name} {source.choice(['=', '<', '<=', '>', '>=', '!='])} {value}",
        f"{name} is {source.choice(['', 'not '])}null",
        f"{name} in ({value}, {value})",
        f"{name} like 'x%'" if kind == "string" else f"{name} = {value}",
    ])  # fmt: skip


def _same(one: pa.Table, other: pa.Table, predicate: str) -> None:
    key = [("id", "ascending")]
    assert one.sort_by(key).to_pylist() == other.sort_by(key).to_pylist(), predicate


@pytest.mark.parametrize("kind", ["parquet", "delta", "vortex"])
def test_pruned_equals_unpruned(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "vortex":
        pytest.importorskip("vortex")
    for number in tries(f"pruning {kind}", 2):
        with random_source(f"pruning {kind}", number) as source:
            folder = tmp_path / f"{kind}{number}"
            folder.mkdir()
            ids = 0
            for file in range(source.randrange(1, 4)):
                rows = _rows(source, ids)
                ids += len(rows["id"])
                schema = source.choice(["infer", "infer", random_ddl(source), "struct<a bigint, b double, c string>"])
                if kind == "parquet":
                    pv.write(folder / f"{file}.parquet", rows, schema=schema, row_group_bytes=300)
                elif kind == "delta":
                    pv.write(folder, rows, format="delta", mode="append")
                else:
                    monkeypatch.setattr(
                        "parquet_variant.files.vortex.range_statistics.RANGE_ROWS", source.randrange(1, 9)
                    )
                    layout = source.choice(["variant", "struct"])
                    typed = source.choice([None, schema])
                    pv.write(folder / f"{file}.vortex", rows, schema=typed, layout=layout)
            if kind == "delta" and source.random() < 0.5:
                _damage_statistics(source, folder)
            for _ in range(12):
                predicate = _predicate(source)
                if kind == "vortex":
                    cast = source.random() < 0.5
                    parts = [
                        [
                            pv.open(file).scan(_COLUMNS, predicate, skipping=item, cast=cast).to_arrow()
                            for item in (True, False)
                        ]
                        for file in sorted(folder.iterdir())
                    ]
                    for with_skipping, without in parts:
                        _same(with_skipping, without, predicate)
                    continue
                found = [pv.open(folder).scan(_COLUMNS, predicate, skipping=item).to_arrow() for item in (True, False)]
                _same(found[0], found[1], predicate)
            shutil.rmtree(folder)


def _damage_statistics(source: random.Random, table: Path) -> None:
    """Make some bounds say nothing: taken out, null, NaN, or of a type that cannot be compared."""
    for path in (table / "_delta_log").glob("*.json"):
        lines = []
        for line in path.read_text().splitlines():
            action = json.loads(line)
            if "add" in action and action["add"].get("stats") and source.random() < 0.7:
                action["add"]["stats"] = _damaged(source, action["add"]["stats"])
            lines.append(json.dumps(action))
        path.write_text("\n".join(lines) + "\n")


def _damaged(source: random.Random, text: str) -> str:
    if source.random() < 0.2:
        return source.choice(["", "{", "null", "[]", '"x"', "{}", '{"numRecords": 3}', '{"minValues": 1}', text[:-5]])
    stats = json.loads(text)
    for part in ("minValues", "maxValues", "nullCount"):
        bounds = stats.get(part)
        if isinstance(bounds, dict) and bounds and source.random() < 0.5:
            name = source.choice(list(bounds))
            bounds[name] = source.choice([None, float("nan"), {}, [], "~not z85~", {"id": None}])
    if source.random() < 0.2:
        stats.pop(source.choice(["minValues", "maxValues", "nullCount"]), None)
    return json.dumps(stats)
