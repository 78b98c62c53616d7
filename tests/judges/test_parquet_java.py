"""parquet-java (parquet-variant) reads our shredded files, and we read the files that it shreds by the same schemas."""

from __future__ import annotations

import base64
import datetime
import decimal
import subprocess
from pathlib import Path

import pytest
from tests.judges.conftest import JUDGES, jars

import parquet_variant as pv
from parquet_variant.spark.session import find_java

_PROGRAM = Path(__file__).with_name("ParquetJava.java")


@pytest.fixture(scope="module")
def java_command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the compiled program."""
    spark = JUDGES / "spark4.2/lib"
    directories = sorted(spark.glob("python3.*/site-packages/pyspark/jars"))
    if not directories:
        pytest.skip(f"PySpark 4.2 is missing in {JUDGES}: run make judges")
    java = Path(find_java().java)
    compiler = java.with_name("javac")
    if not compiler.exists():
        pytest.skip(f"{compiler} is missing: install a JDK")
    classes = tmp_path_factory.mktemp("classes")
    path = ":".join([*jars("parquet-variant", "parquet-avro"), f"{directories[0]}/*"])
    subprocess.run([compiler, "-nowarn", "-cp", path, "-d", classes, _PROGRAM], check=True, capture_output=True)
    return [str(java), "-cp", f"{classes}:{path}", "ParquetJava"]


def _values() -> pv.VariantArray:
    day = datetime.date(2024, 2, 29)
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3, 456789)
    rows = [
        {
            "n": n if n % 5 else f"text {n}",
            "d": decimal.Decimal(n).scaleb(-2),
            "o": {"x": n / 3 if n % 7 else None, "y": n},
            "xs": [{"k": n, "s": "é" * n}, {"k": "other"}] if n % 3 else [],
            "day": day, "at": moment.replace(tzinfo=datetime.UTC), "local": moment, "time": moment.time(),
            "b": bytes([n]), "flag": n % 2 == 0, "rest": n,
        }
        for n in range(40)
    ]  # fmt: skip
    return pv.from_python([*rows, None, pv.Variant.from_python(None), "text", 1.5, [1, [2, "three"]]])


def _run(command: list[str], source: Path, copy: Path) -> str:
    done = subprocess.run([*command, source, copy], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("kind", ["unshredded", "inferred", "typed"])
def test_parquet_java_and_this_library_read_the_same_values(java_command: list[str], tmp_path: Path, kind: str) -> None:
    values = _values()
    schema = {
        "unshredded": None,
        "inferred": pv.infer_shredding_schema(values),
        "typed": "n bigint, d decimal(9,2), o struct<x double, y bigint>, xs array<struct<k bigint, s string>>, "
        # parquet-java 1.17.0 cannot write the residual of an object, so that all fields have columns.
        "day date, at timestamp, local timestamp_ntz, time time, b binary, flag boolean, rest bigint",
    }[kind]
    source, copy = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    pv.write(source, {"v": values}, schema=schema)
    lines = _run(java_command, source, copy).splitlines()
    theirs = [None if line == "null" else pv.Variant(*map(base64.b64decode, line.split("\t"))) for line in lines]
    assert len(theirs) == len(values)
    assert pv.VariantArray.from_variants(theirs).is_null().to_pylist() == values.is_null().to_pylist()
    assert pv.equals(values, pv.VariantArray.from_variants(theirs)).to_pylist() == [
        None if value is None else True for value in theirs
    ]
    back = pv.open(copy).read()
    assert pv.equals(values, back).to_pylist() == [None if value is None else True for value in theirs]
    assert back.is_null().to_pylist() == values.is_null().to_pylist()
    # parquet-java 1.17.0 leaves the bytes of later fields behind a residual value; readers ignore them.
    assert {violation.reason for violation in pv.open(copy).validate().violations} <= {"trailing-bytes"}


def test_parquet_java_needs_the_names_of_missing_fields_in_the_dictionary_of_the_row(
    java_command: list[str], tmp_path: Path
) -> None:
    lines = ['{"a": 1}', '{"a": 2, "b": 3}']
    # parquet-java 1.17.0 and 1.18.1 look up the name of each shredded field of an object, also if the field is missing.
    # `ingest` writes one dictionary per batch, which has the names of all rows.
    pv.write(tmp_path / "rows.parquet", {"v": pv.parse_json(lines)}, schema="a bigint, b bigint")
    with pytest.raises(AssertionError, match="Key does not exist in metadata: b"):
        _run(java_command, tmp_path / "rows.parquet", tmp_path / "copy1.parquet")
    batch = pv.parse_json(lines, dictionary="batch")
    pv.write(tmp_path / "batch.parquet", {"v": batch}, schema="a bigint, b bigint")
    _run(java_command, tmp_path / "batch.parquet", tmp_path / "copy2.parquet")
    assert pv.open(tmp_path / "copy2.parquet").read().to_pylist() == [{"a": 1}, {"a": 2, "b": 3}]
