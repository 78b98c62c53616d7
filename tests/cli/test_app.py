"""The command itself: help, usage errors, unexpected errors."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.cli import app
from parquet_variant.cli.app import COMMANDS, main


def test_help_names_every_command(variant: Callable[..., object]) -> None:
    done = variant("--help")
    assert done.code == 0
    assert all(f" {name} " in done.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(variant: Callable[..., object], name: str) -> None:
    done = variant(name, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"variant {name}" in done.out


def test_version(variant: Callable[..., object]) -> None:
    done = variant("--version")
    assert (done.code, done.out) == (0, "parquet-variant 0.1.0\n")


@pytest.mark.parametrize(
    ("words", "wrong", "see"),
    [
        (["nope"], "No such command 'nope'", "variant --help"),
        (["ingest"], "write SRC... DEST", "variant ingest --help"),
        (["ingest", "a", "b", "--engine", "dask"], "'dask' is not one of", "variant ingest --help"),
        (["inspect", "a", "--nope"], "No such option: --nope", "variant inspect --help"),
        (
            ["vacuum", "a", "--retention", "7"],
            "No such option: --retention: choose from --hours,",
            "variant vacuum --help",
        ),
        (["vacuum", "a", "--hours", "7d"], "'7d' is not a number", "variant vacuum --help"),
        (["diff", "a", "--partition", "d=1", "d=2"], "write --partition d=2", "variant diff --help"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    variant: Callable[..., object], words: list[str], wrong: str, see: str
) -> None:
    done = variant(*words)
    assert done.code == 2
    assert wrong in done.error
    assert f"(see {see})" in done.error


def test_an_unexpected_error_is_one_line_unless_debug_is_given(
    variant: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(commands: object) -> object:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr(app, "build", broken)
    done = variant("inspect", "x")
    assert (done.code, done.error) == (
        1,
        "unexpected ZeroDivisionError: a b (run again with --debug for the traceback)",
    )
    with pytest.raises(ZeroDivisionError):
        main(["inspect", "x", "--debug"])


def test_an_interrupt_ends_quietly(variant: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(commands: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "build", interrupted)
    assert variant("inspect", "x").code == 130


_LONG = "SELECT count(*) FROM t a, t b, t c WHERE a.v:a::int + b.v:a::int * c.v:a::int = 7"


# DuckDB does not stop inside one call of a function.
_CALL = "SELECT count(*) FROM (SELECT unnest(range(1000000000)) FROM t)"


@pytest.mark.parametrize(
    "words", [["query", _LONG], ["query", _LONG, "-o", "out.csv"], ["query", _CALL], ["explore", "--serve"]]
)
def test_an_interrupt_ends_a_command_with_one_line(tmp_path: Path, words: list[str]) -> None:
    pv.write(tmp_path / "a.parquet", pv.parse_json([f'{{"a": {number}}}' for number in range(3000)]))
    command = [sys.executable, "-X", "importtime", "-m", "parquet_variant.cli", words[0], "a.parquet", *words[1:]]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A process that the shell started in the background ignores the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert process.stdout is not None
    assert process.stderr is not None
    if words[0] == "explore":
        process.stdout.readline()
    else:  # the query is about to run, or runs
        while "parquet_variant.sql_query.tables" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(2 if _CALL in words else 0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [line for line in errors.splitlines() if not line.startswith("import time:")] == [
        "variant: error: interrupted"
    ]
    assert not (tmp_path / "out.csv").exists()
