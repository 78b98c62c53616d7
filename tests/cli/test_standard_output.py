"""Standard output of the process: terminals, encodings, full disks and closed descriptors."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

VARIANT = [sys.executable, "-m", "parquet_variant.cli"]
HOSTILE = "a\x1b[31m\u202eb\x9bc"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.ndjson"
    file.write_text(json.dumps({HOSTILE: HOSTILE, "n": 1}) + "\n" + json.dumps({HOSTILE: "\u00e4", "n": 2}) + "\n")
    return file


def _run(command: str, **options: object) -> subprocess.CompletedProcess[str]:
    words = " ".join(VARIANT)
    return subprocess.run(
        ["bash", "-c", command.replace("variant ", f"{words} ")], capture_output=True, text=True, check=False, **options
    )  # type: ignore[call-overload,no-any-return]


def _on_a_terminal(*words: str, stderr: bool = False) -> str:
    parent, child = pty.openpty()
    # Progress, which draws with escapes of its own, is left out: it needs a terminal as standard error.
    process = subprocess.Popen(
        [*VARIANT, *words], stdout=child, stderr=subprocess.STDOUT if stderr else subprocess.DEVNULL
    )
    os.close(child)
    text = b""
    while True:
        try:
            part = os.read(parent, 4096)
        except OSError:
            break
        if not part:
            break
        text += part
    process.wait()
    os.close(parent)
    return text.decode()


@pytest.mark.parametrize(
    "words",
    [
        ("cat", "FILE"),
        ("infer", "FILE", "--ddl"),
        ("infer", "FILE", "--explain"),
        ("query", "FILE", "SELECT * FROM t"),
        ("query", "FILE", "SELECT * FROM t", "--json"),
        ("cat", f"missing{HOSTILE}.ndjson"),
    ],
)
def test_no_data_controls_the_terminal(rows: Path, words: tuple[str, ...]) -> None:
    is_error = "FILE" not in words
    text = _on_a_terminal(*(str(rows) if word == "FILE" else word for word in words), stderr=is_error)
    assert "\\u202e" in text
    assert not {"\x1b", "\u202e", "\x9b"} & set(text)


def test_json_on_a_terminal_has_the_same_values(rows: Path) -> None:
    lines = _on_a_terminal("cat", str(rows)).splitlines()
    assert [json.loads(line) for line in lines] == [json.loads(line) for line in rows.read_text().splitlines()]


def test_a_pipe_gets_exact_text(rows: Path) -> None:
    done = _run(f"variant cat {rows}")
    assert "\u202eb\x9bc" in done.stdout
    assert HOSTILE in json.loads(done.stdout.splitlines()[0])


def test_an_ascii_output_has_escapes(rows: Path) -> None:
    done = _run(f"PYTHONIOENCODING=ascii variant cat {rows}")
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[1])[HOSTILE] == "\u00e4"


@pytest.mark.parametrize("output", ["> /dev/full", ">&-"])
def test_output_that_cannot_be_written_is_an_error_in_one_line(rows: Path, output: str) -> None:
    done = _run(f"variant cat {rows} {output}")
    assert done.returncode == 1
    assert done.stderr.startswith("variant: error: standard output cannot be written")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("output", ["> /dev/full", ">&-"])
def test_rows_that_are_committed_are_a_success(rows: Path, tmp_path: Path, output: str) -> None:
    done = _run(f"variant ingest {rows} {tmp_path}/events {output}")
    assert done.returncode == 0
    assert "the command itself has succeeded" in done.stderr
    assert len(_run(f"variant cat {tmp_path}/events").stdout.splitlines()) == 2


def test_errors_can_be_lost_with_their_descriptor(tmp_path: Path) -> None:
    done = _run(f"variant cat {tmp_path}/missing.ndjson 2>&-")
    assert (done.returncode, done.stdout) == (1, "")


def test_a_load_without_stderr_succeeds(rows: Path, tmp_path: Path) -> None:
    assert _run(f"variant ingest {rows} {tmp_path}/events 2>&-").returncode == 0
    assert len(_run(f"variant cat {tmp_path}/events 2>&-").stdout.splitlines()) == 2


def test_warnings_of_python_are_one_line_without_the_place_in_the_code(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"ts":1}\n' * 300)
    done = _run(f"variant ingest {tmp_path}/a.ndjson {tmp_path}/t --format delta --partition-by day=$.ts:date")
    assert "variant: warning: the partition column 'day' is null in all 300 rows" in done.stderr
    assert "UserWarning" not in done.stderr
