"""The first hour with ingest: misspelled paths in options, JSON in strings, CSV next to JSON, typed at a shell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv

Sh = Callable[[str], Any]


@pytest.mark.parametrize(
    ("option", "suggestion"),
    [
        ("--sort-by '$.user.nmae'", "--sort-by names $.user.nmae, and no row has this path: did you mean $.user.name?"),
        ("--sort-by '$.name'", "did you mean $.user.name?"),
        ("--bloom-filter '$.usr.name'", "did you mean $.user.name?"),
        ("--type '$.user.nmae:uuid'", "--type names $.user.nmae, and no row has this path: did you mean $.user.name?"),
        ("--schema 'kinds string'", "--schema names $.kinds, and no row has this path: did you mean $.kind?"),
        ("--partition-by 'k=$.knd:string'", "did you mean $.kind?"),
        ("--partition-by 'k=$.zzz:string'", "--partition-by names $.zzz, and no row has this path"),
        ("--json-column '$.kidn'", "did you mean $.kind?"),
    ],
)
def test_a_misspelled_path_in_an_option_is_an_error(sh: Sh, tmp_path: Path, option: str, suggestion: str) -> None:
    done = sh(f"variant ingest events.ndjson out {option}")
    assert done.code == 1
    assert suggestion in done.err
    assert not (tmp_path / "out").exists()


def test_the_ending_of_the_destination_is_that_of_its_format(sh: Sh, tmp_path: Path) -> None:
    done = sh("variant ingest events.ndjson out.vortex")
    assert (done.code, pv.open(tmp_path / "out.vortex").format) == (0, "vortex"), done.err
    assert "--format vortex" in sh("variant ingest events.ndjson o.vortex --format parquet").err
    assert "--format parquet" in sh("variant ingest events.ndjson out.parquet --format vortex").err


def test_a_schema_may_list_optional_fields(sh: Sh) -> None:
    done = sh("variant ingest events.ndjson out --schema 'kind string, discount double'")
    assert done.code == 0
    assert "hint: --schema names $.discount, and no row has this path" in done.err


def test_json_in_strings_inside_json(sh: Sh, tmp_path: Path) -> None:
    rows = [{"key": key, "payload": json.dumps({"a": key})} for key in range(3)] + [{"key": 3}, {"payload": None}]
    (tmp_path / "kafka.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "kafka.txt").write_bytes((tmp_path / "kafka.ndjson").read_bytes())
    done = sh("variant ingest kafka.txt out --json-column payload")  # no file of JSON by its name: a table?
    assert (done.code, "--json-column '$.payload'" in done.err) == (1, True)
    assert sh("variant ingest kafka.txt out --json-column '$.payload'").code == 0
    assert sh("variant ingest kafka.ndjson named --json-column payload").code == 0
    assert sh("variant cat named").lines == sh("variant cat out").lines
    assert sh("variant cat out").lines[1:] == ['{"key":1,"payload":{"a":1}}', '{"key":2,"payload":{"a":2}}',
                                               '{"key":3}', '{"payload":null}']  # fmt: skip

    with (tmp_path / "kafka.ndjson").open("a") as file:
        file.write('{"key": 5, "payload": "{oops"}\n')
    done = sh("variant ingest kafka.ndjson bad --json-column '$.payload'")
    assert "line 6: the string at $.payload: unexpected 'oops'" in done.err
    done = sh("variant ingest kafka.ndjson some --json-column '$.payload' --on-error quarantine --json")
    assert [json.loads(done.out)[name] for name in ("rows", "bad_records")] == [5, 1]


def test_csv_columns_next_to_json_get_types_on_request(sh: Sh, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    lines = ["id,zip,price,day,at,ok,payload", '1,007,1.5,2026-01-02,2026-01-02T03:04:05Z,true,"{""a"": 1}"',
             '2,123,2,2026-01-03,,false,"{""a"": 2}"']  # fmt: skip
    (tmp_path / "orders.csv").write_text("\n".join(lines) + "\n")
    assert sh("variant ingest orders.csv orders --json-column payload --infer-types").code == 0
    kinds = {line.split()[0]: line.split()[1] for line in sh('variant query orders "DESCRIBE t"').lines[2:]}
    assert kinds == {"id": "BIGINT", "zip": "VARCHAR", "price": "DOUBLE", "day": "DATE", "at": "TIMESTAMP",
                     "ok": "BOOLEAN", "payload": "VARIANT"}  # fmt: skip
    done = sh('variant query orders "SELECT sum(price) AS s, max(day) FROM t WHERE payload:a::int > 0"')
    assert done.lines[2:] == ["3.5 2026-01-03"]
    assert sh('variant query orders "SELECT ok FROM t ORDER BY id"').lines[2:] == ["true", "false"]
    assert "--json-column" in sh("variant ingest orders.csv plain --infer-types").err


def test_the_offsets_of_postgres_are_timestamps(sh: Sh, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    moments = ["2026-11-20 22:00:00+00", "2026-11-20 22:00:00.25-07", "2026-11-20 22:00+05:30"]
    (tmp_path / "a.csv").write_text("at,v\n" + "".join(f"{moment},{{}}\n" for moment in moments))
    assert sh("variant ingest a.csv a --json-column v --infer-types").code == 0
    for table in ("a", "a.csv"):
        done = sh(f'variant query {table} "SELECT epoch_ms(at) AS ms FROM t"')
        assert [int(line) for line in done.lines[2:]] == [1795212000000, 1795237200250, 1795192200000]
