"""`Table.publish` of Vortex files: tables whose Parquet files have the same values, each converted once."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.files.vortex.paths import vortex_files
from parquet_variant.tables.publishing import publish
from parquet_variant.tables.storage import LocalStorage

vortex = pytest.importorskip("vortex", reason="vortex-data is not installed")

LAYOUTS = {
    "a": ("auto", None),
    "b": ("auto", "n bigint"),
    "c": ("struct", "n bigint"),
    "sub/a": ("variant", "s string"),
}


def texts(start, stop):
    rows = ({"n": n, "s": f"x{n}", "l": [n, {"z": n / 4}], "mixed": n if n % 3 else None} for n in range(start, stop))
    return [json.dumps(row) for row in rows]


def write(path, start, stop, layout="auto", schema=None):
    variants = pv.parse_json([*texts(start, stop - 1), None])
    columns = {"id": pa.array(range(start, stop)), "s": [{"t": str(n)} for n in range(start, stop)], "v": variants}
    pv.write(
        path,
        columns,
        format="vortex",
        layout=layout,
        schema=None if schema is None else {"v": schema},
        mode="overwrite",
    )


@pytest.fixture
def files(tmp_path):
    """A directory of 50 rows in every layout, and of 10 rows of JSON text; and no rows."""
    for number, (name, (layout, schema)) in enumerate(LAYOUTS.items()):
        write(tmp_path / f"v/{name}.vortex", 10 * number, 10 * number + 10, layout, schema)
    documents = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts(40, 50)))
    structs = [{"t": str(n)} for n in range(40, 50)]
    table = pa.table({"id": pa.array(range(40, 50)), "s": structs, "v": documents})
    vortex.io.write(table, str(tmp_path / "v/json.vortex"))
    pv.write(tmp_path / "v/empty.vortex", pv.open(tmp_path / "v/a.vortex").to_arrow()[:0])
    return tmp_path / "v"


def content(table):
    values = pv.to_json(pv.VariantArray.from_arrow(table, "v")).to_pylist()
    return sorted(zip(table["id"].to_pylist(), table["s"].to_pylist(), values, strict=True), key=repr)


def stored(directory):
    tables = [table for file in vortex_files(directory) for table in [pv.open(file).to_arrow()]]
    parts = []
    for table in tables:
        if not isinstance(table["v"].type, pa.StructType):
            variants = pv.vortex.compress_json(table["v"])
            table = pv.vortex.variant_table({"id": table["id"], "s": table["s"], "v": variants})
        parts += content(table)
    return sorted(parts, key=repr)


@pytest.mark.parametrize("target", ["delta", "iceberg"])
def test_vortex_files_are_published_each_once(files, target):
    table = files.with_name("v.published")
    result = pv.open(files).publish(target)
    assert (result.files_added, result.table) == (6, str(table))
    assert content(pv.open(table, format=target).to_arrow()) == stored(files)
    assert len(stored(files)) == 50
    assert not pv.open(files).publish(target).committed
    # Every Variant is shredded, so that statistics exclude files.
    for file in (table / "data").iterdir():
        assert pv.open(file).read().is_shredded or file.name.startswith("empty")
    report = pv.open(table, format=target).scan({"n": ("$.n", "bigint")}, "n > 1000").explain()
    excluded = report.files_by_partition + report.files_by_statistics
    assert report.files_total - excluded <= 2  # only `s` is typed in the layout "variant"; no rows have no bounds
    before = {file.name: file.stat().st_mtime_ns for file in (table / "data").iterdir()}
    # A file that is touched or was copied has the content of its publication.
    os.utime(files / "a.vortex", (0, 0))
    assert not pv.open(files).publish(target).committed
    write(files / "c.vortex", 100, 110)
    (files / "b.vortex").unlink()
    result = pv.open(files).publish(target)
    assert (result.files_added, result.files_removed) == (1, 2)
    assert content(pv.open(table, format=target).to_arrow()) == stored(files)
    after = {file.name: file.stat().st_mtime_ns for file in (table / "data").iterdir()}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_formats_share_the_converted_files(files, tmp_path, capsys):
    for target in ("delta", "iceberg", "ducklake"):
        assert main(["publish", str(files), "--as", target]) == 0
        assert "6 files added, 0 removed" in capsys.readouterr().out
        assert main(["publish", str(files), "--as", target]) == 0
        assert "up to date" in capsys.readouterr().out
    table = tmp_path / "v.published"
    assert len(list((table / "data").iterdir())) == 6
    assert (tmp_path / "v.ducklake").is_file()
    assert content(pv.open(table).to_arrow()) == content(pv.open(table).to_arrow())
    assert pv.open(files).diff(table).is_equal
    assert not list(files.rglob("*.parquet"))


def test_one_file_a_glob_a_catalog_and_another_directory(files, tmp_path):
    one, several = files / "a.vortex", files / "*.vortex"
    assert pv.open(one).publish("delta").table == str(files / "a.published")
    assert len(pv.open(files / "a.published").to_arrow()) == 10
    assert pv.open(one).publish("iceberg", to=tmp_path / "one").files_added == 1
    assert len(pv.open(tmp_path / "one").to_arrow()) == 10
    assert pv.open(several).publish("delta", to=tmp_path / "several").files_added == 5
    assert len(pv.open(tmp_path / "several").to_arrow()) == 40
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path / "warehouse")}
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed")
    pv.create_namespace("db", catalog=catalog)
    assert pv.open(files).publish("iceberg", to="db.events", catalog=catalog).files_added == 6
    assert content(pv.open(pv.open("db.events", catalog=catalog).snapshot).to_arrow()) == stored(files)
    assert not pv.open(files).publish("iceberg", to="db.events", catalog=catalog).committed


def test_a_killed_conversion_and_two_at_once(files, monkeypatch):
    convert, left = publish.write_shredded_parquet, [3]

    def killed(file, dest):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        convert(file, dest)

    table = files.with_name("v.published")
    monkeypatch.setattr(publish, "write_shredded_parquet", killed)
    with pytest.raises(KeyboardInterrupt):
        pv.open(files).publish("delta")
    assert not (table / "_delta_log").exists()
    monkeypatch.undo()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: pv.open(files).publish("delta"), range(2)))
    assert sum(result.files_added for result in results) == 6
    assert content(pv.open(table).to_arrow()) == stored(files)


def test_what_is_refused(files, tmp_path):
    pv.open(files).publish("delta")
    pv.write(tmp_path / "parquet/a.parquet", pv.parse_json(["1"]))
    pv.write(tmp_path / "mixed/a.parquet", pv.parse_json(["1"]))
    pv.write(tmp_path / "mixed/a.vortex", pv.parse_json(["1"]))
    for call, match in (
        (lambda: pv.open(files).publish("vortex"), r"copy the rows with variant rewrite"),
        (lambda: pv.open(tmp_path / "v.published").publish("delta"), "publish these files again"),
        (lambda: pv.open(tmp_path / "mixed").publish("delta"), r"files \(a.parquet\) and Vortex files \(a.vortex\)"),
        (lambda: pv.open(files).publish("delta", to=str(tmp_path / "parquet")), r"hide \(a.parquet\)"),
        (lambda: pv.open(files).publish("iceberg", to=str(files)), r"would hide \(.*\.vortex\)"),
        (lambda: pv.open(tmp_path / "none.vortex").publish("delta"), "none.vortex"),
    ):
        with pytest.raises(pv.VariantError, match=match):
            call()


def test_converted_files_that_the_listing_lacks_are_reported(tmp_path, monkeypatch):
    write(tmp_path / "a.vortex", 0, 3)
    monkeypatch.setattr(LocalStorage, "list", lambda *_: iter(()))  # as if the directory was removed meanwhile
    with pytest.raises(pv.VariantError, match=r"data/a-.*\.parquet, which was just written .* publish again") as caught:
        pv.open(tmp_path / "a.vortex").publish("iceberg", to=tmp_path / "t")
    assert caught.value.reason == "missing-file"
