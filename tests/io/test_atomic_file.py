"""One file that appears only when it is complete."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_variant.errors import VariantFileError
from parquet_variant.io.atomic_file import atomic_file


@pytest.mark.parametrize("old", [None, "old"])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, old: str | None) -> None:
    target = tmp_path / "a.txt"
    if old is not None:
        target.write_text(old)
    with pytest.raises(VariantFileError), atomic_file(target) as staged:
        staged.write_text("half")
        raise OSError(28, "No space left on device")
    assert [path.read_text() for path in tmp_path.iterdir()] == ([] if old is None else [old])


def test_a_page_that_does_not_fit_on_the_disk_is_not_left_half_written(tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n' * 10)

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    page = tmp_path / "page.html"
    page.write_text("old page")
    command = [sys.executable, "-m", "parquet_variant.cli", "explore", str(source), "--html", str(page)]
    run = subprocess.run(command, preexec_fn=limit_files, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert str(page) in run.stderr
    assert "Traceback" not in run.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ndjson", "page.html"]
    assert page.read_text() == "old page"
