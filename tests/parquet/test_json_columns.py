"""The methods of tables read a column of JSON text in Parquet files as the same Variants in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main

TEXTS = [
    '{"a": {"b": 1}, "t": "x"}',
    '{"a": {"b": 2.5}, "t": "y"}',
    None,
    '{"t": "z", "tags": [1, "s"]}',
    "null",
    "[7]",
]
READS: dict[str, Callable[[Any], Any]] = {
    "column": lambda table: table.column,
    "rows": len,
    "read": lambda table: table.read().to_pylist(),
    "profile": lambda table: table.profile().to_json(),
    "untyped path": lambda table: table.scan({"b": "$.a.b", "t": "$.t"}).to_arrow().to_pylist(),
    "typed path": lambda table: table.scan({"b": "$.a.b:double"}, "b > 1").to_arrow().to_pylist(),
    "type as in SQL": lambda table: table.scan({"b": "$.a.b::double"}).to_arrow().to_pylist(),
    "path in the filter": lambda table: table.scan(["id"], "$.t = 'y'").to_arrow().to_pylist(),
    "SQL in the filter": lambda table: table.scan(["id"], "upper(j:t) = 'Z'").to_arrow().to_pylist(),
    "elements": lambda table: table.scan({"e": "$.tags[*]:string"}).to_arrow().to_pylist(),
    "whole": lambda table: pv.VariantArray.from_arrow(table.scan({"v": "$"}).to_arrow(), "v").to_pylist(),
    "contract": lambda table: table.contract().to_yaml(),
    "check": lambda table: bool(table.check(table.contract())),
}


@pytest.fixture(scope="module")
def column() -> pa.ExtensionArray:
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(TEXTS))


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("row_group_size", [2, 100])
def test_methods_read_json_text(
    tmp_path: Path, column: pa.ExtensionArray, read: Callable[[Any], Any], row_group_size: int
) -> None:
    rows = pa.table({"id": range(len(TEXTS)), "j": column})
    for part, name in ((rows[:3], "0.parquet"), (rows[3:], "1.parquet")):
        pq.write_table(part, tmp_path / name, row_group_size=row_group_size)
    assert read(pv.open(tmp_path)) == read(pv.open(rows))


def test_a_file_with_several_columns_of_json_text(tmp_path: Path, column: pa.ExtensionArray) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"j": column, "k": column}), file)
    assert pv.open(file).read("k").to_pylist() == pv.parse_json(TEXTS).to_pylist()
    assert pv.open(file).paths("k") == pv.open(pv.parse_json(TEXTS)).paths()
    typed = pv.open(file).typed(column="k")
    assert typed.to_arrow().column("t").to_pylist() == ["x", "y", None, "z", None, None]
    assert repr(typed) and 0 < typed.bytes_read <= file.stat().st_size
    for call in (pv.open(file).read, lambda: pv.open(file).column, lambda: pv.profile(file)):
        with pytest.raises(pv.VariantFileError, match=r"several columns of JSON text: .* from j, k"):
            call()
    pv.write(tmp_path / "b.parquet", {"j": column.storage.cast(pa.json_()), "v": pv.parse_json(["1"] * len(TEXTS))})
    assert pv.open(tmp_path / "b.parquet").column == "v"


def test_text_that_is_not_json_names_its_place(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"j": pa.array(["1", "2", "3", "{"]).cast(pa.json_())}), file, row_group_size=2)
    for call in (pv.open(file).read, lambda: pv.open(file).scan({"a": "$.a:int"}).to_arrow()):
        with pytest.raises(pv.JsonError) as caught:
            call()
        assert caught.value.row is not None
        assert str(file) in str(caught.value)


def test_commands_print_json_text(
    tmp_path: Path, column: pa.ExtensionArray, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"j": column}), file)
    for arguments, line in (
        (["cat", file], '{"a":{"b":1},"t":"x"}'),
        (["schema", file], "array<string>  $.tags"),
        (["query", file, "--select", "t=$.t::string", "--where", "$.t = 'y'"], "y"),
        (["infer", file], "string"),
    ):
        assert main(arguments) == 0
        assert line in capsys.readouterr().out
