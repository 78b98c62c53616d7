"""Identity, generation and default metadata of columns: its feature is enabled at creation, or it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv


def _field(name: str, kind: Any = "long", **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def _schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


_IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
_GENERATED = {"delta.generationExpression": "n * 2"}
_DEFAULT = {"CURRENT_DEFAULT": "7"}
_INVARIANT = {"delta.invariants": json.dumps({"expression": {"expression": "n > 0"}})}


@pytest.mark.parametrize(
    ("metadata", "feature", "values"),
    [
        (_IDENTITY, "identityColumns", [1, 2]),
        (_GENERATED, "generatedColumns", [2, 4]),
        (_DEFAULT, "allowColumnDefaults", [7, 7]),
    ],
)
def test_the_feature_is_enabled_and_values_are_made(
    tmp_path: Path, metadata: dict[str, Any], feature: str, values: list[int]
) -> None:
    table = str(tmp_path / "t")
    pv.create(table, _schema(_field("n"), _field("x", **metadata)))
    assert feature in (pv.open(table).snapshot.protocol.writer_features or ())
    pv.open(table).append({"n": [1, 2]})
    assert pv.open(table).to_arrow()["x"].to_pylist() == values


@pytest.mark.parametrize(("metadata", "values"), [(_IDENTITY, [1, 2]), (_GENERATED, [2, 4]), (_DEFAULT, [7, 7])])
def test_metadata_of_arrow_fields_counts_too(tmp_path: Path, metadata: dict[str, Any], values: list[int]) -> None:
    table = str(tmp_path / "t")
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in metadata.items()}
    pv.create(table, pa.schema([pa.field("n", pa.int64()), pa.field("x", pa.int64(), metadata=texts)]))
    pv.open(table).append({"n": [1, 2]})
    assert pv.open(table).to_arrow()["x"].to_pylist() == values


def test_an_invariant_is_enforced(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    pv.create(table, _schema(_field("n", **_INVARIANT)))
    with pytest.raises(pv.TableError) as caught:
        pv.open(table).append({"n": [0]})
    assert caught.value.reason == "constraint-violated"


@pytest.mark.parametrize(
    "field",
    [
        _field("x", "variant", **{"delta.generationExpression": "parse_json('1')"}),
        _field("x", "variant", CURRENT_DEFAULT="parse_json('1')"),
        _field("x", "string", **_IDENTITY),
        _field("x", "integer", **_IDENTITY),
        _field("x", **{**_IDENTITY, "delta.identity.step": 0}),
        _field("x", **{**_IDENTITY, "delta.identity.step": "1"}),
        _field("x", **{"delta.identity.start": 1}),
        _field("x", **{"delta.identity.step": 1}),
        _field("x", **{"delta.identity.highWaterMark": 1}),
        _field("x", **{**_IDENTITY, "delta.identity.allowExplicitInsert": "maybe"}),
        _field("x", **_IDENTITY, **_DEFAULT),
        _field("x", **_IDENTITY, **_GENERATED),
        _field("x", **_GENERATED, **_DEFAULT),
        _field("x", **{"delta.generationExpression": None}),
        _field("x", {"type": "struct", "fields": [_field("y", **_IDENTITY)]}),
        _field("x", {"type": "struct", "fields": [_field("y", **_DEFAULT)]}),
        _field("x", {"type": "array", "elementType": {"type": "struct", "fields": [_field("y", **_GENERATED)]}}),
    ],
    ids=lambda field: json.dumps(field["metadata"])[:60] + str(field["type"])[:30],
)
def test_metadata_that_delta_does_not_allow_is_refused(tmp_path: Path, field: dict[str, Any]) -> None:
    with pytest.raises(pv.TableError) as caught:
        pv.create(tmp_path / "t", _schema(_field("n"), field))
    assert caught.value.reason == "bad-schema"
    assert "'x'" in str(caught.value) or "'y'" in str(caught.value)
    assert not (tmp_path / "t").exists() or not any((tmp_path / "t").rglob("*.json"))


@pytest.mark.parametrize("default", ["NULL", "null", "", " Null "])
def test_a_variant_may_default_to_null(tmp_path: Path, default: str) -> None:
    table = str(tmp_path / "t")
    pv.create(table, _schema(_field("n"), _field("v", "variant", CURRENT_DEFAULT=default)))
    pv.open(table).append({"n": [1]})
    assert pv.open(table).read().to_pylist() == [None]


@pytest.mark.parametrize("metadata", [_IDENTITY, _GENERATED, _DEFAULT, _INVARIANT])
def test_added_columns_have_no_such_metadata(tmp_path: Path, metadata: dict[str, Any]) -> None:
    table = str(tmp_path / "t")
    pv.write(table, {"n": [1]}, format="delta")
    with pytest.raises(pv.TableError) as caught:
        pv.open(table).add_columns(_schema(_field("x", **metadata)))
    assert caught.value.reason == "bad-schema"


@pytest.mark.parametrize("name", ["_change_type", "_CHANGE_TYPE", "_commit_version", "_commit_timestamp"])
def test_columns_that_change_data_adds_cannot_be_the_users(tmp_path: Path, name: str) -> None:
    table = str(tmp_path / "t")
    feed = {"delta.enableChangeDataFeed": True}
    with pytest.raises(pv.TableError, match=name):
        pv.write(table, {"n": [1], name: [1]}, format="delta", properties=feed)
    pv.write(table, {"n": [1], name: [1]}, format="delta")
    with pytest.raises(pv.TableError, match=name):
        pv.open(table).set_properties(feed)
    with pytest.raises(pv.TableError, match=name):
        pv.open(table).changes(since=0)
    pv.open(table).update({name: "n + 1"})
    assert pv.open(table).to_arrow()[name].to_pylist() == [2]
    other = str(tmp_path / "other")
    pv.write(other, {"n": [1]}, format="delta", properties=feed)
    with pytest.raises(pv.TableError, match=name):
        pv.open(other).add_columns(_schema(_field(name)))
    with pytest.raises(pv.TableError, match=name):
        pv.open(other).append({"n": [1], name: [1]}, schema_mode="merge")
