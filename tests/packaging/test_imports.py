"""What an import costs, and that every public name is there."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata, resources

import pytest

import parquet_variant as pv

HEAVY = ["numba", "llvmlite", "pyspark", "pandas", "duckdb", "deltalake", "typer", "rich", "polars"]


def modules_after(code: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after some code, whatever that code prints."""
    program = f"{code}\nimport json, sys\nprint()\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = modules_after("import parquet_variant")
    assert not loaded.intersection(HEAVY)


def test_help_loads_no_engine() -> None:
    loaded = modules_after("from parquet_variant.cli.app import main\nassert main(['--help']) == 0")
    assert not loaded.intersection([*set(HEAVY) - {"typer", "rich"}, "pyarrow", "numpy"])


_COMMON_USE = """
import tempfile
import parquet_variant as pv
folder = tempfile.mkdtemp()
with open(f"{folder}/a.ndjson", "w") as file:
    file.writelines(f'{{"a": {n}, "b": "x{n}", "c": [{{"d": 1.5}}]}}\\n' for n in range(100))
variants = pv.parse_json(['{"a": 1, "b": "x"}', None, '{"a": 2.5}'])
shredded = pv.shred_variant(variants, pv.infer_shredding_schema(variants))
for array in variants, shredded, pv.unshred_variant(shredded):
    pv.to_json(array), array.to_pylist(), repr(array), pv.variant_get(array, "$.a", "double")
    pv.write(f"{folder}/a.parquet", {"v": array}, mode="overwrite")
    pv.open(f"{folder}/a.parquet").read(), pv.open(f"{folder}/a.parquet").to_arrow()
pv.ingest(f"{folder}/a.ndjson", f"{folder}/table")
pv.open(f"{folder}/table").rewrite(f"{folder}/again")
pv.open(f"{folder}/table").scan({"a": ("$.a", "bigint"), "whole": "$"}).to_arrow()
pv.open(f"{folder}/table").scan({"a": ("$.a", "bigint")}, where="a > 7").to_arrow()
pv.sql(f"SELECT v:b::string FROM '{folder}/table' WHERE v:a::int > 7").to_pylist()
pv.ingest(f"{folder}/a.ndjson", f"{folder}/delta", format="delta")
pv.open(f"{folder}/delta").scan({"a": ("$.a", "bigint")}, where="a > 7").to_arrow()
pv.write(f"{folder}/delta", pv.open(f"{folder}/delta").to_arrow(), format="delta", mode="append")
"""


def test_common_use_does_not_load_pandas() -> None:
    pytest.importorskip("pandas")
    assert "pandas" not in modules_after(_COMMON_USE)


@pytest.mark.parametrize("name", pv.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(pv, name) is not None


@pytest.mark.parametrize("package", ["vortex", "spark"])
def test_a_package_shows_its_public_names_and_no_module_hides_one(package: str) -> None:
    code = f"""
import importlib, inspect, pkgutil
import parquet_variant as pv
for module in pkgutil.walk_packages(pv.{package}.__path__, pv.{package}.__name__ + "."):
    try:
        importlib.import_module(module.name)
    except ImportError:  # of a library that is not installed
        pass
assert dir(pv.{package}) == sorted(pv.{package}.__all__)
for name in dir(pv.{package}):
    assert not inspect.ismodule(getattr(pv.{package}, name)), name
"""
    modules_after(code)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        pv.nope  # noqa: B018


def test_the_installed_package_is_typed_and_has_the_command() -> None:
    assert resources.files("parquet_variant").joinpath("py.typed").is_file()
    (script,) = metadata.entry_points(group="console_scripts", name="variant")
    assert script.value == "parquet_variant.cli.__main__:run"
    assert metadata.version("parquet-variant") == pv.__version__


_WITHOUT_SQL = """
import sys, tempfile
sys.modules["duckdb"] = None
import parquet_variant as pv
folder = tempfile.mkdtemp()
rows = pv.parse_json(['{"a": 1}'])
pv.write(folder, {"v": rows}, format="delta")
pv.write(folder, {"v": rows}, format="delta", mode="append")
assert len(pv.open(folder).read()) == 2
assert "<html" in pv.open(folder).explore().to_html()
wrong = []
for use in (
    lambda: pv.sql("SELECT 1"),
    lambda: pv.open(folder).delete("v:a::int = 1"),
    lambda: pv.write(folder, {"v": rows}, format="delta", mode="overwrite", where="true"),
):
    try:
        use()
    except pv.VariantError as error:
        assert error.reason == "missing-extra", error.reason
        wrong.append(str(error))
assert wrong == ["SQL needs duckdb: run: pip install 'parquet-variant[sql]'"] * 3, wrong
"""


def test_tables_need_no_sql_and_what_does_says_what_to_install() -> None:
    modules_after(_WITHOUT_SQL)
