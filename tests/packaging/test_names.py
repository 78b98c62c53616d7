"""Names that agree: one keyword for one meaning in all public functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import build
from parquet_variant.files.parquet.operations.rewrite import ParquetFiles
from parquet_variant.files.parquet.writing.conform import WriterOptions
from parquet_variant.ingestion.request import IngestOptions
from parquet_variant.tables.write_plan import DEFAULT_FILE_BYTES

ROOMS = ("vortex", "spark", "Table", "DeltaTable", "IcebergTable", "ParquetTable", "VortexTable", "Scan")
# Keywords that have another name, and where the word means something else.
FORBIDDEN = {
    "shredding": ("create",),
    "overwrite": (),
    "if_exists": (),
    "target_bytes": (),
    "null_on_error": (),
}


def _public() -> Iterator[tuple[str, Callable[..., Any]]]:
    for room in ("", *ROOMS):
        module = getattr(pv, room) if room else pv
        for name in getattr(module, "__all__", dir(module)):
            if name.startswith("_"):
                continue
            member = getattr(module, name)
            if callable(member):
                yield f"{room}.{name}".strip("."), member


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except ValueError:
        return {}


@pytest.mark.parametrize("keyword", FORBIDDEN)
def test_no_public_function_has_an_old_keyword(keyword: str) -> None:
    assert [
        name for name, member in _public() if keyword in _parameters(member) and name not in FORBIDDEN[keyword]
    ] == []


def test_keywords_that_mean_one_thing_have_one_form() -> None:
    for name, member in _public():
        for keyword, values in (("errors", ("raise", "null")), ("on_error", ("fail", "quarantine", "null"))):
            if keyword in (parameters := _parameters(member)):
                assert parameters[keyword].default in values, name
        if name.endswith(("write", "ingest", "rewrite")) and "mode" in _parameters(member):
            assert _parameters(member)["mode"].default in ("error", inspect.Parameter.empty), name


def test_defaults_of_the_command_line_are_those_of_python() -> None:
    commands = build().commands
    options = {param.name: param for param in commands["ingest"].params}
    for name in ("compression", "row_group_bytes", "sample", "threads", "on_error", "mode", "input_format"):
        default = options[name].default
        default = getattr(default, "value", default)
        signature = inspect.signature(WriterOptions).parameters.get(name)
        # None leaves it to the function.
        assert default is None or default in ("fail", "error", "auto") or default == signature.default, name
    for command in ("optimize", "rewrite", "ingest"):
        for param in commands[command].params:
            assert not (param.name.endswith(("_bytes", "_mb")) and param.default is not None), (command, param.name)
    assert ParquetFiles.optimize.__kwdefaults__["file_bytes"] == DEFAULT_FILE_BYTES


def test_options_of_an_ingest_are_options_of_the_command() -> None:
    words = {param.name for param in build().commands["ingest"].params}
    left_to_python = {
        "readers",
        "rest",
        "one_file",
        "annotation",
        "compact",
        "compression_level",
        "file_bytes",
        "split_bytes",
    }
    assert set(IngestOptions.__annotations__) - words == left_to_python


def test_reprs_fit_on_a_screen_and_notebooks_show_trees(tmp_path: Path, usgs_sample: Path) -> None:
    result = pv.ingest(usgs_sample, tmp_path / "out")
    report = pv.open(tmp_path / "out").inspect()
    assert repr(result).startswith("<IngestResult 1,707 rows in 1 file in ")
    assert repr(pv.ShreddingSchema.from_ddl("a bigint")) == "<ShreddingSchema a bigint>"
    for item in (result, result.schema, result.inference, report):
        assert len(repr(item)) < 2000
        assert "\n" not in repr(item)
    for tree in (result.schema, result.inference, report):
        html = tree._repr_html_()  # type: ignore[union-attr]
        assert html.startswith("<pre>")
        assert "mag" in html
