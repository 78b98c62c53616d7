"""The golden tables, read whole: what `info.txt` says, and what their plain columns say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv


def plain(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pv.VariantArray(array).to_pylist()


@pytest.mark.parametrize("version", [0, 1, 2, None])
def test_shredded_preview_table_holds_what_its_script_wrote(delta_golden: Path, version: int | None) -> None:
    table = pv.open(delta_golden / "spark-shredded-variant-preview-delta", version=version).to_arrow()
    # info.txt: ids 0 to 99, then one more row with id 0, then one with id 1.
    numbers = list(range(100)) + {0: [], 1: [0], 2: [0, 1], None: [0, 1]}[version]
    assert sorted(table["id"].to_pylist()) == sorted(numbers)
    ids = table["id"].to_pylist()
    v = [{"key": n} for n in ids]
    assert plain(table["v"]) == v
    combined = {name: table[name].combine_chunks() for name in table.column_names}

    array = combined["array_of_variants"]
    assert array.is_valid().to_pylist() == [True] * len(ids)
    flat = iter(plain(array.values))
    assert [[next(flat) for _ in row] for row in array.to_pylist()] == [[x, None, x, None, x] for x in v]

    assert plain(combined["struct_of_variants"].field("v")) == v

    maps = combined["map_of_variants"]
    assert maps.keys.to_pylist() == [key for n in ids for key in (str(n), "nullKey")]
    assert plain(maps.items) == [value for x in v for value in (x, None)]

    structs = combined["array_of_struct_of_variants"].values
    assert structs.is_valid().to_pylist() == [True, True, False, True, False, True] * len(ids)
    assert plain(structs.field("v")) == [y for x in v for y in (x, None, None, x, None, x)]

    inner = combined["struct_of_array_of_variants"].field("v").values
    assert plain(inner) == [y for x in v for y in (None, x)]


def test_stats_table_holds_what_its_plain_column_says(delta_golden: Path) -> None:
    table = pv.open(delta_golden / "variant-stats-no-checkpoint").to_arrow()
    rows = table["i"].to_pylist()
    assert rows == list(range(100, 110))
    assert plain(table["v"]) == [{"id": i - 100, "name": str(110 - i)} for i in rows]
    nested = table["nv"].combine_chunks().field("v")
    assert plain(nested) == [{"id": i - 90, "name": str(120 - i)} for i in rows]


def test_struct_table_holds_what_its_plain_columns_say(delta_golden: Path) -> None:
    table = pv.open(delta_golden / "variant-stats-with-struct-no-checkpoint").to_arrow()
    numbers = [row["i"] for row in table["s"].to_pylist()]
    assert sorted(numbers) == list(range(200, 210))
    assert [row["j"] for row in table["s"].to_pylist()] == [f"str_{n}" for n in numbers]
    assert plain(table["v"]) == [{"key": n} for n in numbers]


def test_golden_tables_are_extracted_with_files_pruned(delta_golden: Path) -> None:
    query = pv.open(delta_golden / "variant-stats-with-struct-no-checkpoint").scan(
        {"key": ("$.key", "long")}, "key >= 207"
    )
    assert sorted(query.to_arrow()["key"].to_pylist()) == [207, 208, 209]
    report = query.explain()
    assert (report.files_total, report.files_by_statistics) == (2, 1)


def test_version_beyond_the_log_is_refused(delta_golden: Path) -> None:
    with pytest.raises(pv.VariantError, match="version 7") as caught:
        _ = pv.open(delta_golden / "variant-stats-no-checkpoint", version=7).snapshot
    assert caught.value.reason == "no-such-version"
