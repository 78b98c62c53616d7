"""Texts from outside (paths, types, filters, SQL, z85, arguments), damaged at random: read, or an error of ours."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from fuzz.samples import damaged_bytes, damaged_text
from fuzz.seeds import random_source, tries
from parquet_variant.cli.app import main
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.type_grammar import as_target
from parquet_variant.query.selection import TableColumns
from parquet_variant.query.sql_expression import read_expression
from parquet_variant.query.sql_pushdown import parse_predicate
from parquet_variant.tables.delta.z85 import decode, encode


def _sql(text: str) -> Any:
    return read_expression(text, {"t": TableColumns(["v"], {})})


TEXTS: dict[str, tuple[Callable[[str], Any], list[str]]] = {
    "path": (pv.VariantPath.parse, ["$.a.b[0]['x.y'][*]", "$['a\\'b']", "$", 'a.b[-1]', '$["é"]']),
    "ddl": (ShreddingSchema.from_ddl, ["struct<a bigint, `b c` array<struct<x decimal(9, 2), y variant>>>", "uuid"]),
    "json schema": (ShreddingSchema.from_json, [ShreddingSchema.from_ddl("struct<a bigint, b array<int>>").to_json()]),
    "type": (as_target, ["map<string, array<int>>", "struct<a: int, b: decimal(5, 2)>", "timestamp", "interval day"]),
    "filter": (parse_predicate, ["mag > 5 and (place like 'x%' or not \"$.a:int\" in (1, 2.5)) and b is not null"]),
    "sql": (_sql, ["v:a.b::int > 5 AND lower(v:`c d`[0]::string) LIKE 'x%'", "CASE WHEN v:a IS NULL THEN 1 END"]),
    "z85": (decode, [encode(b"12345678"), "HelloWorld"]),
}  # fmt: skip
_WORDS = ["$", "[", "]", "*", "'", '"', "`", "::", ":", "(", ")", "<", ">", ",", "NULL", "and", "struct", "decimal(",
          "-1", "99999999999999999999", "1e999", "\\", "\n", ";", "--", "/*"]  # fmt: skip


@pytest.mark.parametrize("kind", TEXTS)
def test_texts(kind: str) -> None:
    parse, samples = TEXTS[kind]
    for number in tries(kind, 100, share=0.25):
        with random_source(kind, number) as source:
            for _ in range(10):
                text = damaged_text(source, source.choice(samples), _WORDS)
                try:
                    parse(text)
                except pv.VariantError as error:
                    assert "\n" not in str(error), text
                except BaseException as error:
                    error.add_note(f"the text was {text!r}")
                    raise


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("piece", ["(", "[", "array<", "struct<a ", "not ", "$.a", "'", '{"type":"array","element":'])
def test_deep_and_long_texts(kind: str, piece: str) -> None:
    for size in (300, 20_000):
        try:
            TEXTS[kind][0](piece * size)
        except pv.VariantError as error:
            assert len(str(error)) < 2000


_ARGUMENTS = [
    "cat", "query", "infer", "--column", "v", "v.x", "--json", "-s", "a=$.a:int", "$", "--where", "a > 1", "--limit",
    "-1", "3", "--set", "x=1", "--policy", "auto", "--sample", "2", "nan", "--version", "--at", "2020", "",
    "-", "--help",
    "--schema", "struct<a int>", "SELECT v:a FROM t", "*?[", "file:///nowhere",
]  # fmt: skip


def test_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pv.write(tmp_path / "a.parquet", pv.parse_json(['{"a":1}', '"x"']))
    (tmp_path / "a.json").write_text('{"a":1}\n')
    (tmp_path / "bad.parquet").write_bytes(damaged_bytes(random.Random(1), b"PAR1" * 5))
    places = [str(tmp_path / name) for name in ("a.parquet", "a.json", "bad.parquet", "none", "out")]
    for number in tries("arguments", 100):
        with random_source("arguments", number) as source:
            known = ("cat", "query", "inspect", "infer", "validate")
            words = [source.choice(known), source.choice(places)]
            words += [source.choice(_ARGUMENTS) for _ in range(source.randrange(4))]
            code = main(words)
            shown = capsys.readouterr()
            assert code in (0, 1, 2), (words, code)
            assert "Traceback" not in shown.err and "--debug" not in shown.err, (words, shown.err)
