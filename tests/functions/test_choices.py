"""Options that accept a few values refuse every other value before they read or write anything."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv

pytest.importorskip("fastavro", reason="fastavro is not installed")

ROWS = pv.parse_json(['{"a": 1}', '{"a": 2}'])
CALLS: dict[str, Callable[[Path, Any], object]] = {
    "shred_variant": lambda _, value: pv.shred_variant(ROWS, "a bigint", layout=value),
    "unshred_variant": lambda _, value: pv.unshred_variant(ROWS, on_conflict=value),
    "to_json": lambda _, value: pv.to_json(ROWS, on_conflict=value),
    "parquet.read": lambda path, value: pv.open(path / "a.parquet").read(on_conflict=value),
    "parquet.scan": lambda path, value: pv.open(path / "a.parquet").scan(["v"], errors=value),
    "parquet.write": lambda path, value: pv.write(path / "new", ROWS, layout=value),
    "parquet.write annotation": lambda path, value: pv.write(path / "new", ROWS, annotation=value),
    "parquet.rewrite layout": lambda path, value: pv.open(path / "a.parquet").rewrite(path / "new", layout=value),
    "parquet.rewrite": lambda path, value: pv.open(path / "a.parquet").rewrite(path / "new", on_conflict=value),
    "iceberg.write": lambda path, value: pv.write(path / "iceberg", {"v": ROWS}, format="iceberg", mode=value),
    "iceberg.commit_files": lambda path, value: pv.open(path / "iceberg").commit_files([], mode=value),
    "delta.write": lambda path, value: pv.write(path / "delta", {"v": ROWS}, format="delta", mode=value),
    "delta.commit_files": lambda path, value: pv.open(path / "delta").commit_files([], mode=value),
    "delta.read": lambda path, value: pv.open(path / "delta", version=value).read(),
    "ingest": lambda path, value: pv.ingest(path / "a.ndjson", path / "new", readers=value),
    "diff": lambda path, value: pv.open(path / "a.ndjson").diff(value),
}

# Options of other types: calls, and values that they refuse.
OTHERS: dict[str, tuple[Callable[[Path, Any], object], list[Any]]] = {
    "ingest exclude": (lambda path, value: pv.ingest(path / "a.ndjson", path / "new", exclude=value), [5, [1]]),
    "ingest parse": (lambda path, value: pv.ingest(path / "a.ndjson", path / "new", parse=value), ["x", 5]),
    "ingest sample": (lambda path, value: pv.ingest(path / "a.ndjson", path / "new", sample=value), ["x", [1]]),
    "ingest split_bytes": (
        lambda path, value: pv.ingest(path / "a.ndjson", path / "new", split_bytes=value),
        ["x", 2.5],
    ),
    "ingest sort_by": (lambda path, value: pv.ingest(path / "a.ndjson", path / "new", sort_by=value), [5, None]),
    "ingest bloom_filters": (lambda path, value: pv.ingest(path / "a.ndjson", path / "new", bloom_filters=value), [5]),
    "ingest partition_by": (
        lambda path, value: pv.ingest(path / "a.ndjson", path / "new", partition_by=value),
        [5, b"a"],
    ),
    "ingest progress": (lambda path, value: pv.ingest(path / "a.ndjson", path / "new", progress=value), ["x"]),
    "ingest detect": (
        lambda path, value: pv.ingest(path / "a.ndjson", path / "new", detect_timestamps=value),
        ["x", 5],
    ),
    "ingest dest": (lambda path, value: pv.ingest(path / "a.ndjson", value), [5, b"a"]),
    "profile": (lambda _, value: pv.profile(value), [5, b"a", None]),
    "diff factor": (lambda path, value: pv.open(path / "a.ndjson").diff(path / "a.ndjson", factor=value), ["x", None]),
    "diff min_share": (
        lambda path, value: pv.open(path / "a.ndjson").diff(path / "a.ndjson", min_share=value),
        ["x", [1]],
    ),
    "diff ignore": (lambda path, value: pv.open(path / "a.ndjson").diff(path / "a.ndjson", ignore=value), [5, None]),
    "diff sample": (
        lambda path, value: pv.open(path / "a.ndjson").diff(path / "a.ndjson", sample_bytes=value),
        ["x", 0.5],
    ),
    "publish": (lambda _, value: pv.open(value).publish("iceberg"), [5, b"a"]),
    "engine": (lambda path, value: pv.open(path / "delta", engine=value).delete("v:a::int = 1"), [5, "spark"]),
    "retention": (lambda path, value: pv.open(path / "delta").vacuum(retention=value), [5, "7 days"]),
    "file_bytes": (lambda path, value: pv.open(path / "delta").optimize(file_bytes=value), ["x", 0]),
    "rollback": (lambda path, value: pv.open(path / "iceberg").restore(version=value), [[], "x", None]),
    "drop_reference": (lambda path, value: pv.open(path / "iceberg").drop_reference(value), [[], 5]),
    "add_columns": (lambda path, value: pv.open(path / "iceberg").add_columns(value), [5, ["x"]]),
    "write threads": (lambda path, value: pv.write(path / "new", ROWS, threads=value), ["x", 0, 1.5]),
    "write variants": (lambda path, value: pv.write(path / "new", ROWS, variants=value), [5, b"v"]),
    "write encodings": (lambda path, value: pv.write(path / "new", ROWS, encodings=value), [5, "x"]),
    "validate limit": (lambda path, value: pv.open(path / "a.parquet").validate(limit=value), ["x", -1]),
    "sql_view": (lambda _, value: pv.open(value).sql_view(), [5, b"a"]),
    "sql_view columns": (lambda path, value: pv.open(path / "a.parquet").sql_view(columns=value), [5, True]),
    "sql_view name": (lambda path, value: pv.open(path / "a.parquet").sql_view(name=value), [5, None]),
    "compat": (lambda path, value: pv.open(path / "a.parquet").compat(engines=value), [5, b"a"]),
    "delta.append": (lambda path, value: pv.open(path / "delta").append(value), [5, object()]),
    "delta.append txn": (
        lambda path, value: pv.open(path / "delta").append({"v": ROWS}, batch=value),
        ["ab", (1, 2), ""],
    ),
    "delta.append schema": (lambda path, value: pv.open(path / "delta").append({"v": ROWS}, schema=value), [5, [1]]),
    "delta.scan": (lambda path, value: pv.open(path / "delta").scan(value), [5, b"a"]),
    "delta.snapshot": (lambda _, value: pv.open(value).snapshot, [5, b"a"]),
    "delta.history": (lambda path, value: pv.open(path / "delta").history(limit=value), ["x", -1]),
    "delta.changes": (lambda path, value: pv.open(path / "delta").changes(value), ["x", None]),
    "delta.merge": (
        lambda path, value: pv.open(path / "delta").merge({"v": ROWS}, "a", source_alias=value),
        [5, "target"],
    ),
    "iceberg.append": (
        lambda path, value: pv.open(path / "iceberg").append({"v": ROWS}, batch=value),
        ["ab", (1, 2)],
    ),
    "iceberg branch": (lambda path, value: pv.open(path / "iceberg", branch=value).append({"v": ROWS}), [[1], 5]),
    "iceberg.write": (
        lambda path, value: pv.write(path / "new", {"v": ROWS}, format="iceberg", partition_by=value),
        [5, [1]],
    ),
    "iceberg location": (
        lambda path, value: pv.write(path / "new", {"v": ROWS}, format="iceberg", location=value, mode="replace"),
        [5, b"a"],
    ),
    "iceberg options": (lambda path, value: pv.open(path / "iceberg", storage_options=value).read(), ["x", 5]),
    "iceberg snapshot": (lambda path, value: pv.open(path / "iceberg", version=value).read(), [[1], "x"]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("choices")
    (path / "a.ndjson").write_text('{"a": 1}\n')
    pv.write(path / "a.parquet", ROWS)
    pv.write(path / "iceberg", {"v": ROWS}, format="iceberg")
    pv.write(path / "delta", {"v": ROWS}, format="delta")
    return path


@pytest.mark.parametrize("value", ["append ", 5, [[]]])
@pytest.mark.parametrize("name", CALLS)
def test_other_values_are_refused(name: str, value: Any, folder: Path) -> None:
    with pytest.raises(pv.VariantError):
        CALLS[name](folder, value)
    assert not (folder / "new").exists()
    assert [len(pv.open(folder / "iceberg").history()), pv.open(folder / "delta").snapshot.version] == [1, 0]


@pytest.mark.parametrize("name", OTHERS)
def test_values_of_other_types_are_refused(name: str, folder: Path) -> None:
    call, values = OTHERS[name]
    for value in values:
        with pytest.raises(pv.VariantError):
            call(folder, value)
    assert not (folder / "new").exists()


def test_layouts_and_conflicts_of_rewritten_vortex_files(folder: Path) -> None:
    pytest.importorskip("vortex", reason="vortex-data is not installed")
    for option in ({"layout": []}, {"layout": "bogus"}, {"on_conflict": "bogus"}):
        with pytest.raises(pv.VariantError):
            pv.open(folder / "a.parquet").rewrite(folder / "new.vortex", **option)
    for policy in ("bogus", []):
        with pytest.raises(pv.VariantError):
            pv.vortex.compress_json(["1"], policy)
