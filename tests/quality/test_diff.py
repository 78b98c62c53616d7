"""Differences of data sets: planted drift is found with its count, and two samples of one distribution are equal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import parquet_variant as pv

ROWS = 240
Row = dict[str, Any]


def _rows(random: Random) -> list[Row]:
    rows = []
    for number in range(ROWS):
        row: Row = {
            "id": number,
            "kind": random.choice(["click", "view", "buy", "sell"]),
            "score": round(random.random() * 100, 2),
            "maybe": None if random.random() < 0.3 else random.randint(1, 9),
            "tags": [random.choice("abc") for _ in range(random.randint(1, 4))],
            "user": {"age": random.randint(18, 90), "active": random.random() < 0.5},
            "items": [{"sku": random.choice("xyz"), "qty": random.randint(1, 9)} for _ in range(random.randint(1, 3))],
        }
        if random.random() < 0.6:
            row["note"] = "n" * random.randint(5, 15)
        rows.append(row)
    return rows


def _set(row: Row, name: str, value: Any) -> None:
    row[name] = value


# What is planted: the path and the change that are found, how many rows it takes, and the change of a row.
Plant = tuple[str, str, Callable[[Row, int], Any]]
SOME: list[Plant] = [
    ("$.extra", "appeared", lambda row, n: _set(row, "extra", {"a": {"b": n}})),
    ("$.user.city", "appeared", lambda row, n: _set(row["user"], "city", "x")),
    ("$.id", "type", lambda row, n: _set(row, "id", str(n))),
    ("$.tags", "array-to-object", lambda row, n: _set(row, "tags", {"first": row["tags"][0]})),
    ("$.user", "object-to-array", lambda row, n: _set(row, "user", [row["user"]["age"]])),
    ("$.user.age", "nulls", lambda row, n: _set(row["user"], "age", None)),
    ("$.kind", "presence", lambda row, n: row.pop("kind")),
]
ALL: list[Plant] = [
    ("$.score", "range", lambda row, n: _set(row, "score", row["score"] * 1000 + 0.5)),
    ("$.kind", "cardinality", lambda row, n: _set(row, "kind", f"{n:04}")),
    ("$.tags", "length", lambda row, n: _set(row, "tags", row["tags"] * 8)),
    ("$.note", "length", lambda row, n: _set(row, "note", row["note"] * 9) if "note" in row else None),
    ("$.user", "vanished", lambda row, n: row.pop("user")),
]
PLANTED = [(plant, share) for plant in SOME for share in (0.3, 1.0)] + [(plant, 1.0) for plant in ALL]


def _stored(rows: list[Row], form: str, file: Path) -> Any:
    lines = list(map(json.dumps, rows))
    if form == "memory":
        return pv.parse_json(lines)
    if form == "ndjson":
        file.write_text("\n".join(lines))
    else:
        pv.write(file, pv.parse_json(lines), schema="infer", mode="overwrite", row_group_bytes=20_000)
    return file


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    planted=st.sampled_from([None, *PLANTED]),
    forms=st.tuples(*[st.sampled_from(["memory", "ndjson", "parquet", "footers"])] * 2),
)
def test_planted_drift_is_found_and_nothing_else(
    seed: int, planted: tuple[Plant, float] | None, forms: tuple[str, str], tmp_path: Path
) -> None:
    random = Random(seed)
    old, new = _rows(random), _rows(random)
    changed = 0
    if planted is not None:
        (path, change, alter), share = planted
        for number, row in enumerate(new):
            if share == 1 or random.random() < share:
                changed += 1
                alter(row, number)
    sources = [
        _stored(rows, form, tmp_path / f"{n}.x") for n, (rows, form) in enumerate(zip((old, new), forms, strict=True))
    ]
    # With few bytes to read, footers and residual columns must show the difference.
    options: dict[str, Any] = {"sample_bytes": 6_000} if "footers" in forms and "ndjson" not in forms else {}
    result = pv.open(sources[0]).diff(sources[1], **options)
    found = [(finding.path.shorthand, finding.change) for finding in result.findings]
    if planted is None:
        assert result.is_equal, str(result)
        return
    if change == "presence" and share == 1:
        change = "vanished"
    assert found == [(path, change)], str(result)
    finding = result.findings[0]
    if (planted[0] in SOME and change not in ("presence", "nulls", "vanished")) or change in ("presence", "nulls"):
        assert finding.count == changed
    if not options:
        assert finding.examples
        assert finding.evidence == "values"
    assert json.loads(json.dumps(result.to_dict()))["equal"] is False
    assert repr(result).endswith("1 difference>")


def test_samples_of_large_data_and_versions_of_a_table(tmp_path: Path) -> None:
    random = Random(2)
    old, new = ([row for _ in range(8) for row in _rows(random)] for _ in range(2))
    for row in new[: len(new) // 3]:
        row["user"]["age"] = str(row["user"]["age"])
    files = [_stored(rows, "ndjson", tmp_path / f"{n}.ndjson") for n, rows in enumerate((old, new))]
    sampled = pv.open(files[0]).diff(files[1], sample_bytes=100_000)
    assert [(found.path.shorthand, found.change, found.evidence) for found in sampled.findings] == [
        ("$.user.age", "type", "sample")
    ]
    assert 0 < sampled.after.sampled_rows < len(new)
    assert pv.open(files[0]).diff(files[0], sample_bytes=100_000).is_equal
    for file, mode in zip(files, ("error", "overwrite"), strict=True):
        pv.ingest(file, tmp_path / "delta", format="delta", mode=mode)  # type: ignore[arg-type]
    pv.open(tmp_path / "delta").set_properties({"delta.enableDeletionVectors": "true"})
    pv.open(tmp_path / "delta").delete("v:id::int = 7")
    old, new = pv.open(tmp_path / "delta", version=0), pv.open(tmp_path / "delta")
    result = old.diff(new)
    assert [(found.path.shorthand, found.change) for found in result.findings] == [("$.user.age", "type")]
    # The footers of a file count deleted rows, too, so they prove nothing.
    bounded = old.diff(new, sample_bytes=9_000)
    assert (bounded.before.rows_evidence, bounded.after.rows_evidence) == ("footers", "sample")


def test_hidden_values_are_nowhere_in_the_result() -> None:
    old = pv.parse_json([json.dumps({"ssn": f"{n}-secret", "pay": 77_001 + n}) for n in range(50)])
    new = pv.parse_json([json.dumps({"ssn": n, "pay": 9_977_001 + n}) for n in range(50)])
    shown, hidden = (pv.open(old).diff(pa.table({"v": new}), values=values) for values in (True, False))
    for text in ("secret", "77001", "9977001"):
        assert text in json.dumps(shown.to_dict())
        assert text not in json.dumps(hidden.to_dict()) + str(hidden) + hidden._repr_html_()
    assert [len(finding.examples) for finding in hidden.findings] == [len(found.examples) for found in shown.findings]
