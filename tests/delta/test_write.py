"""Writing: what the files and their statistics say, partitions, nested variants, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError
from parquet_variant.tables.delta.statistics import decode_bounds


def stats_of(table: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in pv.open(table).snapshot.files["stats"].to_pylist()]


def readable(text: str) -> dict[str, Any]:
    return {str(path): bound.to_python() for path, bound in decode_bounds(text).items()}


def data_files(table: Path) -> list[Path]:
    return sorted(file for file in table.rglob("*.parquet") if "_delta_log" not in file.parts)


def is_shredded(file: Path) -> bool:
    return "typed_value" in str(pq.ParquetFile(file).schema)


def test_a_new_table_has_protocol_and_property(make_table: Callable[..., Path]) -> None:
    found = pv.open(make_table(3)).snapshot
    assert (found.protocol.min_reader_version, found.protocol.min_writer_version) == (3, 7)
    assert found.protocol.reader_features == ("variantType", "variantShredding")
    assert set(found.protocol.reader_features) <= set(found.protocol.writer_features or ())
    assert found.metadata.configuration == {"delta.enableVariantShredding": "true"}
    assert [(f.name, f.type.name) for f in found.schema.fields] == [("k", "long"), ("p", "string"), ("v", "variant")]


def test_the_preview_name_is_an_option(make_table: Callable[..., Path]) -> None:
    found = pv.open(make_table(3, preview=True)).snapshot
    assert found.protocol.reader_features == ("variantType", "variantShredding-preview")
    assert all(is_shredded(file) for file in data_files(Path(found.storage.uri)))


def test_a_table_without_variants_needs_no_features(tmp_path: Path) -> None:
    pv.write(tmp_path / "t", pa.table({"a": [1]}), format="delta")
    protocol = pv.open(tmp_path / "t").snapshot.protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


@pytest.mark.parametrize("value", ["false", None])
def test_nothing_is_shredded_unless_the_table_allows_it(make_table: Callable[..., Path], value: str | None) -> None:
    table = make_table(5)
    assert is_shredded(data_files(table)[0])
    pv.open(table).set_properties({"delta.enableVariantShredding": value})
    old = set(data_files(table))
    shredded = pv.shred_variant(pv.parse_json(['{"id": 70}']), "id bigint")
    pv.open(table).append({"k": [70], "p": ["p0"], "v": shredded}, schema="id bigint")
    new = [file for file in data_files(table) if file not in old]
    assert [is_shredded(file) for file in new] == [False]
    assert sorted(row["id"] for row in pv.open(table).read().to_pylist()) == [0, 1, 2, 3, 4, 70]
    # PROTOCOL.md: bounds of variants only where shredding is enabled.
    assert "v" not in stats_of(table)[-1]["minValues"]


def test_a_table_without_the_feature_has_no_variant_bounds(make_table: Callable[..., Path]) -> None:
    table = make_table(5, properties={"delta.enableVariantShredding": "false"})
    assert pv.open(table).snapshot.protocol.reader_features == ("variantType",)
    assert not is_shredded(data_files(table)[0])
    (stats,) = stats_of(table)
    assert "v" not in stats["minValues"]
    assert stats["nullCount"]["v"] == 0


def test_statistics_count_and_bound(make_table: Callable[..., Path]) -> None:
    (stats,) = stats_of(make_table(7))
    assert stats["numRecords"] == 7
    assert stats["nullCount"] == {"k": 0, "p": 0, "v": 0}
    assert (stats["minValues"]["k"], stats["maxValues"]["k"]) == (0, 6)
    assert readable(stats["minValues"]["v"]) == {
        "$['id']": 0, "$['mag']": Decimal("1.5"), "$['name']": "n00000", "$['props']['a']": 0,
    }  # fmt: skip
    assert readable(stats["maxValues"]["v"]) == {
        "$['id']": 6, "$['mag']": Decimal("7.5"), "$['name']": "n00006", "$['props']['a']": 4,
    }  # fmt: skip


def test_statistics_of_ordinary_types(tmp_path: Path) -> None:
    moment = datetime(2020, 1, 2, 3, 4, 5, 678901, UTC)
    data = pa.table(
        {
            "d": pa.array([Decimal("-1.50"), Decimal("12345678901234567890.25"), None], pa.decimal128(30, 2)),
            "t": pa.array([moment, moment, moment], pa.timestamp("us", "UTC")),
            "n": pa.array([moment.replace(tzinfo=None)] * 3, pa.timestamp("us")),
            "y": pa.array([date(1969, 12, 31), None, date(2000, 2, 29)]),
            "f": pa.array([1.5, float("nan"), None]),
            "g": pa.array([1.5, float("inf"), None]),
            "s": pa.array(["b" * 50, "a", None]),
            "b": pa.array([True, None, None]),
            "l": pa.array([[1], None, []], pa.list_(pa.int32())),
            "z": pa.array([None, None, None], pa.int32()),
            "o": pa.array([{"x": 1, "y": [1]}, None, {"x": None, "y": None}]),
        }
    )
    pv.write(tmp_path / "t", data, format="delta")
    (text,) = pv.open(tmp_path / "t").snapshot.files["stats"].to_pylist()
    stats = json.loads(text, parse_float=Decimal)
    assert stats["nullCount"] == {
        "d": 1, "t": 0, "n": 0, "y": 1, "f": 1, "g": 1, "s": 1, "b": 2, "l": 1, "z": 3, "o": {"x": 2, "y": 2},
    }  # fmt: skip
    assert stats["minValues"] == {
        "d": Decimal("-1.50"), "t": "2020-01-02T03:04:05.678Z", "n": "2020-01-02T03:04:05.678", "y": "1969-12-31",
        "s": "a", "o": {"x": 1},
    }  # fmt: skip
    assert stats["maxValues"] == {
        "d": Decimal("12345678901234567890.25"), "t": "2020-01-02T03:04:05.679Z", "n": "2020-01-02T03:04:05.679",
        "y": "2000-02-29", "s": "b" * 31 + "c", "o": {"x": 1},
    }  # fmt: skip


def test_statistics_stop_at_the_indexed_columns(tmp_path: Path) -> None:
    data = {"a": [1], "v": pv.parse_json(['{"x": 1}']), "b": [2]}
    pv.write(tmp_path / "t", data, format="delta", properties={"delta.dataSkippingNumIndexedCols": "1"})
    (stats,) = stats_of(tmp_path / "t")
    assert stats["minValues"] == {"a": 1}
    assert stats["nullCount"] == {"a": 0}


def test_bounds_of_unshredded_files_are_true(make_table: Callable[..., Path]) -> None:
    table = make_table(5)
    rows = ['{"id": 9, "x": 1}', '{"id": 8, "x": "mixed"}', '{"id": 10}']
    batches = [{"k": [1], "p": ["p0"], "v": pv.parse_json([row])} for row in rows]
    pv.open(table).append(iter(batches), schema="variant")
    stats = stats_of(table)[-1]
    assert (readable(stats["minValues"]["v"]), readable(stats["maxValues"]["v"])) == (
        {"$['id']": 8},
        {"$['id']": 10},
    )


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        (pa.string(), ["a b", "x/y%", None, "ü=:", "z" * 300], ["a b", "x/y%", None, "ü=:", "z" * 300]),
        (pa.int32(), [1, -2, None], ["1", "-2", None]),
        (pa.date32(), [date(2020, 1, 2), None], ["2020-01-02", None]),
        (pa.bool_(), [True, False, None], ["true", "false", None]),
        (pa.decimal128(5, 2), [Decimal("1.50"), None], ["1.50", None]),
        (
            pa.timestamp("us", "UTC"),
            [datetime(2020, 1, 2, 3, 4, 5, 6, UTC), None],
            ["2020-01-02T03:04:05.000006Z", None],
        ),
        (pa.timestamp("us"), [datetime(2020, 1, 2, 3), None], ["2020-01-02 03:00:00.000000", None]),
    ],
)
def test_partition_values_come_back(tmp_path: Path, kind: Any, values: list[Any], texts: list[str | None]) -> None:
    data = {"p": pa.array(values, kind), "v": pv.parse_json([json.dumps({"n": i}) for i in range(len(values))])}
    pv.write(tmp_path / "t", data, format="delta", partition_by=["p"])
    found = pv.open(tmp_path / "t").snapshot
    assert {dict(p)["p"] for p in found.files["partitionValues"].to_pylist()} == set(texts)
    table = pv.open(found).to_arrow()
    assert table["p"].type == kind
    got = dict(
        zip(
            [v["n"] for v in pv.VariantArray(table["v"].combine_chunks()).to_pylist()],
            table["p"].to_pylist(),
            strict=True,
        )
    )
    assert got == dict(enumerate(values))


def test_variants_inside_structs_lists_and_maps(tmp_path: Path) -> None:
    v = pv.parse_json(['{"a": 1}', '"x"', "[1, 2]", "null"])
    field = v.arrow_field
    fields = [field.with_name("v"), pa.field("n", pa.int64())]
    struct = pa.StructArray.from_arrays([v.storage, pa.array([1, 2, 3, 4])], fields=fields)
    offsets = pa.array([0, 1, 4], pa.int32()).buffers()[1]
    listed = pa.list_(field.with_name("element"))
    lists = pa.Array.from_buffers(listed, 2, [None, offsets], children=[v.storage])
    fields = [pa.field("key", pa.string(), False), field.with_name("value")]
    entries = pa.StructArray.from_arrays([pa.array(list("abcd")), v.storage], fields=fields)
    maps = pa.Array.from_buffers(pa.map_(pa.string(), fields[1]), 2, [None, offsets], children=[entries])
    data = pa.table({"s": struct.slice(0, 2), "l": lists, "m": maps})
    pv.write(tmp_path / "t", data, format="delta")
    found = pv.open(tmp_path / "t").snapshot
    assert "variant" in found.metadata.schema_string
    table = pv.open(found).to_arrow()
    plain = v.to_pylist()
    assert pv.VariantArray(table["s"].combine_chunks().field("v")).to_pylist() == plain[:2]
    assert pv.VariantArray(table["l"].combine_chunks().values).to_pylist() == plain
    assert pv.VariantArray(table["m"].combine_chunks().items).to_pylist() == plain
    (stats,) = stats_of(tmp_path / "t")
    assert stats["nullCount"] == {"s": {"v": 0, "n": 0}, "l": 0, "m": 0}


def test_rows_roll_over_to_new_files(tmp_path: Path) -> None:
    rows = pv.parse_json([json.dumps({"n": n, "text": "x" * 200}) for n in range(2000)])
    pv.write(tmp_path / "t", {"v": rows}, format="delta", file_bytes=20_000)
    assert len(data_files(tmp_path / "t")) > 2
    assert sorted(r["n"] for r in pv.open(tmp_path / "t").read().to_pylist()) == list(range(2000))


def test_nulls_missing_columns_and_types_that_fit(tmp_path: Path) -> None:
    table = tmp_path / "t"
    schema = pa.schema(
        [pa.field("a", pa.int64()), pa.field("b", pa.string()), pv.parse_json(["1"]).arrow_field.with_name("v")]
    )
    pv.create(table, schema)
    pv.open(table).append({"v": pv.parse_json(["1", None]), "a": pa.array([5, None], pa.int16())})
    pv.open(table).append({"b": pa.array(["x"]).dictionary_encode()})
    found = pv.open(table).to_arrow()
    assert found["a"].to_pylist() == [5, None, None]
    assert found["b"].to_pylist() == [None, None, "x"]
    assert pv.VariantArray(found["v"].combine_chunks()).to_pylist() == [1, None, None]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"zz": [1]}, "unknown-column"),
        ({"k": ["no number"]}, "type-mismatch"),
        ({"v": [1]}, "type-mismatch"),
        ("text", "bad-data"),
    ],
)
def test_data_that_does_not_fit_is_refused_and_leaves_nothing(
    make_table: Callable[..., Path], data: Any, reason: str
) -> None:
    table = make_table(2)
    before = data_files(table)
    with pytest.raises(TableError) as caught:
        pv.open(table).append([data] if isinstance(data, str) else data)
    assert caught.value.reason == reason
    assert data_files(table) == before
    assert pv.open(table).snapshot.version == 0


def test_columns_that_must_not_be_null(tmp_path: Path) -> None:
    pv.create(tmp_path / "t", pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())]))
    for data, reason in (({"b": [1]}, "missing-column"), ({"a": pa.array([None], pa.int64())}, "null-value")):
        with pytest.raises(TableError) as caught:
            pv.open(tmp_path / "t").append(data)
        assert caught.value.reason == reason


@pytest.mark.parametrize(("partition_by", "names"), [("day", ("day",)), (["day"], ("day",)), (None, ()), ((), ())])
def test_partitions_are_one_column_or_several(tmp_path: Path, partition_by: Any, names: tuple[str, ...]) -> None:
    data = {"day": pa.array(["a", "b"]), "v": pv.parse_json(["1", "2"])}
    assert pv.write(tmp_path / "t", data, format="delta", partition_by=partition_by) is not None
    assert pv.open(tmp_path / "t").snapshot.metadata.partition_columns == names


@pytest.mark.parametrize(
    ("schema", "partition_by"),
    [
        (pa.schema([("a", pa.int64()), ("A", pa.int64())]), []),
        (pa.schema([("a", pa.int64())]), ["a"]),
        (pa.schema([("a", pa.int64())]), ["b"]),
        (pa.schema([("a", pa.uint64())]), []),
    ],
)
def test_schemas_that_delta_does_not_allow_are_refused(tmp_path: Path, schema: Any, partition_by: list[str]) -> None:
    with pytest.raises(TableError):
        pv.create(tmp_path / "t", schema, partition_by=partition_by)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("configuration", "features"),
    [
        ({"delta.constraints.x": "a > 1"}, ["checkConstraints"]),
        ({}, ["somethingNew"]),
    ],
)
def test_tables_that_need_more_of_a_writer_are_refused_by_name(
    make_table: Callable[..., Path], configuration: dict[str, str], features: list[str]
) -> None:
    table = make_table(1)
    log = table / "_delta_log"
    found = pv.open(table).snapshot
    protocol = found.protocol.to_dict()
    protocol["writerFeatures"] = [*protocol["writerFeatures"], *features]
    metadata = found.metadata.to_dict() | {"configuration": configuration}
    (log / f"{1:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n" + json.dumps({"metaData": metadata}))
    named = next(iter(configuration), features[0])
    with pytest.raises(TableError, match=named) as caught:
        pv.open(table).append({"k": [1]})
    assert caught.value.reason == "unsupported-feature"


def test_append_only_tables_take_no_overwrite(make_table: Callable[..., Path]) -> None:
    table = make_table(2, 2, properties={"delta.appendOnly": "true"})
    with pytest.raises(TableError) as caught:
        pv.open(table).overwrite({"k": [1]})
    assert caught.value.reason == "append-only"
    assert pv.open(table).optimize().files_removed == 2


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_that_microseconds_cannot_hold_are_refused(tmp_path: Path, zone: str | None) -> None:
    exact = pa.array([-1000, None, 1_500_000], pa.timestamp("ns", zone))
    pv.write(tmp_path / "t", {"t": exact}, format="delta")
    assert pv.open(tmp_path / "t").to_arrow()["t"].cast(exact.type).combine_chunks().equals(exact)
    for nanos in (-1, 1, 1500, -(2**63), 2**63 - 1):
        with pytest.raises(TableError) as caught:
            pv.open(tmp_path / "t").append({"t": pa.array([0, nanos], exact.type)})
        assert (caught.value.reason, caught.value.row) == ("type-mismatch", 1)
        nested = pa.array([{"t": nanos}], pa.struct([("t", exact.type)]))
        with pytest.raises(TableError) as caught:
            pv.write(tmp_path / "nested", {"s": nested}, format="delta")
        assert caught.value.reason == "type-mismatch"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_time_zone_is_not_dropped(tmp_path: Path, unit: str) -> None:
    pv.write(tmp_path / "t", {"t": pa.array([0], pa.timestamp("us"))}, format="delta")
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path / "t").append({"t": pa.array([0], pa.timestamp(unit, "Europe/Berlin"))})
    assert caught.value.reason == "type-mismatch"
    pv.open(tmp_path / "t").append({"t": pa.array([0], pa.timestamp(unit))})
    assert len(pv.open(tmp_path / "t").to_arrow()) == 2


_OTHER = pa.map_(pa.string(), pa.struct([("n", pa.int8()), ("x", pa.int8())]))
_ITEMS = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))


def test_a_slice_is_asked_for_its_own_rows(tmp_path: Path) -> None:
    rows = pa.array([[("a", None)], [("b", 2)], None], pa.map_(pa.string(), pa.int64()))
    pv.create(tmp_path / "t", pa.schema([("m", _ITEMS)]))
    pv.open(tmp_path / "t").append({"m": rows[1:]})
    assert pv.open(tmp_path / "t").to_arrow()["m"].to_pylist() == [[("b", 2)], None]
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path / "t").append({"m": rows})
    assert caught.value.reason == "null-value"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"s": {"n": 1, "other": 2}}, "unknown-column"),
        ({"s": {"N": 1, "n": 2}}, "unknown-column"),
        ({"l": [{"n": 1, "other": 2}]}, "unknown-column"),
        ({"m": pa.array([[("k", {"n": 1, "x": 2})]], _OTHER)}, "unknown-column"),
        ({"m": pa.array([[("k", {"n": None})]], pa.map_(pa.string(), pa.struct([("n", pa.int8())])))}, "null-value"),
        ({"t": pa.array([2**50], pa.timestamp("s", "UTC"))}, "type-mismatch"),
        ({"t": pa.array([2**60], pa.timestamp("ms", "UTC"))}, "type-mismatch"),
    ],
)  # fmt: skip
def test_what_would_be_lost_of_a_value_is_refused(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    inner = pa.struct([pa.field("n", pa.int64(), nullable=False)])
    kinds = {"s": inner, "l": pa.list_(inner), "m": pa.map_(pa.string(), inner), "t": pa.timestamp("us", "UTC")}
    pv.create(tmp_path / "t", pa.schema(list(kinds.items())))
    pv.open(tmp_path / "t").append({"s": [{"N": 5}]})  # Names in any case are the table's, as of whole columns.
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path / "t").append(
            {name: value if isinstance(value, pa.Array) else [value] for name, value in row.items()}
        )
    assert caught.value.reason == reason
    assert [item["s"] for item in pv.open(tmp_path / "t").to_arrow().to_pylist()] == [{"n": 5}]


_REQUIRED = pa.struct([pa.field("n", pa.int64(), nullable=False), pa.field("s", pa.string())])
_NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "struct": (_REQUIRED, [{"n": 1, "s": "a"}, None, {"n": 3, "s": None}]),
    "in a struct": (pa.struct([pa.field("k", _REQUIRED)]), [{"k": None}, None, {"k": {"n": 3, "s": None}}]),
    "in a list": (pa.list_(pa.field("element", _REQUIRED)), [[{"n": 1, "s": None}, None], None, []]),
    "in a map": (pa.map_(pa.string(), _REQUIRED), [[("a", {"n": 1, "s": None}), ("b", None)], None, []]),
}


@pytest.mark.parametrize("name", _NESTED)
def test_fields_that_must_not_be_null_below_what_may_be(tmp_path: Path, name: str) -> None:
    kind, values = _NESTED[name]
    rows = pa.table({"id": [0, 1, 2, 3], "s": pa.array([values[2], *values], kind)})
    pv.write(tmp_path / "t", rows.slice(1), format="delta", properties={"delta.enableChangeDataFeed": "true"})

    def written() -> pa.Table:
        return pv.open(tmp_path / "t").scan(["id", "s"]).to_arrow().sort_by("id")

    assert written().schema.field("s").type == kind
    assert written()["s"].to_pylist() == values
    assert pq.read_table(data_files(tmp_path / "t")[0])["s"].to_pylist() == values
    pv.open(tmp_path / "t").update({"s": "NULL"}, "id = 1")
    merge = pv.open(tmp_path / "t").merge(rows.slice(0, 2), "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    pv.open(tmp_path / "t").optimize()
    assert written()["s"].to_pylist() == [values[2], *values]
    changed = [row["s"] for row in pv.open(tmp_path / "t").changes(since=1).to_pylist()]
    assert all(item in (None, *values) for item in changed)
    assert len(changed) == 5


@pytest.mark.parametrize("levels", [20, 25, 30, 49, 60, 200])
def test_unshredded_objects_of_any_depth_are_written_with_the_bounds_that_fit(tmp_path: Path, levels: int) -> None:
    text = '{"a":' * levels + "1" + "}" * levels
    array = pv.parse_json([text] * 3)
    properties = {"delta.enableVariantShredding": "true"}
    pv.write(tmp_path / "inferred", array, format="delta", properties=properties)
    pv.write(tmp_path / "unshredded", array, format="delta", schema={}, properties=properties)
    for name in ("inferred", "unshredded"):
        assert pv.to_json(pv.open(tmp_path / name).read()).to_pylist() == [text] * 3
