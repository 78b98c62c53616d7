"""Rewriting keeps every value, whatever chain of layouts it goes through."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
import variant_strategies as testing
from parquet_variant.errors import MalformedVariantError, VariantFileError

LAYOUTS = ["unshredded", "final", "draft-paths", "draft-object"]


@given(
    rows=st.lists(st.none() | testing.variants(max_leaves=6), min_size=1, max_size=5),
    schemas=st.lists(testing.shredding_schemas(), min_size=1, max_size=2),
    chain=st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=4),
)
def test_chains_of_layouts_give_the_start(rows, schemas, chain, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    pv.write(folder / "0.parquet", pv.VariantArray.from_variants(rows), schema=schemas[0])
    for number, layout in enumerate(chain):
        schema = schemas[number % len(schemas)] if number % 2 else None
        pv.open(folder / f"{number}.parquet").rewrite(folder / f"{number + 1}.parquet", layout=layout, schema=schema)
    assert list(pv.open(folder / f"{len(chain)}.parquet").read()) == rows


def test_a_directory_keeps_its_shape(tmp_path):
    array = pv.VariantArray.from_pylist([{"a": 1}, None])
    for name in ("x/a.parquet", "x/y/b.parquet"):
        pv.write(tmp_path / name, array, schema="a int")
    infos = pv.open(tmp_path / "x").rewrite(tmp_path / "out", layout="unshredded")
    assert [info.rows for info in infos] == [2, 2]
    assert sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.parquet")) == [
        "a.parquet",
        "y/b.parquet",
    ]
    assert pv.open(tmp_path / "out").read().layout == "unshredded"
    with pytest.raises(VariantFileError, match="already exists"):
        pv.open(tmp_path / "x").rewrite(tmp_path / "out")


@pytest.mark.parametrize("values", [["01", "01"], ["01", "1"]], ids=["one partition", "two"])
def test_a_partitioned_directory_keeps_its_columns_and_their_types(tmp_path, values):
    source = tmp_path / "source"
    lines = [f'{{"k": {number}, "p": "{value}"}}\n' for number, value in enumerate(values)]
    (tmp_path / "rows.ndjson").write_text("".join(lines))
    pv.ingest(tmp_path / "rows.ndjson", source, columns=["k"], partition_by=["p=$.p:string"])
    for number, folder in enumerate(source.glob("p=*")):  # which may have directories without a column
        (folder / f"part {number}").mkdir()
        for file in folder.glob("*.parquet"):
            file.rename(folder / f"part {number}" / file.name)
    wanted = sorted(zip([0, 1], values, strict=True))
    for name, opened in {
        "of a path": source,
        "of a glob": f"{source}/*/*/*.parquet",
        "of a list": [str(source)],
    }.items():
        pv.open(opened).rewrite(tmp_path / name)
        rows = pv.open(tmp_path / name).to_arrow()
        assert sorted(zip(rows["k"].to_pylist(), rows["p"].to_pylist(), strict=True)) == wanted, name


@pytest.mark.parametrize("values", [["01", "01"], ["01", "1"]], ids=["one partition", "two"])
def test_partition_columns_are_columns_of_vortex_files(tmp_path, values):
    pytest.importorskip("vortex")
    for number, value in enumerate(values):
        (tmp_path / f"source/p={value}").mkdir(parents=True, exist_ok=True)
        columns = {"k": [number], "v": pv.from_python([{"n": number}])}
        pv.write(tmp_path / f"source/p={value}/{number}.parquet", columns)
    wanted = pv.open(tmp_path / "source").to_arrow().select(["k", "p"])
    pv.open(tmp_path / "source").rewrite(tmp_path / "made", format="vortex")
    assert pv.open(tmp_path / "made").to_arrow().select(["k", "p"]).sort_by("k") == wanted.sort_by("k")


def test_one_schema_is_inferred_of_all_files(tmp_path):
    for number in range(2):
        rows = [{"a": n, f"only{number}": f"x{n}"} for n in range(200)]
        pv.write(tmp_path / "in" / f"{number}.parquet", pv.VariantArray.from_pylist(rows), row_group_bytes=500)
    pv.open(tmp_path / "in").rewrite(tmp_path / "out", schema="infer")
    found = pv.open(tmp_path / "out").read()
    assert found.schema is not None
    assert found.schema.to_ddl() == "a bigint, only0 string, only1 string"
    assert found == pv.open(tmp_path / "in").read()


@pytest.mark.parametrize(("codec", "level"), [("zstd", 99), ("gzip", 0), ("brotli", 12), ("zstd", 2.5), ("zstd", "x")])
def test_a_level_that_a_codec_does_not_have_is_refused(tmp_path, codec, level):
    with pytest.raises(VariantFileError, match=f"compression_level is {level!r}"):
        pv.write(tmp_path / "a", pv.VariantArray.from_pylist([1]), compression=codec, compression_level=level)


def test_an_option_that_cannot_be_is_refused_before_anything_is_read(tmp_path):
    pv.write(tmp_path / "a.parquet", pv.VariantArray.from_pylist([{"a": 1}]))
    steps = []
    with pytest.raises(VariantFileError, match="compression is 'nope'"):
        pv.open(tmp_path / "a.parquet").rewrite(
            tmp_path / "b.parquet", schema="infer", compression="nope", progress=lambda *step: steps.append(step)
        )
    assert steps == []


def test_other_columns_and_variants_come_along(tmp_path):
    columns = {
        "v": pv.VariantArray.from_pylist([{"a": 1}, 2]),
        "w": pv.VariantArray.from_pylist([{"a": 3}, 4]),
        "id": pa.array([1, 2], pa.int8()),
        "ts": pa.array([1, 2], pa.timestamp("ns", "Europe/Berlin")),
    }
    pv.write(tmp_path / "a.parquet", columns)
    with pytest.raises(VariantFileError, match="choose one with column="):
        pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", schema="a int")
    pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", schema="a int", column="w")
    table = pv.open(tmp_path / "b.parquet").to_arrow()
    assert table.schema.field("ts").type == columns["ts"].type
    assert table["id"].to_pylist() == [1, 2]
    layouts = {name: pv.VariantArray(table[name]).layout for name in "vw"}
    assert layouts == {"v": "unshredded", "w": "final"}


def test_row_groups_bound_the_memory(tmp_path, monkeypatch):
    rows = pv.VariantArray.from_pylist([{"a": n, "b": "x" * 100} for n in range(400)])
    pv.write(tmp_path / "a.parquet", rows, schema="a int", row_group_bytes=5_000)
    sizes = []
    write_batch = pv.VariantWriter.write_batch

    def spy(self, columns):
        sizes.append(len(columns))
        write_batch(self, columns)

    monkeypatch.setattr(pv.VariantWriter, "write_batch", spy)
    pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", layout="unshredded", row_group_bytes=5_000)
    assert len(sizes) > 5
    assert max(sizes) < 100
    assert sum(sizes) == 400


def test_broken_values_are_reported_with_their_row(tmp_path):
    good, bad = pv.Variant.from_python({"a": 1}), b"\x02\x09"
    rows = [{"metadata": good.metadata, "value": good.value}] * 7 + [{"metadata": good.metadata, "value": bad}]
    kind = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    pq.write_table(pa.table({"v": pa.array(rows, kind)}), tmp_path / "a.parquet", row_group_size=4)
    with pytest.raises(MalformedVariantError) as caught:
        pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", schema="a int")
    assert (caught.value.row, caught.value.file) == (7, str(tmp_path / "a.parquet"))
    assert not (tmp_path / "b.parquet").exists()


def test_rows_can_be_sorted_and_filters_added(tmp_path):
    rows = pv.VariantArray.from_pylist([{"id": f"{n * 7919 % 1000:03}"} for n in range(1000)])
    pv.write(tmp_path / "a.parquet", rows)
    options = {"schema": "id string", "sort_by": ["$.id:string"], "bloom_filters": ["$.id"]}
    pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", **options)
    found = [value["id"] for value in pv.open(tmp_path / "b.parquet").read().to_pylist()]
    assert found == sorted(found) == sorted(value["id"] for value in rows.to_pylist())
    (leaf,) = (
        column
        for column in map(pq.ParquetFile(tmp_path / "b.parquet").metadata.row_group(0).column, range(4))
        if column.path_in_schema == "v.typed_value.id.typed_value"
    )
    assert leaf.bloom_filter_offset is not None


@pytest.mark.parametrize(
    "rows",
    [
        [{"paths": ["a"], "n": 1}],
        [{"object": {"a": 1}}],
        [{"array": [1]}],
        [{"metadata": "m", "value": "x"}],
        [{"metadata": "m", "value": 3}],
        [{"metadata": b"m", "value": b"x"}],
        ["a"],
    ],
)
def test_columns_whose_names_are_those_of_a_variants_parts_stay_as_they_are(tmp_path, rows):
    column = pa.array(rows)
    table = {"v": pv.parse_json(['{"a":1}']), "metadata": column, "s": pa.StructArray.from_arrays([column], ["x"])}
    pv.write(tmp_path / "a.parquet", table)
    pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", layout="final")
    pv.write(tmp_path / "t", table, format="delta")
    for found in (
        pv.open(tmp_path / "a.parquet").to_arrow(),
        pv.open(tmp_path / "b.parquet").to_arrow(),
        pv.open(tmp_path / "t").to_arrow(),
    ):
        for name in ("metadata", "s"):
            assert found[name].to_pylist() == table[name].to_pylist()
        assert str(found["metadata"].type).replace("element:", "item:") == str(column.type)


def test_progress_of_a_table_is_reported(tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", pv.parse_json(['{"a": 1}']))
    steps: list[tuple[str, int, int]] = []
    pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", progress=lambda *step: steps.append(step))
    assert steps == [("rewrite", 0, 1), ("rewrite", 1, 1)]
