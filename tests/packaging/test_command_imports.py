"""Commands on small files import no more than they need."""

from __future__ import annotations

import subprocess
import sys

import pytest

import parquet_variant as pv

_SQL = "SELECT v:a::int FROM t"
_CODE = """
import sys
sys.argv = ["variant", *{words!r}]
from parquet_variant.cli.__main__ import run
code = run()
unwanted = ("pyarrow.compute", "parquet_variant.ingest.sources", "parquet_variant.vortex", "sqlglot.dialects.spark")
loaded = [name for name in unwanted if name in sys.modules]
sys.exit(code or " and ".join(loaded) or 0)
"""


@pytest.mark.parametrize(
    "words", [["cat"], ["query", "--select", "$.a:bigint"], ["query", "--select", "$.a"], ["query", _SQL]]
)
def test_a_command_on_a_small_file_imports_no_more_than_it_needs(tmp_path, words):
    path = str(tmp_path / "a.parquet")
    pv.parquet.write(path, pv.parse_json(['{"a": 1, "b": "x"}', '{"a": 2, "b": "y"}']), schema="a bigint, b string")
    code = _CODE.format(words=[words[0], path, *words[1:]])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "2" in run.stdout
