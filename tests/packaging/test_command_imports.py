"""Commands on small files import no more than they need."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import parquet_variant as pv

_SQL = "SELECT v:a::int FROM t"
_CODE = """
import atexit, sys
sys.argv = ["variant", *{words!r}]
from parquet_variant.cli.__main__ import run
unwanted = (
    "pyarrow.compute", "parquet_variant.ingestion.sources.chunks", "parquet_variant.encoding.cast.values", "zoneinfo",
    "parquet_variant.kernels.shredding.shred_tape", "sqlglot.dialects.spark", "parquet_variant.files.vortex.scanning",
)
loaded = lambda: [name for name in unwanted if name in sys.modules]
atexit.register(lambda: print("loaded:", *loaded(), file=sys.stderr))
run()
"""


@pytest.mark.parametrize(
    "words", [["cat"], ["query", "--select", "$.a:bigint"], ["query", "--select", "$.a"], ["query", _SQL]]
)
def test_a_command_on_a_small_file_imports_no_more_than_it_needs(tmp_path, words):
    pv.write(
        str(tmp_path / "a.parquet"),
        pv.parse_json(['{"a": 1, "b": "x"}', '{"a": 2, "b": "y"}']),
        schema="a bigint, b string",
    )
    code = _CODE.format(words=[words[0], str(tmp_path), *words[1:]])
    if _SQL not in words:
        code = code.replace('"sqlglot.dialects.spark"', '"sqlglot"')
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "loaded:\n")
    assert "2" in run.stdout


_CALLS = """
import json, sys
import parquet_variant as pv
rows, file, table = [{"a": 1, "b": "x"}, {"a": 2}], sys.argv[1] + "/a.ndjson", sys.argv[1] + "/t"
open(file, "w").write("".join(json.dumps(row) + chr(10) for row in rows))
pv.ingest(file, table)
assert pv.sql(f"SELECT v:a AS a FROM '{file}' WHERE v:a > 1").to_pylist() == [{"a": 2}]
opened = pv.open(table)
opened.append([{"a": 3}])
assert opened.sql("SELECT sum(v:a) AS s FROM t").to_arrow()["s"].to_pylist() == [6]
assert len(opened.scan({"a": "$.a:int"}, where="a > 1").to_arrow()) == 2
assert len(opened.typed().to_arrow()) == 3 and opened.paths()["$.a"] == "bigint"
print(*{"pandas", "polars"} & sys.modules.keys())
"""


def test_small_calls_do_not_import_pandas(tmp_path):
    """pyarrow imports it in `pyarrow.array` and `Array.to_numpy`, which takes longer than a small query."""
    run = subprocess.run([sys.executable, "-c", _CALLS, tmp_path], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "\n", "")


_CHANGES = """
import sys
import parquet_variant as pv
path, format = sys.argv[1:]
pv.write(path, [{"a": number, "b": "x", "c": {"d": 2.5, "e": None}} for number in range(9)], format=format)
table = pv.open(path)
where = "v:a >= 5 AND v:b = 'x' AND v:c.d > 1"
assert len(table.scan({"a": "$.a:int"}, where=where).to_arrow()) == 4
assert table.delete("v:a > 6").rows_deleted == 2
assert table.update({"v:b": "'z'"}, where="v:a > 4").rows_updated == 2
merge = table.merge([{"a": 3, "b": "m"}, {"a": 30, "b": "n"}], "target.v:a = source.v:a")
merged = merge.when_matched_update_all().when_not_matched_insert_all().execute()
assert (merged.rows_updated, merged.rows_inserted) == (1, 1)
table.optimize()
assert len(table.read()) == 8
print(*{"pandas", "polars"} & sys.modules.keys())
"""


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_filters_and_small_changes_of_tables_do_not_import_pandas(format, tmp_path):
    command = [sys.executable, "-c", _CHANGES, str(tmp_path / "t"), format]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "\n", "")


@pytest.mark.parametrize(
    "use",
    [
        "array.to_pylist()",
        "pv.to_json(array)",
        "pv.variant_get(array, '$.a', 'bigint')",
        "pv.unshred_variant(pv.shred_variant(array, 'a bigint'))",
        "pv.infer_shredding_schema(array)",
        "pv.write('t.parquet', array), pv.open('t.parquet').scan({'a': '$.a:bigint'}).to_arrow()",
    ],
)
def test_small_calls_import_neither_the_functions_of_arrow_nor_masked_arrays(use, tmp_path):
    code = f"""
import sys
import parquet_variant as pv
array = pv.parse_json(['{{"a": 1, "b": ["x", 2.5, true, null]}}'])
{use}
print(*{{"pyarrow.compute", "numpy.ma"}} & sys.modules.keys())
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "\n", "")


def test_ingesting_a_line_imports_neither_the_functions_of_arrow_nor_masked_arrays(tmp_path):
    """Importing them takes a quarter of the time that the call takes."""
    (tmp_path / "a.ndjson").write_text('{"a": 1, "b": "x", "c": [{"d": 2.5}, {}]}\n')
    code = """
import sys
import parquet_variant as pv
pv.ingest(sys.argv[1] + "/a.ndjson", sys.argv[1] + "/t")
print(*{"pyarrow.compute", "numpy.ma"} & sys.modules.keys())
"""
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "\n", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")  # noqa: PTH110
def test_a_command_that_cannot_write_its_answer_fails(tmp_path):
    path = str(tmp_path / "a.parquet")
    pv.write(path, pv.parse_json(['{"a": 1}']))
    words = [sys.executable, "-m", "parquet_variant.cli", "cat", path]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        run = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 1
    assert "Traceback" not in run.stderr


def test_a_command_ends_with_its_exit_code(tmp_path):
    words = [sys.executable, "-m", "parquet_variant.cli", "cat", str(tmp_path / "none.parquet")]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert "does not exist" in run.stderr
