"""The recipes of docs/stack.md that need a library of their own, dbt's example, OpenLineage's events, and narwhals."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.packaging.test_doc_blocks import BLOCK, ROOT, ROWS, _values

import parquet_variant as pv
from parquet_variant.cli.app import main

# Libraries warn of each other.
pytestmark = pytest.mark.filterwarnings("default")
RECIPES = {
    match["why"].removeprefix("needs "): match["text"]
    for match in BLOCK.finditer((ROOT / "docs/stack.md").read_text("utf-8"))
    if match["why"]
}
CONTRACT = {
    "$.id": {"type": "integer", "required": True, "min": 1},
    "$.kind": {"values": ["a", "b"]},
    "$.n": {"max": 9},
}


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.ndjson").write_text("".join(f"{row}\n" for row in ROWS))
    pv.ingest("events.ndjson", "events")
    return tmp_path


@pytest.mark.parametrize("library", sorted(RECIPES.keys() - {"airflow", "dbt"}))
def test_recipe(library: str, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    monkeypatch.setenv("DLT_DATA_DIR", str(events / "dlt"))
    names: dict[str, Any] = {"__name__": __name__}
    for line, found, expected in _values(RECIPES[library], names):
        assert found == expected, f"line {line}"
    if library == "fastapi":
        from fastapi.testclient import TestClient

        with TestClient(names["app"]) as client:
            assert [client.post("/clicks", json=[page]).json() for page in ({"page": 1}, {"page": [2]})] == [0, 1]
        assert pv.to_json(pv.open("clicks").read()).to_pylist() == ['{"page":1}', '{"page":[2]}']


def test_airflow_runs_the_task(events: Path) -> None:
    if importlib.util.find_spec("airflow") is None:  # An import would make its home directory.
        pytest.skip("airflow is not installed")
    (events / "dags").mkdir()
    (events / "dags/events.py").write_text(RECIPES["airflow"])
    settings = {"DAGS_FOLDER": str(events / "dags"), "LOAD_EXAMPLES": "False"}
    environment = {**os.environ, "AIRFLOW_HOME": str(events / "home")}
    environment |= {f"AIRFLOW__CORE__{name}": value for name, value in settings.items()}
    for command, answer in (
        ("db migrate", ""),
        ("tasks test load_events ingest 2026-11-28", "Returned value was: 2"),
        ("tasks test load_events ingest 2026-11-28", "Returned value was: 0"),
    ):
        arguments = [sys.executable, "-m", "airflow", *command.split()]
        done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert answer in done.stdout + done.stderr
    assert len(pv.open(events / "lake")) == 2


# ---- dlt


def test_a_load_package_is_written_once(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dlt = pytest.importorskip("dlt")
    from parquet_variant.tables.integrations import dlt as variant_dlt

    monkeypatch.setenv("DLT_DATA_DIR", str(events / "dlt"))
    load, failures = variant_dlt.load_file, [True, True]

    def fails_after_the_commit(*arguments: Any) -> None:
        load(*arguments)
        if failures:
            failures.pop()
            raise OSError("the connection is lost after the commit")

    monkeypatch.setattr(variant_dlt, "load_file", fails_after_the_commit)
    pipeline = dlt.pipeline("once", destination=variant_dlt.destination("lake"), pipelines_dir=str(events / "p"))
    rows = [{"id": 1, "nested": {"a": [1]}}, {"id": 2, "nested": "text"}]
    for disposition in ("append", "append", "replace", "replace"):
        while True:
            try:
                pipeline.run(
                    rows if pipeline.has_pending_data is False else None, table_name="t", write_disposition=disposition
                )
                break
            except Exception:
                assert pipeline.has_pending_data
    assert len(pv.open("lake/t")) == 2
    assert pv.to_json(pv.open("lake/t").read()).to_pylist() == ['{"a":[1]}', '"text"']


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_merges_by_key_add_columns(events: Path, monkeypatch: pytest.MonkeyPatch, format: Any) -> None:
    dlt = pytest.importorskip("dlt")
    from parquet_variant.tables.integrations.dlt import destination

    monkeypatch.setenv("DLT_DATA_DIR", str(events / "dlt"))
    pipeline = dlt.pipeline("keys", destination=destination("lake", format=format), pipelines_dir=str(events / "p"))
    options: dict[str, Any] = {"table_name": "t", "write_disposition": "merge", "primary_key": "id"}
    pipeline.run([{"id": 1, "v": {"a": 1}}, {"id": 2, "v": [1]}], **options)
    pipeline.run([{"id": 2, "v": {"a": 0}}, {"id": 2, "v": {"a": 2}, "new": "x"}, {"id": 3, "v": None}], **options)
    rows = pv.sql("SELECT id, to_json(v) AS v, new FROM t ORDER BY id", t="lake/t").to_pylist()
    assert [list(row.values()) for row in rows] == [[1, '{"a":1}', None], [2, '{"a":2}', "x"], [3, None, None]]


def _orders(dlt: Any, rows: list[Any], disposition: str = "append") -> Any:
    return dlt.resource(iter([rows[:1], *rows[1:]]), name="orders", primary_key="id", write_disposition=disposition)


def test_files_of_the_filesystem_destination_have_one_variant(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dlt = pytest.importorskip("dlt")
    from parquet_variant.tables.integrations.dlt import one_variant

    monkeypatch.setenv("DLT_DATA_DIR", str(events / "dlt"))
    lake = dlt.destinations.filesystem(bucket_url=(events / "lake").as_uri())
    pipeline = dlt.pipeline("files", destination=lake, dataset_name="shop", pipelines_dir=str(events / "p"))
    first = [{"id": 1, "total": 10, "lines": [{"sku": "a"}]}, {"id": 2, "total": "unknown"}]
    second = [{"id": 3, "total": {"x": [1.5]}, "new": None}]
    for rows in (first, second):
        pipeline.run(one_variant(_orders(dlt, rows), keep=["id"], arrow=True), loader_file_format="parquet")
    assert set(pipeline.default_schema.tables["orders"]["columns"]) == {"id", "data"}
    table = pv.open(events / "lake/shop/orders")
    assert table.annotate() == ("data",)
    rows = table.sql("SELECT id, to_json(data) AS data FROM t ORDER BY id").to_pylist()
    texts = ['{"lines":[{"sku":"a"}],"total":10}', '{"total":"unknown"}', '{"new":null,"total":{"x":[1.5]}}']
    assert [json.loads(row["data"]) for row in rows] == [json.loads(text) for text in texts]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_arrow_variants_are_merged_by_key(events: Path, monkeypatch: pytest.MonkeyPatch, format: Any) -> None:
    dlt = pytest.importorskip("dlt")
    from parquet_variant.tables.integrations.dlt import destination, one_variant

    monkeypatch.setenv("DLT_DATA_DIR", str(events / "dlt"))
    pipeline = dlt.pipeline("arrow", destination=destination("lake", format=format), pipelines_dir=str(events / "p"))
    for rows, keep in (
        ([{"id": 1, "n": 1}, {"id": 2, "n": "x"}], ["id"]),
        ([{"id": 2, "n": [2], "day": "monday"}, {"id": 3, "n": None, "day": None}], ["id", "day"]),
    ):
        pipeline.run(one_variant(_orders(dlt, rows, "merge"), keep=keep, arrow=True))
    found = pv.sql("SELECT id, to_json(data) AS data, day FROM t ORDER BY id", t="lake/orders").to_pylist()
    expected = [[1, '{"n":1}', None], [2, '{"n":[2]}', "monday"], [3, '{"n":null}', None]]
    assert [list(row.values()) for row in found] == expected


# ---- dbt


def test_dbt_builds_the_example(events: Path) -> None:
    pytest.importorskip("dbt.adapters.duckdb")
    files = re.split(r"^# ---- (.+)\n", RECIPES["dbt"], flags=re.MULTILINE)[1:]
    assert len(files) == 10
    for name, text in zip(files[::2], files[1::2], strict=True):
        (events / name).parent.mkdir(exist_ok=True)
        (events / name).write_text(text)
    for _ in range(2):
        dbt = "from dbt.cli.main import cli; cli()"
        done = subprocess.run(
            [sys.executable, "-c", dbt, "build", "--profiles-dir", "."], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
    table = pv.open("totals")
    assert (table.format, table.version) == ("delta", 1)
    rows = table.sql("SELECT * FROM t ORDER BY kind").to_pylist()
    assert rows == [{"kind": "a", "n": 1}, {"kind": "b", "n": 5}]


# ---- pandera, Soda, narwhals, OpenLineage


def test_pandera_finds_what_the_contract_finds(events: Path) -> None:
    pytest.importorskip("pandera")
    import pandera.errors

    contract = pv.Contract(
        {**CONTRACT, "$.user": {"type": "object"}, "$.user.name": {"pattern": "^A", "max_length": 3}}
    )
    schema = contract.to_pandera()
    assert schema.metadata == {"not expressed": ["$.user type", "$.user nullable"]}
    frame = pv.open("events").scan({name: f"$.{name}" for name in schema.columns}).to_pandas()
    assert len(schema.validate(frame)) == 2
    bad = pv.parse_json(['{"id": 0, "kind": "c", "n": 10, "user": {"name": "Bernard"}}', '{"id": 1.5}', "{}"])
    frame = pv.open(bad).scan({name: f"$.{name}" for name in schema.columns}).to_pandas()
    with pytest.raises(pandera.errors.SchemaErrors) as caught:
        schema.validate(frame, lazy=True)
    cases = caught.value.failure_cases
    found = {(column, check) for column, check in zip(cases["column"], cases["check"], strict=True)}
    assert {column for column, _ in found} == {"id", "kind", "n", "user.name"}
    assert {f"$.{column}" for column, _ in found} == {v.path.shorthand for v in pv.open(bad).check(contract).violations}


CONTRACT_OF_ORDERS = pv.Contract(
    {
        "$": {"type": "object", "required": True},
        "$.id": {"type": "integer", "required": True, "min": 1},
        "$.kind": {"values": ["a", "b"]},
        "$.user": {"type": "object"},
        "$.user.name": {"pattern": "^A", "max_length": 3},
        "$.tags[*]": {"max_length": 3},
        "$.day": {"min": dt.date(2026, 1, 1)},
        "$.n": {"presence": 0.5, "max": 1.5},
    },
    name="orders",
)


def test_a_contract_for_soda_lists_what_is_lost() -> None:
    lost = [line for line in CONTRACT_OF_ORDERS.to_soda().splitlines() if line.startswith("#")]
    assert lost == [
        f"# not expressed: {rule}"
        for rule in [
            "$ type", "$ nullable", "$ required", "$.n presence", "$.tags[*] max_length", "$.user type",
            "$.user nullable", "$.day min", "$.id type",
        ]
    ]  # fmt: skip


@pytest.mark.parametrize("values", [[1, 2], [1.5, 2], ["a", "it's"], [True], ["a", 1], [dt.date(2026, 1, 1)]])
def test_soda_takes_lists_of_numbers_or_of_strings(values: list[Any]) -> None:
    text = pv.Contract({"$.k": {"values": values}}, name="lake/sales/orders").to_soda()
    assert "dataset: lake/sales/orders" in text
    assert ("valid_values" in text) == (values in ([1, 2], [1.5, 2], ["a", "it's"]))
    assert ("# not expressed: $.k values" in text) != ("valid_values" in text)


def test_soda_finds_what_the_contract_finds(tmp_path: Path) -> None:
    pytest.importorskip("soda_duckdb", reason="soda-duckdb is not installed")
    from soda_core.contracts.api.verify_api import verify_contract_locally
    from soda_duckdb.common.data_sources.duckdb_data_source import DuckDBDataSourceImpl

    (tmp_path / "contract.yml").write_text(CONTRACT_OF_ORDERS.to_soda())
    good, bad = (1, "a", "Abc", 1.0), (0, "c", "Bernard", 2.0)
    for rows, outcome in (([good], "passed"), ([good, bad, (None, "a", None, 1.0)], "failed")):
        connection = duckdb.connect()
        connection.execute('CREATE TABLE orders (id int, kind text, "user.name" text, n double)')
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
        source = DuckDBDataSourceImpl.from_existing_cursor(connection, name="duckdb")
        result = verify_contract_locally(data_sources=[source], contract_file_path=str(tmp_path / "contract.yml"))
        assert not result.has_errors, result.get_errors_str()
        (of_contract,) = result.contract_verification_results
        found = [(check.check.column_name, check.outcome.value.lower()) for check in of_contract.check_results]
        assert found == [(name, outcome) for name in ("id", "id", "kind", "n", "user.name")]


def test_narwhals_takes_typed_scans(events: Path) -> None:
    narwhals = pytest.importorskip("narwhals")
    frame = narwhals.from_native(pv.open("events").scan({"kind": "$.kind", "n": "$.n"}).to_polars())
    totals = frame.group_by("kind").agg(narwhals.col("n").sum()).sort("kind")
    assert totals["n"].to_list() == [1, 5]
    scan = pv.open("events").scan({"n": "$.n"})
    assert narwhals.from_arrow(scan, backend="pyarrow")["n"].to_list() == [1, 5]
    largest = narwhals.narwhalify(lambda frame: frame.select(narwhals.col("n").max()))
    for native in (scan.to_arrow(), scan.to_pandas(), scan.to_polars()):
        assert narwhals.from_native(largest(native))["n"].to_list() == [5]
    assert largest(pv.scan_polars("events", {"n": "$.n"})).collect()["n"].to_list() == [5]


def test_libraries_take_typed_scans_by_the_protocols_of_frames(events: Path) -> None:
    scan = pv.open("events").scan({"kind": "$.kind", "n": "$.n"})
    rows = [{"kind": "a", "n": 1}, {"kind": "b", "n": 5}]
    # Arrow PyCapsules, also in a second call.
    for _ in range(2):
        assert pa.table(scan).to_pylist() == pa.RecordBatchReader.from_stream(scan).read_all().to_pylist() == rows
    assert pl.DataFrame(scan).to_dicts() == rows
    # The interchange protocol, `__dataframe__`.
    assert pd.api.interchange.from_dataframe(scan.to_arrow()).to_dict("records") == rows
    assert pl.from_dataframe(pd.api.interchange.from_dataframe(scan.to_polars())).to_dicts() == rows


def test_ibis_joins_tables(events: Path) -> None:
    pytest.importorskip("ibis")
    whole, kinds = pv.open("events").to_ibis(), pv.open("events").to_ibis({"id": "$.id", "word": "$.kind"})
    joined = whole.join(kinds, "id").filter(whole.n > 1).select("word", "id")
    assert joined.execute().to_dict("records") == [{"word": "b", "id": 9}]


def test_an_ingest_is_a_run_event(events: Path) -> None:
    (events / "contract.yaml").write_text(pv.Contract({"$.id": {"max": 5}}).to_yaml())
    arguments = ["ingest", "events.ndjson", "checked", "--contract", "contract.yaml", "--on-violation", "warn", "-q"]
    assert main([*arguments, "--openlineage", "run.json"]) == 0
    event = json.loads((events / "run.json").read_text())
    (source,), (output,) = event["inputs"], event["outputs"]
    assert re.fullmatch(r"[0-9a-f-]{36}", event["run"]["runId"])
    assert (source["namespace"], source["name"]) == ("file", str(events / "events.ndjson"))
    assert source["inputFacets"]["dataQualityAssertions"]["assertions"] == [
        {"assertion": "max", "success": False, "column": "$.id"}
    ]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    (column,) = output["facets"]["schema"]["fields"]
    assert column["name"] == "v"
    assert {field["name"]: field["type"] for field in column["fields"]}["id"] == "bigint"
