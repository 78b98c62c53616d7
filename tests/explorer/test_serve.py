"""The page on loopback: who may ask, what is answered."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.quality.explorer.serve import ExploreServer


@pytest.fixture(scope="module")
def server(table: Path) -> Iterator[ExploreServer]:
    served = ExploreServer(pv.open(table).explore())
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield served
    served.close()
    thread.join()


def _ask(server: ExploreServer, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    host, port = server.url.split("/")[2].split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def _sql(server: ExploreServer, text: Any, **headers: str) -> tuple[int, Any]:
    token = server.token
    status, body = _ask(server, "POST", f"/{token}/sql", json.dumps({"sql": text}), **{"X_Token": token} | headers)
    return status, json.loads(body)


def test_the_page_is_given_to_whoever_has_the_token(server: ExploreServer) -> None:
    status, body = _ask(server, "GET", f"/{server.token}/")
    assert status == 200
    assert b"<title>" in body
    for path in ("/", "/wrong/", f"/{server.token}", f"/{server.token}/../x", "/etc/passwd"):
        assert _ask(server, "GET", path)[0] == 404


def test_other_origins_and_hosts_get_nothing(server: ExploreServer) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
        assert _ask(server, "GET", f"/{server.token}/", **headers)[0] == 404
        assert _sql(server, "SELECT 1", **headers)[0] == 404
    assert _sql(server, "SELECT 1", X_Token="wrong")[0] == 404


def test_rows_are_answered_by_sql(server: ExploreServer) -> None:
    status, found = _sql(server, "SELECT v:kind::string AS kind, count(*) AS n FROM t GROUP BY ALL ORDER BY kind")
    assert status == 200
    assert (found["columns"], found["rows"]) == (["kind", "n"], [["pull", "2000"], ["push", "4000"]])
    assert _sql(server, "SELECT v:id::bigint AS id FROM t")[1]["more"] is True


@pytest.mark.parametrize("text", ["", "DROP TABLE t", "SELECT nothing FROM t", "COPY t TO 'x.csv'", 5, "SELECT"])
def test_an_invalid_query_is_an_error_in_one_line(server: ExploreServer, text: Any) -> None:
    status, found = _sql(server, text)
    assert status == 200
    assert found["error"]
    assert "Traceback" not in found["error"]


def test_bodies_and_lengths_that_cannot_be_are_answered(
    server: ExploreServer, capfd: pytest.CaptureFixture[str]
) -> None:
    path, token = f"/{server.token}/sql", {"X_Token": server.token}
    for body in (b"[" * 100_000, b'{"sql": {"a": 1}}', b"\xff", b"5"):
        status, answer = _ask(server, "POST", path, body, **token)
        assert status == 200
        assert json.loads(answer)["error"]
    assert _ask(server, "POST", path, b"", Content_Length="\u00b2", **token)[0] == 413
    assert "Traceback" not in capfd.readouterr().err


def test_a_page_that_cannot_be_saved_is_an_error_of_ours(table: Path, tmp_path: Path) -> None:
    with pytest.raises(pv.VariantFileError, match="cannot write"):
        pv.open(table).explore().save(tmp_path / "no" / "such" / "page.html")


def test_a_port_that_cannot_be_had_is_said(server: ExploreServer, table: Path) -> None:
    taken = int(server.url.split(":")[2].split("/")[0])
    with pytest.raises(pv.VariantError) as caught:
        ExploreServer(pv.open(table).explore(), taken)
    assert caught.value.reason == "bad-port"


def test_rows_and_sql_in_the_page(server: ExploreServer, browser: Any) -> None:
    browser.get(server.url)
    browser.implicitly_wait(20)
    browser.find_element("css selector", "body[data-ready=yes]")
    browser.find_element("id", "tab-rows").click()
    field = browser.find_element("css selector", "#panel-rows textarea")
    field.clear()
    field.send_keys("SELECT v:user.name::string AS name FROM t WHERE v:id::int = 7")
    browser.find_element("id", "run-sql").click()
    assert browser.find_element("css selector", "#sql-rows td").text == "u7"
    browser.implicitly_wait(0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("DATE '10000-01-01'", "10000-01-01"),
        ("'infinity'::DATE", "infinity"),
        ("'-infinity'::TIMESTAMP_NTZ", "-infinity"),
        ("'12000-02-03 04:05:06+00'::TIMESTAMP", "12000-02-03 04:05:06+00:00"),
        ("TIMESTAMP_NS '2020-01-01 00:00:00.123456789'", "2020-01-01 00:00:00.123456789"),
        ("[DATE '10000-01-01', NULL]", '["10000-01-01",null]'),
        ("{'a': 'infinity'::TIMESTAMP_NTZ, 'b': 'nan'::DOUBLE}", '{"a":"infinity","b":"NaN"}'),
        ("MAP {'k': DATE '10000-01-01'}", '{"k":"10000-01-01"}'),
        ("INTERVAL 3 MONTH", "3 months"),
        ("'infinity'::DOUBLE", "inf"),
        ("NULL", None),
    ],
)
def test_values_that_python_cannot_hold_are_answered(server: ExploreServer, value: str, text: str | None) -> None:
    status, answer = _sql(server, f"SELECT {value} AS x")
    assert (status, answer) == (200, {"columns": ["x"], "rows": [[text]], "more": False})


@pytest.mark.parametrize("length", ["9" * 5000, "9" * 12, "-1", "+5", "1_0", "\u0661", "", "abc", "5.0"])
def test_any_content_length_is_answered_with_json(server: ExploreServer, length: str) -> None:
    token = server.token
    headers = {"X_Token": token, "Content_Length": length.encode("utf-8").decode("latin-1")}
    status, body = _ask(server, "POST", f"/{token}/sql", b"{}", **headers)
    assert status == 413
    assert "Content-Length" in json.loads(body)["error"]


def test_refused_requests_are_answered_with_json(server: ExploreServer) -> None:
    for method, path in (("GET", "/"), ("POST", "/x"), ("PUT", "/"), ("DELETE", f"/{server.token}/")):
        status, body = _ask(server, method, path)
        assert status >= 400
        assert json.loads(body)["error"]


def test_a_query_has_a_time_limit(server: ExploreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parquet_variant.quality.explorer.serve.QUERY_SECONDS", 0.5)
    status, answer = _sql(server, "SELECT count(*) FROM range(10000000) a, range(10000000) b")
    assert status == 200
    assert "stopped after 0.5 seconds" in answer["error"]
    assert _sql(server, "SELECT 1 AS x")[1]["rows"] == [["1"]]


def test_a_query_stops_at_the_row_limit(server: ExploreServer) -> None:
    status, answer = _sql(server, "SELECT * FROM range(10000000) a, range(1000000) b")
    assert (status, len(answer["rows"]), answer["more"]) == (200, 200, True)


def test_the_page_shows_the_limits(server: ExploreServer) -> None:
    page = _ask(server, "GET", f"/{server.token}/")[1].decode()
    assert "is stopped after ${doc.limits.seconds} seconds" in page
    assert server.limits == {"rows": 200, "seconds": 30.0}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM '{file}'",
        "SELECT * FROM '{folder}/*.ndjson'",
        "SELECT * FROM 'file://{file}'",
        "SELECT * FROM 's3://bucket/x.parquet'",
        'SELECT * FROM "{file}"',
        "SELECT * FROM typed('{file}')",
        'SELECT * FROM typed("{file}")',
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM t, '{file}' AS x",
        "SELECT (SELECT count(*) FROM '{file}') FROM t",
        "WITH a AS (SELECT * FROM '{file}') SELECT * FROM a",
    ],
)
def test_sql_reads_only_the_table_of_the_page(server: ExploreServer, tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.ndjson"
    file.write_text('{"secret": 1}\n')
    status, answer = _sql(server, text.format(file=file, folder=tmp_path))
    assert status == 200
    assert "secret" not in json.dumps(answer)
    assert answer["error"]


def test_one_long_call_of_a_function_has_the_limits_of_a_query(
    server: ExploreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parquet_variant.quality.explorer.serve.QUERY_SECONDS", 1.0)
    status, answer = _sql(server, "SELECT length(repeat('x', 2000000000)) AS n")
    assert status == 200
    assert "error" in answer
    assert _sql(server, "SELECT 1 AS x")[1]["rows"] == [["1"]]


def test_memory_and_answers_have_limits(server: ExploreServer) -> None:
    for text in (
        "SELECT sum(length(a)) FROM (SELECT repeat(i::varchar, 3000000) AS a FROM range(4000) r(i)) ORDER BY 1",
        "SELECT list(repeat(i::varchar, 1000)) AS a FROM range(10000000) r(i)",
        "SELECT repeat('x', 100000000) AS a",
    ):
        status, answer = _sql(server, text)
        assert status == 200
        assert len(json.dumps(answer)) < 10_000_000
    assert _sql(server, "SELECT 1 AS x")[1]["rows"] == [["1"]]


def test_ctrl_c_ends_an_idle_server_with_one_line(table: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "parquet_variant.cli", "explore", str(table), "--serve"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert process.stdout is not None
    (address,) = re.findall(r"http://\S+", process.stdout.readline())
    request = urllib.request.Request(
        f"{address}sql", b'{"sql": "SELECT 1"}', {"X-Token": address.rstrip("/").rpartition("/")[2]}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert b'"rows"' in answer.read()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "variant: error: interrupted\n")
