"""Variant statistics of the log: the RFC's examples, real tables, and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import TableError
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.log.snapshot import snapshot
from parquet_variant.tables.delta.statistics import decode_bounds, decode_bounds_array, encode_bounds
from parquet_variant.types import VariantType
from parquet_variant.types.path import VariantPath

RFC_MIN = "0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu"
RFC_MAX = "0S&u500&]LC42A9vqZe}wb#-i1}-a+cT!xdbWhT9cTx}7v<+K"


def readable(text: str) -> dict[str, Any]:
    return {str(path): bound.to_python() for path, bound in decode_bounds(text).items()}


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        (RFC_MIN, 53, {"$['a']": "min-string", "$['b']['c']": 1}),
        (RFC_MAX, 49, {"$['a']": "variant", "$['b']['c']": 100}),
    ],
)
def test_examples_of_the_rfc_read_as_it_prints_them(text: str, length: int, expected: dict[str, Any]) -> None:
    assert len(text) == length
    assert readable(text) == expected


def test_examples_of_the_rfc_are_still_in_the_rfc(variant_test_data: Path) -> None:
    rfc = (variant_test_data / "spec" / "delta-variant-shredding-rfc.md").read_text()
    assert RFC_MIN in rfc
    assert RFC_MAX in rfc


def test_what_is_written_is_metadata_then_value_padded_to_four_bytes() -> None:
    text = encode_bounds({VariantPath.parse("$.a"): Variant.from_python("x")})
    data = z85.decode(text)
    assert len(text) % 5 == 0
    assert data[0] & 0x0F == 1
    assert Variant.from_bytes(data)["$['a']"].to_python() == "x"
    assert readable(text) == {"$['a']": "x"}


def test_the_root_is_a_path_too() -> None:
    assert readable(encode_bounds({VariantPath.parse("$"): Variant.from_python(3)})) == {"$": 3}


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALARS = st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20) | st.booleans() | st.floats(allow_nan=False)


@given(st.dictionaries(st.lists(KEYS, max_size=3).map(tuple), SCALARS, max_size=6))
def test_bounds_survive_the_round_trip(bounds: dict[tuple[str, ...], Any]) -> None:
    given_bounds = {VariantPath(path): Variant.from_python(bound) for path, bound in bounds.items()}
    assert decode_bounds(encode_bounds(given_bounds)) == given_bounds


@given(st.lists(st.none() | st.dictionaries(KEYS, SCALARS, max_size=4), max_size=8), st.booleans())
def test_a_column_decodes_as_its_rows_do(rows: list[dict[str, Any] | None], with_rfc: bool) -> None:
    texts = [
        None if row is None else encode_bounds({VariantPath((k,)): Variant.from_python(v) for k, v in row.items()})
        for row in rows
    ]
    texts += [RFC_MIN] if with_rfc else []
    column = decode_bounds_array(pa.array(texts, pa.string()))
    for text, cell in zip(texts, column.to_pylist(), strict=True):
        if text is None:
            assert cell is None
        else:
            found = Variant(cell["metadata"], cell["value"])
            assert {VariantPath.parse(k): v for k, v in found.items()} == decode_bounds(text)


@pytest.mark.parametrize("damage", ["", "00000", "0rAfa", "0S&u5", "%%%"])
def test_damaged_statistics_are_an_error_alone_and_unknown_in_a_column(damage: str) -> None:
    with pytest.raises(TableError):
        decode_bounds(damage)
    good = encode_bounds({VariantPath(("a",)): Variant.from_python(1)})
    column = decode_bounds_array(pa.array([good, damage]))
    assert column.is_valid().to_pylist() == [True, False]


def leaves(rows: list[Any], *path: str) -> list[Any]:
    for name in path:
        rows = [None if row is None else row[name] for row in rows]
    return rows


@pytest.mark.parametrize(
    ("table", "column", "leaf_types"),
    [
        ("variant-stats-no-checkpoint", ("v",), {"id": VariantType.INT64, "name": VariantType.STRING}),
        ("variant-stats-no-checkpoint", ("nv", "v"), {"id": VariantType.INT64, "name": VariantType.STRING}),
        ("variant-stats-with-struct-no-checkpoint", ("v",), {"key": VariantType.INT64}),
    ],
)
def test_golden_statistics_are_the_true_bounds_of_their_files(
    delta_golden: Path, table: str, column: tuple[str, ...], leaf_types: dict[str, VariantType]
) -> None:
    loaded = snapshot(delta_golden / table)
    assert loaded.num_files > 0
    for path, stats in zip(loaded.files["path"].to_pylist(), loaded.files["stats"].to_pylist(), strict=True):
        # Plain pyarrow, so that the truth does not pass through our own reader.
        rows = pq.ParquetFile(loaded.storage.open(path.replace("%25", "%"))).read().to_pylist()
        stats = json.loads(stats)
        low, high = stats["minValues"], stats["maxValues"]
        for name in column:
            low, high = low[name], high[name]
        low_bounds, high_bounds = decode_bounds(low), decode_bounds(high)
        assert set(low_bounds) == set(high_bounds) == {VariantPath((leaf,)) for leaf in leaf_types}
        for leaf, kind in leaf_types.items():
            values = [v for v in leaves(rows, *column, "typed_value", leaf, "typed_value") if v is not None]
            bounds = low_bounds[VariantPath((leaf,))], high_bounds[VariantPath((leaf,))]
            assert [b.type for b in bounds] == [kind, kind]
            assert [b.to_python() for b in bounds] == [min(values), max(values)]


_BOTH = ["variantType", "variantShredding"]
_PREVIEW = ["variantType-preview", "variantShredding-preview"]


@pytest.mark.parametrize(
    ("readers", "writers", "is_shredded"),
    [
        (_BOTH, _BOTH, True),
        (
            ["variantType-preview", "variantShredding-preview"],
            ["variantType-preview", "variantShredding-preview"],
            True,
        ),
        # Variants may not be written at all.
        (["variantShredding"], ["variantShredding"], None),
        (_BOTH, ["variantShredding"], None),
        (["variantShredding"], _BOTH, None),
        (["variantType"], ["variantType"], False),
    ],
)
def test_new_files_are_shredded_only_where_the_protocol_lists_both_features(
    tmp_path: Path, readers: list[str], writers: list[str], is_shredded: bool | None
) -> None:
    table = tmp_path / "t"
    pv.create(table, '{"type":"struct","fields":[{"name":"v","type":"variant"}]}')
    commit = table / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] |= {"readerFeatures": readers, "writerFeatures": writers}
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = {"v": pv.parse_json(['{"n": 1}', '{"n": 2}'])}
    if is_shredded is None:
        with pytest.raises(TableError, match="variantType"):
            pv.open(table).append(rows)
        return
    pv.open(table).append(rows)
    (file,) = table.glob("*.parquet")
    assert ("typed_value" in str(pq.read_schema(file))) == is_shredded
    stats = json.loads(pv.open(table).snapshot.files["stats"].to_pylist()[0])
    assert bool(stats["minValues"]) == is_shredded
    assert pv.open(table).read().to_pylist() == [{"n": 1}, {"n": 2}]


def test_a_path_that_rows_lack_has_bounds_but_not_one_with_other_types(tmp_path: Path) -> None:
    table = tmp_path / "t"
    texts = ['{"a": 1, "b": 1, "c": 1}', '{"b": null, "c": "x"}', "null", '{"a": 5, "b": 2, "c": 2}']
    pv.write(table, {"v": pv.parse_json([*texts, None])}, format="delta")
    stats = json.loads(pv.open(table).snapshot.files["stats"].to_pylist()[0])
    assert stats["nullCount"] == {"v": 1}
    assert (readable(stats["minValues"]["v"]), readable(stats["maxValues"]["v"])) == ({"$['a']": 1}, {"$['a']": 5})
