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
    "parquet.read": lambda path, value: pv.parquet.read(path / "a.parquet", on_conflict=value),
    "parquet.scan": lambda path, value: pv.parquet.scan(path / "a.parquet", ["v"], errors=value),
    "parquet.write": lambda path, value: pv.parquet.write(path / "new", ROWS, layout=value),
    "parquet.write annotation": lambda path, value: pv.parquet.write(path / "new", ROWS, annotation=value),
    "parquet.rewrite layout": lambda path, value: pv.parquet.rewrite(path / "a.parquet", path / "new", layout=value),
    "parquet.rewrite": lambda path, value: pv.parquet.rewrite(path / "a.parquet", path / "new", on_conflict=value),
    "iceberg.write": lambda path, value: pv.iceberg.write(path / "iceberg", {"v": ROWS}, mode=value),
    "iceberg.commit_files": lambda path, value: pv.iceberg.commit_files(path / "iceberg", [], mode=value),
    "delta.write": lambda path, value: pv.delta.write(path / "delta", {"v": ROWS}, mode=value),
    "delta.commit_files": lambda path, value: pv.delta.commit_files(path / "delta", [], mode=value),
    "delta.read": lambda path, value: pv.delta.read(path / "delta", version=value),
    "ingest": lambda path, value: pv.ingest(path / "a.ndjson", path / "new", readers=value),
    "diff": lambda path, value: pv.diff(path / "a.ndjson", value),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("choices")
    (path / "a.ndjson").write_text('{"a": 1}\n')
    pv.parquet.write(path / "a.parquet", ROWS)
    pv.iceberg.write(path / "iceberg", {"v": ROWS})
    pv.delta.write(path / "delta", {"v": ROWS})
    return path


@pytest.mark.parametrize("value", ["append ", 5, [[]]])
@pytest.mark.parametrize("name", CALLS)
def test_other_values_are_refused(name: str, value: Any, folder: Path) -> None:
    with pytest.raises(pv.VariantError):
        CALLS[name](folder, value)
    assert not (folder / "new").exists()
    assert [len(pv.iceberg.history(folder / "iceberg")), pv.delta.snapshot(folder / "delta").version] == [1, 0]


def test_layouts_and_conflicts_of_rewritten_vortex_files(folder: Path) -> None:
    pytest.importorskip("vortex", reason="vortex-data is not installed")
    for option in ({"layout": []}, {"layout": "bogus"}, {"on_conflict": "bogus"}):
        with pytest.raises(pv.VariantError):
            pv.vortex.rewrite(folder / "a.parquet", folder / "new.vortex", **option)
    for encoding in ("bogus", None, []):
        with pytest.raises(pv.VariantError):
            pv.vortex.compress_json(["1"], encoding=encoding)
