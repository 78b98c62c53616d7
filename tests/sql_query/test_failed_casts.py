"""Warnings about casts of paths that are NULL for values that are not null, and about IS NULL over JSON nulls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

ROWS = ('{"x": 1, "l": [1, "b", {}]}', '{"x": "1,234"}', '{"x": "7"}', '{"x": {"y": 1}}', '{"x": null}', "{}") * 2
OF_X = '4 values at v:x::int could not be cast and are NULL, such as string "1,234": '


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root, rows = tmp_path_factory.mktemp("casts"), pv.parse_json(list(ROWS))
    (root / "a.ndjson").write_text("\n".join(ROWS))
    pv.write(root / "plain.parquet", rows)
    pv.write(root / "typed.parquet", rows, schema="x bigint, l array<bigint>")
    pv.write(root / "text.parquet", rows, schema="x string")
    for name in ("delta", "vortex"):
        pv.ingest(root / "a.ndjson", root / name, format=name)
    paths = {path.name: path for path in root.iterdir()}
    return {"memory": rows, "text": pa.table({"v": pa.array(ROWS, pa.json_())}), **paths}


def test_failed_casts_are_counted_with_an_example(sources: dict[str, Any]) -> None:
    for name, rows in sources.items():
        queries = (
            "SELECT v:x::int AS x FROM t",
            "SELECT sum(v:x::int) AS s, count(v:x::int) AS n FROM t",
            "SELECT variant_get(v, '$.x', 'int') AS x, try_cast(v:x AS int) AS y FROM t",
            "SELECT try_cast(v:x AS int) AS y, v:x::int AS x FROM t",
            "SELECT a.v:x::int AS x FROM t AS a, (SELECT max(v:x::int) AS m FROM t) AS b WHERE a.v:x::int <= b.m",
            "SELECT 1 AS n FROM t WHERE v:x::int > 0",
        )
        for query in queries if name in ("memory", "plain.parquet", "delta") else queries[:2]:
            warnings = pv.sql(query, t=rows).warnings
            assert len(warnings) == 1 and warnings[0].startswith(OF_X), (name, query, warnings)
        silent = "SELECT try_cast(v:x AS int) AS x, try_variant_get(v, '$.x', 'int') AS y, v:x AS z, v:x::string FROM t"
        assert pv.sql(silent, t=rows).warnings == (), name
        (warning,) = pv.sql("SELECT v:l::array<int> AS l FROM t", t=rows).warnings
        assert warning.startswith('4 values at v:l::array<int> could not be cast and are NULL, such as string "b"')
        with pytest.raises(pv.VariantError, match="cannot cast"):
            pv.sql("SELECT v:x::int AS x FROM t", t=rows, errors="raise")


def test_failed_casts_of_entries_and_of_scans_and_changes_are_counted(sources: dict[str, Any], tmp_path: Path) -> None:
    exploded = "SELECT e.value::int AS n FROM t, variant_explode(v:l) AS e"
    (warning,) = pv.sql(exploded, t=sources["memory"]).warnings
    assert warning.startswith('4 values at e.value::int could not be cast and are NULL, such as string "b"')
    assert pv.sql(exploded.replace("e.value::int", "try_cast(e.value AS int)"), t=sources["memory"]).warnings == ()
    for name in ("a.ndjson", "plain.parquet", "typed.parquet", "delta", "vortex"):
        scan = pv.open(sources[name]).scan({"n": ("$.x", "int")}, "n > 0")
        for _ in range(2):
            with pytest.warns(UserWarning, match="^4 values at [v$][:.]x::int could not be cast and are NULL"):
                assert scan.to_arrow()["n"].to_pylist() == [1, 7] * 2
        assert pv.open(sources[name]).typed().to_arrow().num_rows == len(ROWS)
    pv.ingest(sources["a.ndjson"], tmp_path / "delta", format="delta")
    report = pv.open(tmp_path / "delta").delete("v:x::int > 5")
    assert report.rows_deleted == 2 and [text for text in report.hints if text.startswith(OF_X)] == list(report.hints)


def test_json_nulls_that_is_null_does_not_find_are_counted(sources: dict[str, Any]) -> None:
    hint = "2 JSON nulls at {0}: IS NULL is false there, is_variant_null({0}) is true"
    for name, rows in sources.items():
        for query, texts in (
            ("SELECT count(*) AS n FROM t WHERE v:x IS NULL", ["v:x"]),
            ("SELECT v:x IS NULL AS a, v:x IS NOT NULL AS b FROM t", ["v:x"]),
            ("SELECT count(*) AS n FROM (SELECT v:x AS y FROM t) WHERE y IS NOT NULL", ["y"]),
            ("SELECT count(*) AS n FROM t WHERE v:x IS NULL OR IS_VARIANT_NULL(v:x)", []),
            ("SELECT count(*) AS n FROM t WHERE v:l IS NULL", []),
        ):
            assert pv.sql(query, t=rows).warnings == tuple(map(hint.format, texts)), (name, query)


def test_typed_columns_count_values_of_other_types(tmp_path: Path) -> None:
    values = [*map(str, range(9)), '"1,234"', '{"y": 1}', "null", '"7"']
    (tmp_path / "a.ndjson").write_text("{}\n" + "".join(f'{{"x": {value}}}\n' for value in values))
    for format in ("parquet", "delta", "iceberg"):
        pv.ingest(tmp_path / "a.ndjson", tmp_path / format, format=format, schema="x bigint")
    for name in ("a.ndjson", "parquet", "delta", "iceberg"):
        result = pv.sql("SELECT sum(x) AS s, count(x) AS n FROM typed(t)", t=tmp_path / name)
        assert result.to_pylist() == [{"s": 36, "n": 9}], name
        (warning,) = result.warnings
        expected = '3 values of another type are NULL in the typed column x, such as string "1,234": query v:x::bigint'
        assert warning.startswith(expected), name
