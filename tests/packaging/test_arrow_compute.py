"""pyarrow.compute is imported where something is computed, not where a file is looked at."""

from __future__ import annotations

import subprocess
import sys

import pytest

import parquet_variant as pv

_CODE = """
import sys
sys.argv = ["variant", *{words!r}]
from parquet_variant.cli.__main__ import run
code = run()
loaded = [name for name in ("pyarrow.compute", "parquet_variant.ingest.sources") if name in sys.modules]
sys.exit(code or " and ".join(loaded) or 0)
"""


@pytest.mark.parametrize("words", [["cat"], ["query", "--select", "$.a:bigint"]])
def test_a_command_on_a_small_file_imports_no_more_than_it_needs(tmp_path, words):
    path = str(tmp_path / "a.parquet")
    pv.parquet.write(path, pv.parse_json(['{"a": 1, "b": "x"}', '{"a": 2}']), schema="a bigint, b string")
    code = _CODE.format(words=[words[0], path, *words[1:]])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "2" in run.stdout
