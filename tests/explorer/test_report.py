"""What the explorer says of tables, without a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.quality.explorer.report import read_footers
from parquet_variant.quality.sources import data_of


def _paths(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows of the page's table by path."""
    table = document["paths"]
    names: list[str] = []
    for parent, key in zip(table["parent"], table["key"], strict=True):
        names.append("$" if parent < 0 else names[parent] + ("[*]" if key is None else f".{key}"))
    return {name: {column: table[column][at] for column in table} for at, name in enumerate(names)}


def test_every_path_is_there_typed_or_not(table: Path) -> None:
    document = pv.open(table).explore().to_dict()
    paths = _paths(document)
    assert document["kind"] == "parquet"
    assert document["rows"] == 6000
    assert paths["$.id"]["kind"] == "bigint"
    assert paths["$.tags"]["kind"] == "array"
    assert paths["$.tags[*]"]["kind"] == "string"
    assert paths["$.issue.title"]["kind"] is None
    assert paths["$.issue.title"]["column"] == "string"
    assert paths["$.issue.title"]["count"] == pytest.approx(500, rel=0.05)
    assert "15%" in paths["$.issue"]["reason"]
    assert set(paths["$.size"]["kinds"]) == {"int64", "string"}


def test_bytes_by_row_group_are_those_of_the_footers(table: Path) -> None:
    footers = read_footers(data_of(pv.open(table)).files)
    inspected = pv.open(str(table)).inspect().columns[0]
    assert len(footers.groups) > 4
    assert sum(rows for _, rows in footers.groups) == 6000
    assert (
        sum(chunk[0] for leaf in footers.leaves.values() for chunk in leaf.chunks)
        == sum(p.bytes for p in inspected.paths) + inspected.metadata_bytes
    )
    assert all(len(leaf.chunks) == len(footers.groups) for leaf in footers.leaves.values())


def test_files_that_are_shredded_differently_stand_in_one_table(tmp_path: Path) -> None:
    rows = pv.parse_json(['{"a": 1, "b": "x"}', '{"a": 2}'])
    pv.write(tmp_path / "1.parquet", rows, schema="a bigint")
    pv.write(tmp_path / "2.parquet", rows, schema="b string")
    pv.write(tmp_path / "3.parquet", rows)
    document = pv.open(tmp_path).explore().to_dict()
    assert [shape["layout"] for shape in document["footers"]["shapes"]] == ["final", "final", "unshredded"]
    assert {_paths(document)[path]["kind"] for path in ("$.a", "$.b")} == {"bigint", "string"}


@pytest.mark.parametrize("layout", ["draft-paths", "draft-object"])
def test_drafts_are_explored(tmp_path: Path, layout: str) -> None:
    rows = pv.parse_json(['{"a": 1}', '{"a": 2}'])
    pv.write(tmp_path / "1.parquet", rows, schema="a bigint", layout=layout)
    assert _paths(pv.open(tmp_path).explore().to_dict())["$.a"]["count"] == 2


def test_a_delta_table_has_its_versions(tmp_path: Path) -> None:
    target = str(tmp_path / "table")
    pv.write(target, {"v": pv.parse_json(['{"n": 1}'])}, format="delta")
    pv.open(target).append({"v": pv.parse_json(['{"n": 2}'])})
    document = pv.open(target).explore().to_dict()
    assert (document["kind"], document["rows"]) == ("delta", 2)
    assert [item["version"] for item in document["versions"]] == [1, 0]
    assert pv.open(target, version=0).explore().to_dict()["rows"] == 1


def test_vortex_files_are_explored(tmp_path: Path) -> None:
    pytest.importorskip("vortex")
    pv.write(tmp_path / "a.vortex", pv.parse_json(['{"a": 1}', '{"a": "x"}']))
    document = pv.open(tmp_path / "a.vortex").explore().to_dict()
    assert (document["kind"], document["rows"]) == ("vortex", 2)
    assert _paths(document)["$.a"]["kinds"] == {"int8": 1, "string": 1}


def test_json_is_explored_before_any_ingest_and_its_bad_lines_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    good = "".join(json.dumps({"a": n, "b": {"c": f"x{n}"}}) + "\n" for n in range(500))
    file.write_bytes(good.encode() + b'{bad\n{"a": "\xff"}\n')
    document = pv.open(file).explore().to_dict()
    assert document["kind"] == "json"
    assert document["sample"]["rows"] == 500
    assert document["sample"]["ddl"] == "a bigint, b struct<c: string>"
    assert _paths(document)["$.b.c"]["chosen"] == 1


def test_missing_data_is_reported(tmp_path: Path, table: Path) -> None:
    for source, options in (
        (tmp_path / "nothing", {}),
        (table, {"column": "other"}),
        (table, {"version": 1}),
    ):
        with pytest.raises(pv.VariantFileError):
            pv.open(source, **options).explore()


def test_texts_in_data_are_never_markup(tmp_path: Path) -> None:
    bad = ["<script>alert(1)</script>", "</script><script>alert(2)</script>", '"onload=alert(3) x="', "<!--", "${data}"]
    folder = tmp_path / "<img src=x onerror=alert(4)>"
    folder.mkdir()
    rows = [json.dumps({text: text, "k": {text: [text]}}) for text in bad]
    pv.write(folder / "</title><script>.parquet", pv.parse_json(rows))
    page = pv.open(folder).explore().to_html()
    assert "<img" not in page
    assert all(text not in page for text in bad[:3])
    # The only elements that run are the page's own.
    assert len(re.findall(r"<script", page)) == 2
    found = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]+)</script>', page)
    assert found is not None
    document = json.loads(zlib.decompress(base64.b64decode(found[1])))
    assert set(bad) <= set(document["paths"]["key"])


def test_a_wide_table_of_many_files_makes_a_small_page(tmp_path: Path) -> None:
    rows = [
        json.dumps({f"key_{n % 10}_{n}": n for n in range(start, start + 1000)}) for start in range(0, 10_000, 1000)
    ]
    pv.write(tmp_path / "0.parquet", pv.parse_json(rows), schema="key_0_0 bigint, key_1_1 bigint")
    data = (tmp_path / "0.parquet").read_bytes()
    for number in range(1, 1000):
        (tmp_path / f"{number}.parquet").write_bytes(data)
    found = pv.open(tmp_path).explore()
    assert len(found.to_dict()["paths"]["key"]) == 10_001
    assert len(found.to_html()) <= 3_000_000
    assert found.rows == 10_000


@pytest.mark.parametrize("layout", ["pretty", "array", "spaces", "blank lines", "crlf", "compact"])
def test_rows_of_json_are_counted_for_any_white_space(tmp_path: Path, layout: str) -> None:
    rows = [{"a": number, "b": {"c": "x" * 5, "d": [1, 2]}} for number in range(10)]
    texts = [json.dumps(row) for row in rows]
    text = {
        "pretty": "\n".join(json.dumps(row, indent=4) for row in rows),
        "array": json.dumps(rows, indent=8),
        "spaces": "\n".join(f"    {row}    " for row in texts),
        "blank lines": "\n\n\n".join(texts) + "\n\n",
        "crlf": "\r\n".join(texts),
        "compact": "\n".join(json.dumps(row, separators=(",", ":")) for row in rows),
    }[layout]
    path = tmp_path / "rows.json"
    path.write_text(text)
    assert pv.open(path).explore().to_dict()["rows"] == 10


def test_objects_with_residuals_in_the_files_are_listed_as_slow_for_duckdb(tmp_path: Path) -> None:
    rows = pv.parse_json(['{"n": 1, "o": {"a": 1}}'] * 50 + ['{"n": 1, "o": {"a": 1, "rare": true}}'])
    pv.write(tmp_path / "a.parquet", {"v": rows}, schema="n bigint, o struct<a bigint>")
    (line,) = read_footers(data_of(pv.open(tmp_path / "a.parquet")).files).slow_paths
    assert "typed paths in $.o slowly" in line and "1 residual in 51 rows" in line
    pv.write(tmp_path / "b.parquet", {"v": rows}, schema="n bigint, o struct<a bigint, rare boolean>")
    assert pv.open(tmp_path / "b.parquet").explore().to_dict()["footers"]["slow"] == []


def test_damaged_data_is_an_error_of_ours(tmp_path: Path) -> None:
    rows = pv.parse_json([f'{{"a": {n}, "b": "text {n * 7919}"}}' for n in range(2000)])
    good = pv.write(tmp_path / "a.parquet", rows) and (tmp_path / "a.parquet").read_bytes()
    for start in range(4, len(good) // 2, len(good) // 40):
        (tmp_path / "b.parquet").write_bytes(good[:start] + bytes(50) + good[start + 50 :])
        try:
            pv.open(tmp_path / "b.parquet").explore()
            pv.open(tmp_path / "b.parquet").contract()
        except pv.VariantError:
            continue
