"""The comparison on the page is that of the script: 22 points, each with a program that can be read."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/compare.md").read_text("utf-8")


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("compare_script", ROOT / "benchmarks/compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()
NOT_TRIED, POINTS, TOOLS, passed = SCRIPT.NOT_TRIED, SCRIPT.POINTS, SCRIPT.TOOLS, SCRIPT.passed


def test_the_page_has_the_points_of_the_script() -> None:
    assert len(POINTS) == 22
    for number, point in enumerate(POINTS, 1):
        assert f"| {number}. {point.question} |" in PAGE


def test_every_program_is_python_of_a_known_tool() -> None:
    for point in POINTS:
        assert set(point.programs) <= set(TOOLS)
        for program in point.programs.values():
            if program != NOT_TRIED:
                ast.parse(program)


def test_figures_pass_within_a_tenth_of_the_smallest() -> None:
    figures = next(point for point in POINTS if point.is_figure)
    answers = {"parquet-variant": "100", "DuckDB": "109", "polars": "120", "ClickHouse local": None, "PyIceberg": None}
    assert [tool for tool, good in passed(figures, answers).items() if good] == ["parquet-variant", "DuckDB"]
