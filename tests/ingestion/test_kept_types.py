"""Appends keep the types that the table has: no column disappears, and values of other types are counted."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.format.files import locate
from parquet_variant.tables.row_input import types_of_paths

FORMATS = ["parquet", "delta", "iceberg"]


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    rows = [{"id": n, "at": f"2026-01-{n + 1:02}T00:00:00Z", "n": n, "d": "2026-01-01"} for n in range(20)]
    return _lines(tmp_path / "first.ndjson", rows)


@pytest.mark.parametrize("format", FORMATS)
def test_an_append_keeps_the_types_of_the_table(first: Path, tmp_path: Path, format: Any) -> None:
    rows = [{"id": n, "at": f"2026-02-{n + 1:02}T00:00:00Z", "n": f"x{n}", "d": "soon", "new": n} for n in range(10)]
    more, table = _lines(tmp_path / "more.ndjson", rows), tmp_path / "t"
    pv.ingest(first, table, format=format, types={"$.at": "timestamp!", "$.d": "date"})
    result = pv.ingest(more, table, format=format, mode="append")
    assert result.schema is not None
    assert result.schema.to_ddl() == "at timestamp, d date, id bigint, n bigint, new bigint"
    assert [hint.partition(" do not")[0] for hint in result.hints] == ["10 strings at $.d", "10 strings at $.n"]
    typed = pv.sql("SELECT * FROM typed(t)", t=table).to_arrow()
    assert [str(field.type) for field in typed.schema] == ["timestamp[us, tz=UTC]", "date32[day]", *["int64"] * 3]
    assert (typed["n"].null_count, typed["d"].null_count, typed["at"].null_count) == (10, 10, 0)
    (last,) = pv.sql("SELECT max(v:at::timestamp) AS m FROM t", t=table).to_pylist()
    assert last["m"] == dt.datetime(2026, 2, 10, tzinfo=dt.UTC)
    assert sorted(pv.sql("SELECT v:n::string AS n FROM t WHERE v:d = 'soon'", t=table).to_arrow()["n"].to_pylist()) == [
        f"x{n}" for n in range(10)
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_the_types_of_the_file_are_used_on_request(first: Path, tmp_path: Path, format: Any) -> None:
    more = _lines(tmp_path / "more.ndjson", [{"id": n, "n": f"x{n}"} for n in range(10)])
    pv.ingest(first, tmp_path / "t", format=format)
    result = pv.ingest(more, tmp_path / "t", format=format, mode="append", schema_of="file")
    assert result.schema is not None and result.schema.to_ddl() == "id bigint, n string" and not result.hints
    with pytest.raises(pv.VariantError, match="schema_of"):
        pv.ingest(more, tmp_path / "t", mode="append", schema_of="row")  # type: ignore[arg-type]


@pytest.mark.parametrize("format", FORMATS[1:])
def test_a_merge_of_json_keeps_the_types_of_the_table(first: Path, tmp_path: Path, format: Any) -> None:
    rows = [{"id": n, "at": f"2026-03-{n + 1:02}T00:00:00Z", "n": n, "d": "2026-01-01"} for n in range(15, 25)]
    more, table, keyed = _lines(tmp_path / "more.ndjson", rows), tmp_path / "t", tmp_path / "k"
    pv.ingest(first, table, format=format, types={"$.at": "timestamp!", "$.d": "date"})
    pv.ingest(first, keyed, format=format, types={"$.at": "timestamp!", "$.d": "date"}, columns=["id"])
    for dest, on, columns in ((table, "v:id", ()), (keyed, "id", ["id"])):
        merge = pv.open(dest).merge(more, on, columns=columns).when_matched_update_all().when_not_matched_insert_all()
        assert merge.execute().rows_updated == 5
        kinds = pv.sql("SELECT DISTINCT variant_type(v:at) AS at, variant_type(v:d) AS d FROM t", t=dest).to_pylist()
        assert kinds == [{"at": "timestamp", "d": "date"}]
        late = pv.sql("SELECT count(*) AS c FROM t WHERE v:at >= '2026-03-01'", t=dest).to_pylist()
        assert late == [{"c": 10}]
    as_text = pv.open(more, types={"$.d": "string"})
    pv.open(table).merge(as_text, "v:id").when_matched_update_all().execute()
    assert pv.sql("SELECT count(*) AS c FROM t WHERE variant_type(v:at) = 'string'", t=table).to_pylist() == [{"c": 10}]


def test_single_values_that_the_sample_does_not_show_are_counted(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"a": {"n": n}, "b": [n], "ok": True} for n in range(50)]
    table = tmp_path / "t"
    pv.ingest(_lines(tmp_path / "a.ndjson", rows), table)
    rows[7] = {"a": {"n": "seven"}, "b": ["x", None], "ok": None}
    rows[8] = {"a": {"n": {"deep": 1}}, "b": [[1]], "ok": "yes"}
    rows[9] = {"a": {"n": 1.5}, "b": [], "ok": False}
    result = pv.ingest(_lines(tmp_path / "b.ndjson", rows), table, mode="append")
    counts = [hint.partition(" do")[0].partition(" does")[0] for hint in result.hints]
    assert counts == ["1 string and 1 object at $.a.n", "1 string and 1 array at $.b[*]", "1 string at $.ok"]
    found = pv.open(table).read().to_pylist()
    assert len(found) == 100 and all(row in found for row in rows)


def test_the_types_of_most_rows_count_in_a_table_with_several(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for count, value in ((5, "x"), (20, 1), (3, "y")):
        rows = _lines(tmp_path / "a.ndjson", [{"n": value, f"k{count}": 1}] * count)
        pv.ingest(rows, table, mode="append", schema_of="file")
    schema = types_of_paths((file, "v") for file in locate(table))
    assert schema is not None and schema.to_ddl() == "k20 bigint, k3 bigint, k5 bigint, n bigint"


def test_numbers_get_a_type_that_holds_both(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.ingest(_lines(tmp_path / "a.ndjson", [{"n": 1}] * 9), table)
    result = pv.ingest(_lines(tmp_path / "b.ndjson", [{"n": 1.25}] * 9), table, mode="append")
    assert not result.hints
    (total,) = pv.sql("SELECT sum(n) AS s FROM typed(t)", t=table).to_pylist()
    assert float(total["s"]) == 9 * 2.25


@pytest.mark.parametrize("format", FORMATS)
def test_rows_that_python_appends_keep_the_types(first: Path, tmp_path: Path, format: Any) -> None:
    pv.ingest(first, tmp_path / "t", format=format, types={"$.at": "timestamp!"})
    table = pv.open(tmp_path / "t")
    table.append([{"id": "x", "at": 5, "n": {"a": 1}, "d": 1.5}])
    table.append([{"id": 7, "at": dt.datetime(2026, 3, 1, tzinfo=dt.UTC), "n": None}])
    types = {"$.at": "timestamp", "$.d": "string", "$.id": "bigint", "$.n": "bigint"}
    assert pv.open(tmp_path / "t").paths() == types
    typed = pv.open(tmp_path / "t").typed().to_arrow()
    assert [typed[name].null_count for name in ("at", "d", "id", "n")] == [1, 2, 1, 2]


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_files_of_several_types_keep_the_columns_of_most_rows(first: Path, tmp_path: Path, format: Any) -> None:
    pv.ingest(first, tmp_path / "t", format=format)
    more = _lines(tmp_path / "more.ndjson", [{"id": "x", "n": {"deep": n}} for n in range(3)])
    pv.ingest(more, tmp_path / "t", format=format, mode="append", schema_of="file")
    table = pv.open(tmp_path / "t")
    assert table.paths() == {"$.at": "string", "$.d": "string", "$.id": "bigint", "$.n": "bigint"}
    typed = table.typed().to_arrow()
    assert typed["id"].type == typed["n"].type == "int64" and typed["n"].null_count == 3
    assert "TRY_CAST(v['n'] AS BIGINT) AS n" in table.sql_view()


@pytest.mark.parametrize("format", FORMATS)
def test_numbers_that_count_time_become_the_timestamps_of_the_table(tmp_path: Path, format: Any) -> None:
    first = _lines(tmp_path / "first.ndjson", [{"created": 1767225600 + n, "n": 1767225600} for n in range(20)])
    second = _lines(tmp_path / "second.ndjson", [{"created": 1767312000, "n": 1767225600}])
    pv.ingest(first, tmp_path / "table", format=format, types={"$.created": "timestamp_s!"})
    result = pv.ingest(second, tmp_path / "table", mode="append")
    typed = [(path.path, path.type, path.typed) for path in result.typed_strings]
    assert typed == [("$.created", "timestamp_s!", 1)]
    assert (result.hints, result.inference.suggested_types) == ((), ())
    days = pv.open(tmp_path / "table").scan({"day": "$.created:date", "n": "$.n:bigint"}).to_arrow()
    assert sorted(map(str, set(days["day"].to_pylist()))) == ["2026-01-01", "2026-01-02"]
    assert set(days["n"].to_pylist()) == {1767225600}
