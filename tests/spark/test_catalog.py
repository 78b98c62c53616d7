"""Catalog tables of plain Spark over our files, and views over the data source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv


def _write(directory: Path, day: int, *numbers: int) -> None:
    (directory / f"day={day}").mkdir(parents=True, exist_ok=True)
    rows = {"id": list(numbers), "v": pv.from_python([{"n": number} for number in numbers])}
    pv.write(directory / f"day={day}" / f"{numbers[0]}.parquet", rows, schema="n bigint")


def test_plain_sql_reads_a_registered_directory_with_partitions(spark: Any, tmp_path: Path) -> None:
    _write(tmp_path / "it's", 1, 1, 2)
    _write(tmp_path / "it's", 2, 3)
    spark.sql("CREATE DATABASE IF NOT EXISTS registered")
    try:
        frame = pv.spark.register_table(spark, "registered.events", tmp_path / "it's")
        assert frame.columns == ["id", "v", "day"]
        query = "SELECT sum(variant_get(v, '$.n', 'bigint')), count(DISTINCT day) FROM registered.events"
        assert tuple(spark.sql(query).collect()[0]) == (6, 2)
        assert spark.sql("SELECT id FROM registered.events WHERE day = 2").collect()[0][0] == 3
        assert len(spark.sql("SHOW PARTITIONS registered.events").collect()) == 2
        _write(tmp_path / "it's", 3, 4)
        with pytest.raises(pv.VariantError, match="exists: pass replace=True"):
            pv.spark.register_table(spark, "registered.events", tmp_path / "it's")
        assert pv.spark.register_table(spark, "registered.events", tmp_path / "it's", replace=True).count() == 4
        spark.sql("DROP TABLE registered.events")
        assert len(pv.open(tmp_path / "it's").read()) == 4
        spark.sql("CREATE TABLE registered.own (i INT) USING parquet")
        with pytest.raises(pv.VariantError, match="the catalog owns the files of"):
            pv.spark.register_table(spark, "registered.own", tmp_path / "it's", replace=True)
    finally:
        spark.sql("DROP DATABASE registered CASCADE")


def test_tables_that_the_session_cannot_register_are_refused_at_once(spark: Any, tmp_path: Path) -> None:
    pv.write(tmp_path / "delta", {"v": pv.parse_json(["1"])}, format="delta")
    pv.write(tmp_path / "iceberg", {"v": pv.parse_json(["1"])}, format="iceberg")
    for name, path, message in (
        ("d", "delta", "this session has no delta-spark: start Spark with --packages io.delta:delta-spark"),
        ("i", "iceberg", "not an Iceberg catalog of this session: start Spark with --packages org.apache.iceberg"),
        ("nowhere.t", "delta", "no delta-spark"),
        ("a.b.c.d", "delta", "invalid table name"),
        ("p", "x.parquet", "is not a directory"),
        ("p", "nothing", "does not exist"),
    ):
        with pytest.raises(pv.VariantError, match=message):
            pv.spark.register_table(spark, name, tmp_path / path)
    _write(tmp_path / "files", 1, 1)
    with pytest.raises(pv.VariantError, match="the database nowhere does not exist: run CREATE DATABASE `nowhere`"):
        pv.spark.register_table(spark, "nowhere.t", tmp_path / "files")
    assert not spark.catalog.tableExists("p")


def test_catalog_tables_of_the_data_source_read_the_files_that_exist_now(spark: Any, tmp_path: Path) -> None:
    spark.dataSource.register(pv.spark.VariantDataSource)
    _write(tmp_path / "files", 1, 1, 2)
    pv.write(tmp_path / "delta", {"v": pv.parse_json(['{"n": 1}', '{"n": 2}'])}, format="delta")
    spark.sql("CREATE DATABASE ours")
    try:
        spark.sql(f"CREATE TABLE ours.files USING variant LOCATION '{tmp_path / 'files'}'")
        columns = json.dumps({"n": ["$.n", "int"]})
        options = f"OPTIONS (path '{tmp_path / 'delta'}', columns '{columns}', where 'n > 1')"
        spark.sql(f"CREATE TABLE ours.delta USING variant {options}")
        assert spark.sql("SELECT id, day FROM ours.files WHERE id > 1").collect() == [(2, 1)]
        assert spark.table("ours.delta").collect() == [(2,)]
        _write(tmp_path / "files", 2, 3)
        pv.open(tmp_path / "delta").append({"v": pv.parse_json(['{"n": 3}'])})
        assert spark.sql("SELECT id, variant_get(v, '$.n', 'int') FROM ours.files WHERE day = 2").collect() == [(3, 3)]
        assert spark.table("ours.delta").count() == 2
        assert spark.sql("SELECT count(*) FROM ours.delta WITH (where 'n > 2')").collect() == [(1,)]
        # The columns of a query that creates another table must not bring the location of this table along.
        path = str(tmp_path / "copy")
        spark.table("ours.files").where("id = 1").write.format("variant").option("path", path).saveAsTable("ours.copy")
        spark.sql(f"CREATE TABLE ours.typed (v VARIANT) USING variant LOCATION '{tmp_path / 'files'}'")
        for statement, message in (
            ("SELECT * FROM ours.copy", "if the table was created with columns"),
            ("SELECT * FROM ours.typed", "if the table was created with columns"),
            ("INSERT INTO ours.files SELECT * FROM ours.files", "Spark does not pass the path"),
            ("CREATE TABLE ours.none USING variant", "requires a LOCATION"),
            (f"CREATE TABLE ours.none USING variant LOCATION '{tmp_path / 'none'}'", "does not exist"),
            ("CREATE TABLE ours.none USING variant OPTIONS (catalog 'c', path 'db.t')", "register_table"),
        ):
            with pytest.raises(Exception, match=message) as raised:
                spark.sql(statement).collect()
            assert "Traceback" not in str(raised.value)
        spark.sql("DROP TABLE ours.files")
        assert len(pv.open(tmp_path / "files").read()) == 3
    finally:
        spark.sql("DROP DATABASE ours CASCADE")


def test_a_view_over_the_data_source_shows_new_rows_when_it_is_created_again(spark: Any, tmp_path: Path) -> None:
    spark.dataSource.register(pv.spark.VariantDataSource)
    pv.write(tmp_path / "t", {"id": [1, 2], "v": pv.parse_json(["1", "2"])}, format="delta")
    create = f"CREATE OR REPLACE TEMPORARY VIEW ours USING variant OPTIONS (path '{tmp_path / 't'}')"
    spark.sql(create)
    try:
        assert spark.table("ours").count() == 2
        pv.open(tmp_path / "t").append({"id": [3], "v": pv.parse_json(["3"])})
        spark.sql("REFRESH TABLE ours")
        assert spark.table("ours").count() == 2  # Spark plans the read of a Python data source once
        spark.sql(create)
        assert spark.table("ours").count() == 3
    finally:
        spark.sql("DROP VIEW ours")
