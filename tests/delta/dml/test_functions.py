"""Functions of a whole Variant in the conditions and values of row changes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv

_TEXTS = ['{"n": 1}', '{"n": null}', '{"m": 3}', '{"n": "s", "o": {"n": 5}}', "null"]


@pytest.fixture(params=["shredded", "unshredded", "vectors", "two files"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = str(tmp_path / "t")
    rows = {"k": [0, 1, 2, 3, 4], "v": pv.parse_json(_TEXTS)}
    properties = {
        "delta.enableVariantShredding": request.param != "unshredded",
        "delta.enableDeletionVectors": request.param == "vectors",
    }
    if request.param == "two files":
        pv.write(path, {"k": rows["k"][:2], "v": rows["v"][:2]}, format="delta", properties=properties)
        pv.open(path).append({"k": rows["k"][2:], "v": rows["v"][2:]})
    else:
        pv.write(path, rows, format="delta", properties=properties)
    return path


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("is_variant_null(v:n)", {1}),
        ("is_variant_null(v)", {4}),
        ("NOT IS_VARIANT_NULL(v)", {0, 1, 2, 3}),
        ("is_variant_null(v:n) OR k = 3", {1, 3}),
        ("schema_of_variant(v:n) = 'BIGINT'", {0}),
        ("schema_of_variant(v) LIKE 'OBJECT<m:%'", {2}),
        ("to_json(v) = '{\"n\":1}'", {0}),
        ("to_json(v:o) = '{\"n\":5}'", {3}),
        ("to_json((v:n)) = '1'", {0}),
        ("lower(to_json(v:n)) LIKE '%s%' AND v:o.n::int = 5", {3}),
        ("to_json(v:missing) IS NULL", {0, 1, 2, 3, 4}),
        ("length(to_json(target.v)) > 20", {3}),
    ],
)
def test_conditions(table: str, condition: str, rows: set[int]) -> None:
    assert pv.open(table).delete(condition, dry_run=True).rows_deleted == len(rows)
    assert pv.open(table).delete(condition).rows_deleted == len(rows)
    assert set(pv.open(table).to_arrow()["k"].to_pylist()) == set(range(5)) - rows


def test_values(table: str) -> None:
    pv.open(table).add_columns(pa.schema([("s", pa.string()), ("b", pa.bool_())]))
    pv.open(table).update(
        {"s": "to_json(v:n)", "b": "is_variant_null(v:n)", "v:kind": "schema_of_variant(v:n)"}, "k < 4"
    )
    rows = pv.open(table).to_arrow().sort_by("k")
    assert rows["s"].to_pylist() == ["1", "null", None, '"s"', None]
    assert rows["b"].to_pylist() == [False, True, False, False, None]
    kinds = pv.open(table).scan({"k": "k", "kind": "$.kind:string"}).to_arrow().sort_by("k")["kind"].to_pylist()
    assert kinds[:4] == ["BIGINT", "VOID", None, "STRING"]


def test_a_merge(table: str) -> None:
    source = {"text": ["1", '"s"'], "k": [100, 103]}
    merge = pv.open(table).merge(source, "to_json(target.v:n) = source.text").when_matched_update({"k": "source.k"})
    assert merge.execute().rows_updated == 2
    assert set(pv.open(table).to_arrow()["k"].to_pylist()) == {100, 1, 2, 103, 4}


@pytest.mark.parametrize("text", ["to_json(v)", "is_variant_null(v:n)"])
def test_functions_are_not_targets(table: str, text: str) -> None:
    with pytest.raises(pv.TableError) as caught:
        pv.open(table).update({text: "1"})
    assert caught.value.reason == "bad-assignment"
