"""An ingest of little data is never larger than unshredded because of its columns."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import zstandard

import parquet_variant as pv

DATA = Path(__file__).parents[2].parent / "shared" / "data"


def documents(name: str, rows: int) -> list[str]:
    import os

    folder = Path(os.environ.get("VARIANT_TEST_DATA", DATA.parent)) / "data"
    path = next(folder.glob(f"{name}.ndjson*"), None)
    if path is None:
        pytest.skip(f"no {name}.ndjson in {folder}: set VARIANT_TEST_DATA to where it is")
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file) if path.suffix == ".zst" else file
        text = stream.read(rows * 20_000)
    return [line.decode() for line in islice(text.splitlines(), rows)]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("gharchive", 100),
        ("gharchive", 3000),
        ("cve_v5", 300),
        ("cve_v5", 3000),
        ("usgs_earthquakes", 500),
        ("windows_events", 1000),
    ],
)
@pytest.mark.parametrize("layout", ["parquet", "delta"])
def test_small_files_are_not_larger_than_unshredded_ones(name: str, rows: int, layout: Any, tmp_path: Path) -> None:
    if layout == "delta" and rows > 500:
        return
    texts = documents(name, rows)
    source = tmp_path / "a.ndjson"
    source.write_text("\n".join(texts))
    chosen = pv.ingest(source, tmp_path / "auto", format=layout)
    unshredded = pv.ingest(source, tmp_path / "unshredded", format=layout, schema="variant")
    # Tasks cut the rows at other places than the comparison does, so the sizes are not exactly the compared ones.
    assert chosen.bytes_written <= unshredded.bytes_written * 1.01
    auto, unshredded_rows = (pv.open(tmp_path / name).read() for name in ("auto", "unshredded"))
    assert pv.equals(auto, unshredded_rows).to_pylist() == [True] * rows


def test_the_schema_does_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("\n".join(documents("gharchive", 3000)))
    results = [pv.ingest(tmp_path / "a.ndjson", tmp_path / f"{threads}", threads=threads) for threads in (1, 8)]
    tasks = pv.ingest(tmp_path / "a.ndjson", tmp_path / "tasks", threads=8, split_bytes=4 << 20)
    # The threads of a small input write columns of one file.
    assert [len(result.files) for result in (*results, tasks)] == [1, 1, 2]
    assert results[0].schema == results[1].schema == tasks.schema
    one, threaded = (pv.open(tmp_path / name).read() for name in ("1", "8"))
    assert pv.to_json(one).equals(pv.to_json(threaded))


def test_columns_that_save_space_are_kept_and_the_reason_of_others_is_given(tmp_path: Path) -> None:
    numbers = random.Random(1)
    rows = [{"id": n, "kind": numbers.choice("abc"), "price": numbers.random()} for n in range(3000)]
    (tmp_path / "a.ndjson").write_text("\n".join(map(json.dumps, rows)))
    result = pv.ingest(tmp_path / "a.ndjson", tmp_path / "a")
    assert result.schema is not None
    assert result.schema.to_ddl().startswith("id bigint, kind string")
    (tmp_path / "b.ndjson").write_text("\n".join(documents("gharchive", 100)))
    result = pv.ingest(tmp_path / "b.ndjson", tmp_path / "b")
    assert result.inference is not None
    assert "larger" in result.inference.decision("$.payload").reason
    assert result.inference.decision("$.payload").type is None
    assert result.schema == result.inference.schema


def test_explicit_choices_are_not_changed(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("\n".join(documents("gharchive", 100)))
    for number, options in enumerate(
        [
            {"policy": pv.AutoPolicy(max_columns=5)},
            {"policy": "spark"},
            {"readers": "duckdb"},
            {"sort_by": "$.created_at"},
            {"bloom_filters": "$.id"},
            {"schema": "id string, type string"},
        ]
    ):
        result = pv.ingest(tmp_path / "a.ndjson", tmp_path / f"{number}", **options)
        assert result.schema is not None
        assert result.schema.kind == "object"


def test_a_few_rows_with_many_columns_are_not_shredded(tmp_path: Path) -> None:
    for name in ("cve_v5", "usgs_earthquakes"):
        (tmp_path / "a.ndjson").write_text("\n".join(documents(name, 10)))
        result = pv.ingest(tmp_path / "a.ndjson", tmp_path / name)
        assert result.bytes_written < 20_000
        assert result.inference is not None
        assert "larger" in result.inference.decision("$").reason


@pytest.mark.parametrize("types", ["auto!", {"$.k0.at": "timestamp!"}])
def test_strings_that_were_typed_are_columns_whose_types_later_loads_keep(tmp_path: Path, types: Any) -> None:
    """The columns were left out of small files, so that the next load had strings."""
    row = {f"k{n}": {"at": "2026-01-02T00:00:00Z" if n == 0 else n, "b": f"b{n}"} for n in range(30)}
    source = tmp_path / "a.ndjson"
    source.write_text(json.dumps(row) + "\n")
    first = pv.ingest(source, tmp_path / "t", types=types)
    assert first.schema is not None
    assert [str(leaf.type) for path, leaf in first.schema.leaves() if path.shorthand == "$.k0.at"] == [
        "timestamp[us, tz=UTC]"
    ]
    pv.ingest(source, tmp_path / "t", mode="append")
    assert [str(value) for value in pv.open(tmp_path / "t").scan({"at": "$.k0.at"}).to_arrow()["at"].to_pylist()] == [
        "2026-01-02 00:00:00+00:00"
    ] * 2
