"""Every block of code in README and docs runs, and returns what is written next to it.

A page's blocks run in order, in one directory and with one set of names. What a line gives is compared where its
comment is a value. `console` blocks are commands after ``$ `` with what they print. A block that cannot run says why in
a comment before it: ``<!-- not run: … -->``. Blocks that need Spark run in ``tests/spark/test_readme_spark.py``.
"""

from __future__ import annotations

import ast
import contextlib
import gzip
import io
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import build, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/guides").glob("*.md"))]
BLOCK = re.compile(
    r"(<!-- not run: (?P<why>[^>]+?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]+)")
ROWS = ['{"id": 1, "kind": "a", "user": {"name": "Ann"}, "n": 1}', '{"id": 9, "kind": "b", "n": 5}']


def _blocks(page: Path, kind: str) -> list[str]:
    found = BLOCK.finditer(page.read_text("utf-8"))
    return [item["text"] for item in found if item["kind"] == kind and not item["why"] and "spark." not in item["text"]]


PYTHON = [page for page in PAGES if _blocks(page, "python")]
CONSOLE = [page for page in PAGES if _blocks(page, "console")]
SHELL = [page for page in PAGES if any("variant " in block for block in _blocks(page, ""))]


def _given(folder: Path) -> None:
    """The files that the pages speak of."""
    text = "".join(f"{row}\n" for row in ROWS)
    for name in ("events.json", "events.ndjson", "new/a.ndjson", "logs/a.ndjson"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "logs/a.ndjson.gz").write_bytes(gzip.compress(text.encode()))
    table = pa.table({"id": [1, 2], "payload": ['{"a": 1}', None]})
    pq.write_table(table, folder / "orders.parquet")
    (folder / "export.csv").write_text('id,payload\n1,"{""a"": 1}"\n2,not json\n')
    shutil.copy(ROOT / "examples/usgs_earthquakes.ndjson", folder / "quakes.ndjson")


def _values(code: str, names: dict[str, Any]) -> Iterator[tuple[int, Any, Any]]:
    """Run code statement by statement: what each with a value in its comment gives, and that value."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        line = lines[(statement.end_lineno or 1) - 1]
        expected = _expected(line[statement.end_col_offset or 0 :])
        program: Any = ast.Module([statement], [])
        if not isinstance(statement, ast.Expr):
            exec(compile(program, "block", "exec"), names)
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            result = eval(compile(ast.Expression(statement.value), "block", "eval"), names)
        if expected is not None:
            printed = out.getvalue().strip()
            if result is None:  # printed: values are next to each other
                found = _literal(printed, tuple(_literal(item, item) for item in printed.split()))
                yield statement.lineno, found, expected
            else:
                yield statement.lineno, _plain(result), expected


def _expected(comment: str) -> Any:
    """The value that a comment begins with: before a colon or comma, or after the name of its library."""
    text = comment.partition("#")[2].strip().removeprefix("pyarrow: ").replace("null", "None")
    return _literal(text, _literal(text.rpartition(": ")[0], _literal(re.sub(r"^(\d+) (\d+)$", r"\1, \2", text), None)))


def _literal(text: str, otherwise: Any) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return otherwise


def _plain(result: Any) -> Any:
    return result.to_pylist() if hasattr(result, "to_pylist") else result


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
def test_python_runs_and_gives_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _given(tmp_path)
    names: dict[str, Any] = {}
    for block in _blocks(page, "python"):
        for line, found, expected in _values(block, names):
            assert found == expected, f"line {line} of a block of {page.name}"


def test_some_values_are_compared() -> None:
    written = [line for page in PYTHON for block in _blocks(page, "python") for line in block.splitlines()]
    assert sum(_expected(line.partition("  #")[1] + line.partition("  #")[2]) is not None for line in written) >= 10


@pytest.mark.parametrize("page", SHELL, ids=lambda page: page.name)
def test_commands_are_there_with_their_options(page: Path) -> None:
    commands = build().commands
    for block in _blocks(page, ""):
        for line in re.findall(r"^(?:cat \S+ \| )?variant (.*)$", block, re.MULTILINE):
            name, *rest = line.split()
            command = commands[name].commands[rest[0]] if name == "table" else commands[name]
            asked, _, said = re.sub(r"   .*#|  #", "   ", line).partition("   ")
            assert set(OPTION.findall(asked)) <= _options(command), line
            assert set(OPTION.findall(said)) <= {option for item in _all(commands) for option in _options(item)}, line


def _all(commands: dict[str, Any]) -> Iterator[Any]:
    for command in commands.values():
        yield from getattr(command, "commands", {"": command}).values()


def _options(command: Any) -> set[str]:
    return {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help"}


def _commands(page: Path) -> list[str]:
    found = [line for block in _blocks(page, "") for line in block.splitlines()]
    return [
        line
        for line in found
        if re.match(r"(cat \S+ \| )?variant ", line) and not re.search(r"\b[A-Z]{3,}\.{3}|\bPATH\b", line)
    ]


@pytest.mark.parametrize("page", [page for page in SHELL if page.parent.name == "guides"], ids=lambda page: page.name)
def test_commands_of_the_guides_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, line in enumerate(_commands(page)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        _given(folder)
        words = shlex.split(line, comments=True)
        if "ingest" not in words or "append" in words:
            pv.ingest("events.ndjson", "events")
        if page.name == "erase.md":
            pv.write(
                "table",
                {"v": pv.parse_json(['{"user": {"name": "Ann"}}', '{"user": {"name": "Bob"}}'])},
                format="delta",
            )
        if words[0] == "cat":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(words[1]).read_bytes())))
        words = words[words.index("variant") + 1 :]
        assert main(words[: words.index("|")] if "|" in words else words) == 0, line


@pytest.mark.parametrize("page", CONSOLE, ids=lambda page: page.name)
def test_console_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _given(tmp_path)
    for block in _blocks(page, "console"):
        for step in re.split(r"^\$ (?=\w)", block, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            words = shlex.split(command)
            if words[0] == "pip":
                continue
            capsys.readouterr()
            assert main(words[1:]) == 0, command
            printed = capsys.readouterr().out
            for line, expected in zip(_figures(printed), _figures(shown), strict=False):
                if expected.strip() == "…":
                    break
                assert line == expected, command
            assert shown.rstrip().endswith("…") or len(_figures(printed)) == len(_figures(shown)), command


def _figures(text: str) -> list[str]:
    """Lines without sizes, which differ with the compressor, and without the room that these take."""
    lines = (re.sub(r"\d[\d,.]* ([kM]?B|bytes)\b|(?<=^bytes) .*", "#", line) for line in text.strip().splitlines())
    return [re.sub(r"-{3,}", "---", re.sub(r" {2,}", "  ", line)).rstrip() for line in lines]


def test_four_commands_of_the_readme_lead_to_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = (ROOT / "README.md").read_text("utf-8").split("## Four commands", 1)[1]
    lines = re.findall(r"^(?:pip|variant) .*$", section.partition("```\n")[2].partition("```")[0], re.MULTILINE)
    assert len(lines) == 4
    assert lines[0].startswith("pip install ")
    (tmp_path / "events.ndjson").write_text("".join(f"{row}\n" for row in ROWS))
    monkeypatch.chdir(tmp_path)
    for line in lines[1:]:
        assert main(shlex.split(line, comments=True)[1:]) == 0, line
