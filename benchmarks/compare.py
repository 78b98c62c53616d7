"""Run 22 tasks of a user with JSON in five tools and write docs/compare.md.

Each point is one program per tool, run in a directory with the same files. A program passes if it ends without an error
within a minute; its ``assert`` states the expected result. A tool without a program has no documented way to do the task.
Two points are figures: the smallest figure passes, and so do those within a tenth of it. Run it with
``python -m benchmarks.compare``; the peers are in the extra ``bench`` (and ``pyiceberg[sql-sqlite]``).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

__all__ = ["POINTS", "TOOLS", "Point", "compare", "make_files", "page"]

ROOT = Path(__file__).resolve().parents[1]
TOOLS = {
    "parquet-variant": "import parquet_variant as pv",
    "DuckDB": "import duckdb; con = duckdb.connect()",
    "polars": "import polars as pl",
    "ClickHouse local": "import chdb",
    "PyIceberg": (
        "import pyarrow.json as pj\n"
        "from pyiceberg.catalog.sql import SqlCatalog\n"
        "catalog = SqlCatalog('c', uri='sqlite:///:memory:', warehouse='file://' + os.getcwd())\n"
        "catalog.create_namespace('d')\n"
        "def store(table, name='t'):\n"
        "    made = catalog.create_table('d.' + name, table.schema); made.append(table)\n"
        "    return made.scan().to_arrow()\n"
    ),
}
PACKAGES = dict(zip(TOOLS, ("parquet-variant", "duckdb", "polars", "chdb", "pyiceberg"), strict=True))
# An extension that must be downloaded.
NOT_TRIED = "SKIP"
# Two files: in the second one, ids are strings, and there is another field.
_SIDES = (
    "open('before.ndjson', 'w').write(''.join(json.dumps({'id': n}) + '\\n' for n in range(50)))\n"
    "open('after.ndjson', 'w').write(''.join(json.dumps({'id': str(n), 'new': 1}) + '\\n' for n in range(50)))\n"
)
_PRELUDE = """
import json, os, sys, time
from decimal import Decimal
def rows(name):
    return [json.loads(line, parse_float=Decimal) for line in open(name)]
def same(texts, name):
    assert [json.loads(text, parse_float=Decimal) for text in texts] == rows(name), texts
"""


@dataclass(frozen=True)
class Point:
    """Something wanted, and a program for each tool that may do it."""

    question: str
    programs: dict[str, str] = field(default_factory=dict)
    is_figure: bool = False


def _point(question: str, *programs: str | None, is_figure: bool = False) -> Point:
    given = dict(zip(TOOLS, programs, strict=False))
    return Point(question, {tool: text for tool, text in given.items() if text}, is_figure)


_CH = "def q(sql): return str(chdb.query(sql, 'TSVRaw')).splitlines()\n"
_FAILS = """
try:
    {}
except Exception as error:
    assert {}, error
else:
    raise SystemExit('no error')
"""
POINTS = (
    _point(
        "Rows whose fields differ in type are written to a file and read back with equal values",
        "pv.ingest('mixed.ndjson', 'out'); same(pv.to_json(pv.open('out').read()).to_pylist(), 'mixed.ndjson')",
        "con.execute(\"COPY (SELECT json::VARIANT AS v FROM read_ndjson_objects('mixed.ndjson')) TO 'o.parquet'\")\n"
        "same([r[0] for r in con.execute(\"SELECT v::JSON FROM 'o.parquet'\").fetchall()], 'mixed.ndjson')",
        "pl.read_ndjson('mixed.ndjson', infer_schema_length=None).write_parquet('o.parquet')\n"
        "same([json.dumps(r) for r in pl.read_parquet('o.parquet').to_dicts()], 'mixed.ndjson')",
        _CH + "q(\"SELECT json FROM file('mixed.ndjson', 'JSONAsObject') INTO OUTFILE 'o.native' FORMAT Native\")\n"
        "same(q(\"SELECT json::String FROM file('o.native', 'Native')\"), 'mixed.ndjson')",
        "same([json.dumps(r) for r in store(pj.read_json('mixed.ndjson')).to_pylist()], 'mixed.ndjson')",
    ),
    _point(
        "Integers and decimal fractions of up to 38 digits keep their exact value",
        "pv.ingest('numbers.ndjson', 'out'); same(pv.to_json(pv.open('out').read()).to_pylist(), 'numbers.ndjson')",
        "con.execute(\"COPY (SELECT json::VARIANT AS v FROM read_ndjson_objects('numbers.ndjson')) TO 'o.parquet'\")\n"
        "same([r[0] for r in con.execute(\"SELECT v::JSON FROM 'o.parquet'\").fetchall()], 'numbers.ndjson')",
        "pl.read_ndjson('numbers.ndjson').write_parquet('o.parquet')\n"
        "same([json.dumps(r) for r in pl.read_parquet('o.parquet').to_dicts()], 'numbers.ndjson')",
        _CH + "same(q(\"SELECT json::String FROM file('numbers.ndjson', 'JSONAsObject')\"), 'numbers.ndjson')",
        "same([json.dumps(r) for r in store(pj.read_json('numbers.ndjson')).to_pylist()], 'numbers.ndjson')",
    ),
    _point(
        "A bad line fails the job, and the error names the line",
        _FAILS.format("pv.ingest('bad.ndjson', 'out')", "'line 3' in str(error)"),
        _FAILS.format("con.execute(\"SELECT * FROM read_json('bad.ndjson')\").fetchall()", "'line 3' in str(error)"),
        _FAILS.format("pl.read_ndjson('bad.ndjson')", "'line 3' in str(error) or 'row 3' in str(error)"),
        _CH + _FAILS.format("q(\"SELECT * FROM file('bad.ndjson', 'JSONEachRow', 'id Int64, k String')\")", "'row 3' in str(error)"),
        _FAILS.format("pj.read_json('bad.ndjson')", "'row 2' in str(error) or 'line 3' in str(error)"),
    ),
    _point(
        "Bad lines can be quarantined with their text and counted",
        "r = pv.ingest('bad.ndjson', 'out', on_error='quarantine')\n"
        "assert (r.rows, r.bad_records) == (3, 1)\n"
        "assert 'not json' in open(r.bad_records_path + '/' + os.listdir(r.bad_records_path)[0]).read()",
        "con.execute(\"CREATE TABLE t AS SELECT * FROM read_json('bad.ndjson', ignore_errors=true)\")\n"
        "assert con.execute('SELECT count(*) FROM t WHERE id IS NOT NULL').fetchone()[0] == 3\n"
        "assert 'not json' in str(con.execute('SELECT * FROM reject_errors').fetchall())",
        "assert len(pl.read_ndjson('bad.ndjson', ignore_errors=True).filter(pl.col('id').is_not_null())) == 3\n"
        "raise SystemExit('the text is gone')",
        _CH + "q(\"SELECT * FROM file('bad.ndjson', 'JSONEachRow', 'id Int64, k String') SETTINGS input_format_allow_errors_num = 1, "
        "input_format_record_errors_file_path = 'errors.csv'\")\n"
        "assert 'not json' in open('errors.csv').read()",
    ),
    _point(
        "A failed job leaves no files at its destination",
        "try: pv.ingest('bad.ndjson', 'out.parquet', one_file=True)\nexcept pv.VariantError: pass\n"
        "assert not [n for n in os.listdir() if 'out' in n]",
        "try: con.execute(\"COPY (SELECT * FROM read_json('late.ndjson')) TO 'out.parquet'\")\nexcept duckdb.Error: pass\n"
        "assert not [n for n in os.listdir() if 'out' in n]",
        "try: pl.scan_ndjson('late.ndjson').sink_parquet('out.parquet')\nexcept Exception: pass\n"
        "assert not [n for n in os.listdir() if 'out' in n]",
        _CH + "try: q(\"SELECT * FROM file('late.ndjson', 'JSONEachRow') INTO OUTFILE 'out.parquet'\")\n"
        "except Exception: pass\nassert not [n for n in os.listdir() if 'out' in n]",
        "try: store(pj.read_json('late.ndjson'))\nexcept Exception: pass\n"
        "assert not [n for n in os.listdir() if 'd' == n]",
    ),
    _point(
        "Consecutive documents that span lines are read",
        "assert pv.read_json('pretty.json')['a'].to_pylist() == [1, 'x']",
        "assert [str(r[0]) for r in con.execute(\"SELECT json->>'a' FROM read_json_objects('pretty.json')\").fetchall()] == ['1', 'x']",
        "assert pl.read_ndjson('pretty.json')['a'].to_list() == [1, 'x']",
        _CH + "assert q(\"SELECT json.a FROM file('pretty.json', 'JSONAsObject')\") == ['1', 'x']",
        "assert pj.read_json('pretty.json')['a'].to_pylist() == [1, 'x']",
    ),
    _point(
        "The elements of an array inside a document become rows",
        "assert pv.read_json('wrapped.json', root='$.items[*]')['a'].to_pylist() == [1, 2]",
        "assert con.execute(\"SELECT i.a FROM (SELECT unnest(items) AS i FROM 'wrapped.json')\").fetchall() == [(1,), (2,)]",
        "assert pl.read_json('wrapped.json').explode('items').unnest('items')['a'].to_list() == [1, 2]",
        _CH + "assert q(\"SELECT arrayJoin(json.items[]).a FROM file('wrapped.json', 'JSONAsObject')\") == ['1', '2']",
    ),
    _point(
        "JSON of differing types in a Parquet column becomes typed data; other columns are kept",
        "pv.ingest('payload.parquet', 'out', json_column='payload')\n"
        "assert pv.open('out').to_arrow()['id'].to_pylist() == [1, 2, 3]\n"
        "assert pv.open('out').scan({'a': '$.a:int'}, column='payload').to_arrow()['a'].to_pylist() == [1, None, None]",
        "con.execute(\"COPY (SELECT id, payload::JSON::VARIANT AS payload FROM 'payload.parquet') TO 'o.parquet'\")\n"
        "assert con.execute(\"SELECT id, TRY_CAST(payload.a AS INT) FROM 'o.parquet'\").fetchall() == [(1, 1), (2, None), (3, None)]",
        "pl.read_parquet('payload.parquet').with_columns(pl.col('payload').str.json_decode(pl.Struct({'a': pl.Int64})))",
        _CH + "assert q(\"SELECT payload.a.:Int64 FROM (SELECT id, CAST(payload, 'Nullable(JSON)') AS payload FROM "
        "file('payload.parquet'))\") == ['1', '\\\\N', '\\\\N']",
    ),
    _point(
        "A row of CSV becomes one value, and 007 keeps its zeros",
        "assert pv.read_json('rows.csv', input_format='csv').to_pylist() == [{'code': '007', 'n': 1.5}]",
        "assert [json.loads(r[0]) for r in con.execute(\"SELECT to_json(t) FROM 'rows.csv' t\").fetchall()] == [{'code': '007', 'n': 1.5}]",
        "assert pl.read_csv('rows.csv').to_struct().to_list() == [{'code': '007', 'n': 1.5}]",
        _CH + "assert [json.loads(t) for t in str(chdb.query(\"SELECT * FROM file('rows.csv', 'CSVWithNames')\", 'JSONEachRow'))"
        ".splitlines()] == [{'code': '007', 'n': 1.5}]",
    ),
    _point(
        "A path is queried without a schema; missing values and values of another type are null",
        "pv.ingest('mixed.ndjson', 'out')\n"
        "assert pv.open('out').scan({'n': '$.n:int'}).to_arrow()['n'].to_pylist() == [1, None, None]",
        "con.execute(\"COPY (SELECT json::VARIANT AS v FROM read_ndjson_objects('mixed.ndjson')) TO 'o.parquet'\")\n"
        "assert [r[0] for r in con.execute(\"SELECT TRY_CAST(v.n AS INT) FROM 'o.parquet'\").fetchall()] == [1, None, None]",
        "assert pl.read_ndjson('mixed.ndjson').select(pl.col('n').cast(pl.Int64, strict=False))['n'].to_list() == [1, None, None]",
        _CH + "assert q(\"SELECT json.n.:Int64 FROM file('mixed.ndjson', 'JSONAsObject')\") == ['1', '\\\\N', '\\\\N']",
    ),
    _point(
        "A query reports how many bytes it reads, and of how many",
        "pv.ingest('events.ndjson', 'out')\n"
        "report = pv.open('out').scan({'n': '$.user.n:int'}).explain()\n"
        "assert 0 < report.bytes_read < report.bytes_total / 4, report",
        None,
        None,
        "r = chdb.query(\"SELECT sum(n) FROM file('flat.parquet')\"); assert 0 < r.bytes_read() < os.path.getsize('flat.parquet') * 4",
    ),
    _point(
        "A Parquet file is written whose column has Parquet's VARIANT type",
        "pv.ingest('mixed.ndjson', 'o.parquet', one_file=True)\n"
        "import pyarrow.parquet as pq; assert 'Variant' in str(pq.ParquetFile('o.parquet').schema)",
        "con.execute(\"COPY (SELECT json::VARIANT AS v FROM read_ndjson_objects('mixed.ndjson')) TO 'o.parquet'\")\n"
        "import pyarrow.parquet as pq; assert 'Variant' in str(pq.ParquetFile('o.parquet').schema)",
    ),
    _point(
        "A shredded VARIANT column written by another engine is read",
        "assert pv.open('duckdb.parquet').read()['a'].to_pylist() == [1, 2]",
        "assert [int(r[0]) for r in con.execute(\"SELECT v.a FROM 'ours.parquet'\").fetchall()] == [1, 2]",
        "f = pl.read_parquet('ours.parquet'); assert [r['v']['a'] for r in f.to_dicts()] == [1, 2]",
        _CH + "assert q(\"SELECT v.a FROM file('ours.parquet')\") == ['1', '2']",
    ),
    _point(
        "A Delta table with a Variant column is written and read, without the JVM",
        "pv.ingest('mixed.ndjson', 'table', format='delta'); assert len(pv.open('table').read()) == 3",
        "SKIP",
    ),
    _point(
        "An Iceberg table is written and read",
        "pv.write('table', {'a': [1]}, format='iceberg'); assert pv.open('table').to_arrow().to_pylist() == [{'a': 1}]",
        "SKIP",
        "from pyiceberg.catalog.sql import SqlCatalog\n"
        "catalog = SqlCatalog('c', uri='sqlite:///:memory:', warehouse='file://' + os.getcwd())\n"
        "catalog.create_namespace('d'); f = pl.DataFrame({'a': [1]}); t = catalog.create_table('d.t', f.to_arrow().schema)\n"
        "f.write_iceberg(t, 'append'); assert pl.scan_iceberg(t).collect().to_dicts() == [{'a': 1}]",
        None,
        "import pyarrow as pa; assert store(pa.table({'a': [1]})).to_pylist() == [{'a': 1}]",
    ),
    _point(
        "SQL over the file runs in this process",
        "pv.ingest('mixed.ndjson', 'out'); assert pv.sql('SELECT count(*) AS c FROM t WHERE v:n::int = 1', t='out').to_arrow()['c'].to_pylist() == [1]",
        "assert con.execute(\"SELECT count(*) FROM read_ndjson_objects('mixed.ndjson') WHERE TRY_CAST(json->>'n' AS INT) = 1\").fetchone() == (1,)",
        "assert pl.sql(\"SELECT count(*) AS c FROM read_ndjson('mixed.ndjson') WHERE n = '1'\").collect()['c'].to_list() == [1]",
        _CH + "assert q(\"SELECT count() FROM file('mixed.ndjson', 'JSONAsObject') WHERE json.n.:Int64 = 1\") == ['1']",
    ),
    _point(
        "Standard input is read",
        "from parquet_variant.cli.app import main; sys.stdin = open('mixed.ndjson'); assert main(['query', '-', '-s', 'n=$.n:int']) == 0",
        "os.dup2(os.open('mixed.ndjson', os.O_RDONLY), 0)\nassert len(con.execute(\"SELECT * FROM read_ndjson_objects('/dev/stdin')\").fetchall()) == 3",
        "sys.stdin = open('numbers.ndjson'); assert len(pl.read_ndjson(sys.stdin.buffer)) == 2",
        _CH + "os.dup2(os.open('mixed.ndjson', os.O_RDONLY), 0)\nassert len(q(\"SELECT json FROM file('/dev/stdin', 'JSONAsObject')\")) == 3",
    ),
    _point(
        "Strings become dates only if the same string can be written again",
        "v = pv.read_json('dates.ndjson', detect_timestamps=True)\n"
        "assert [x['d'].type for x in v] == ['date', 'string']; same(pv.to_json(v).to_pylist(), 'dates.ndjson')",
        "con.execute(\"CREATE TABLE t AS SELECT * FROM read_json('dates.ndjson')\")\n"
        "assert 'DATE' in str(con.execute('DESCRIBE t').fetchall())\n"
        "same([r[0] for r in con.execute('SELECT to_json(t) FROM t').fetchall()], 'dates.ndjson')",
        "f = pl.read_ndjson('dates.ndjson'); assert f['d'].dtype == pl.Date",
        _CH + "assert q(\"SELECT dynamicType(json.d) FROM file('dates.ndjson', 'JSONAsObject')\")[0] == 'Date'\n"
        "same(q(\"SELECT json::String FROM file('dates.ndjson', 'JSONAsObject')\"), 'dates.ndjson')",
        "t = store(pj.read_json('dates.ndjson')); assert 'date' in str(t.schema)",
    ),
    _point(
        "Size of 20,000 events as Parquet (zstd), in bytes",
        "pv.ingest('events.ndjson', 'o.parquet', one_file=True); print(os.path.getsize('o.parquet'))",
        "con.execute(\"COPY (FROM read_json('events.ndjson')) TO 'o.parquet' (COMPRESSION zstd)\"); print(os.path.getsize('o.parquet'))",
        "pl.read_ndjson('events.ndjson', infer_schema_length=None).write_parquet('o.parquet', compression='zstd'); print(os.path.getsize('o.parquet'))",
        _CH + "q(\"SELECT json FROM file('events.ndjson', 'JSONAsObject') INTO OUTFILE 'o.native.zst' COMPRESSION 'zstd' FORMAT Native\")\n"
        "print(os.path.getsize('o.native.zst'))",
        None,
        is_figure=True,
    ),
    _point(
        "CPU time of the sum of a nested number in that file, in ms (minimum of five)",
        "pv.ingest('events.ndjson', 'o.parquet', one_file=True)\nimport pyarrow.compute as pc\n"
        "def ask(): return pc.sum(pv.open('o.parquet').scan({'n': '$.user.n:bigint'}).to_arrow()['n']).as_py()\n" + "TIMED",
        "con.execute(\"COPY (SELECT json::VARIANT AS v FROM read_ndjson_objects('events.ndjson')) TO 'o.parquet'\")\n"
        "def ask(): return int(con.execute(\"SELECT sum(v.user.n::BIGINT) FROM 'o.parquet'\").fetchone()[0])\n" + "TIMED",
        "pl.read_ndjson('events.ndjson', infer_schema_length=None).write_parquet('o.parquet')\n"
        "def ask(): return pl.scan_parquet('o.parquet').select(pl.col('user').struct.field('n').sum()).collect().item()\n" + "TIMED",
        _CH + "q(\"SELECT json FROM file('events.ndjson', 'JSONAsObject') INTO OUTFILE 'o.native' FORMAT Native\")\n"
        "def ask(): return int(q(\"SELECT sum(json.user.n.:Int64) FROM file('o.native', 'Native')\")[0])\n" + "TIMED",
        None,
        is_figure=True,
    ),
    _point(
        "Two JSON files are compared by path: new fields, and fields with other types, with their number of values",
        _SIDES + "found = pv.open('before.ndjson').diff('after.ndjson').findings\n"
        "assert {(f.path.shorthand, f.change, f.count) for f in found} == {('$.id', 'type', 50), ('$.new', 'appeared', 50)}",
        _SIDES + "ask = \"SELECT fullkey, type, count(*) FROM read_ndjson_objects('{}.ndjson'), json_tree(json) GROUP BY ALL\"\n"
        "old, new = (set(con.execute(ask.format(side)).fetchall()) for side in ('before', 'after'))\n"
        "assert {(path, count) for path, _, count in new - old} == {('$.id', 50), ('$.new', 50)}",
        None,
        _SIDES + _CH + "ask = \"SELECT p, t, count() FROM file('{}.ndjson', 'JSONAsObject') ARRAY JOIN \"\n"
        "ask += \"mapKeys(JSONAllPathsWithTypes(json)) AS p, mapValues(JSONAllPathsWithTypes(json)) AS t GROUP BY p, t\"\n"
        "old, new = (set(q(ask.format(side))) for side in ('before', 'after'))\n"
        "assert len(new - old) == 2, new - old",
        None,
    ),
    _point(
        "Rules for nested fields are inferred from a file, and rows of another file that break them are counted by rule",
        "contract = pv.open('events.ndjson').contract('strict'); assert pv.open('events.ndjson').check(contract)\n"
        "open('other.ndjson', 'w').write('{\"user\": {\"n\": \"x\"}}\\n')\n"
        "assert ('$.user.n', 'type', 1) in [(v.path.shorthand, v.rule, v.count) for v in pv.open('other.ndjson').check(contract).violations]",
        None,
        None,
        None,
        None,
    ),
)  # fmt: skip
_TIMED = """
def cost():
    start = time.process_time(); assert ask() == 199990000; return time.process_time() - start
print(round(min(cost() for _ in range(5)) * 1000, 1))
"""


def make_files(folder: Path) -> None:
    """The files that the programs find."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    import parquet_variant as pv

    random.seed(1)
    good = '{"id": %d, "k": "x"}\n'
    texts = {
        "mixed.ndjson": '{"id": 1, "n": 1}\n{"id": 2, "n": "x", "t": [1, "a"]}\n{"id": 3, "t": {"b": null}}\n',
        "numbers.ndjson": '{"i": 9007199254740993, "d": 1.10}\n{"i": 18446744073709551615, "d": 0.1000000000000000055}\n',
        "bad.ndjson": good % 1 + good % 2 + "not json\n" + good % 4,
        "late.ndjson": "".join(good % n for n in range(200_000)) + "not json\n",
        "pretty.json": '{\n  "a": 1\n}\n{\n  "a": "x"\n}\n',
        "wrapped.json": '{"count": 2, "items": [{"a": 1}, {"a": 2}]}',
        "rows.csv": "code,n\n007,1.5\n",
        "dates.ndjson": '{"d": "2026-01-31"}\n{"d": "2026-1-31"}\n',
        "events.ndjson": "".join(
            json.dumps(
                {
                    "id": n, "kind": random.choice(["view", "click", "buy"]), "user": {"n": n, "name": f"user {n % 500}"},
                    "tags": random.sample(["a", "b", "c", "d"], 2), "price": round(random.random() * 100, 2),
                }
            )
            + "\n"
            for n in range(20_000)
        ),
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    payload = ['{"a": 1}', '{"a": "x"}', None]
    pq.write_table(pa.table({"id": [1, 2, 3], "payload": payload}), folder / "payload.parquet")
    pq.write_table(pa.table({"n": range(20_000)}), folder / "flat.parquet")
    two = pv.parse_json(['{"a": 1}', '{"a": 2}'])
    pv.write(folder / "ours.parquet", {"v": two}, schema="a bigint")
    duckdb.sql("SELECT '{\"a\": 1}'::JSON::VARIANT AS v UNION ALL SELECT '{\"a\": 2}'::JSON::VARIANT").write_parquet(
        str(folder / "duckdb.parquet")
    )


def compare(points: tuple[Point, ...] = POINTS) -> list[dict[str, str | None]]:
    """Run every program: what it printed, ``"yes"`` if nothing; None if it failed or does not exist."""
    found = []
    with tempfile.TemporaryDirectory() as files:
        make_files(Path(files))
        for point in points:
            answers: dict[str, str | None] = {}
            for tool, setup in TOOLS.items():
                program = point.programs.get(tool)
                answers[tool] = None if program is None else _run(files, setup, program.replace("TIMED", _TIMED))
            found.append(answers)
    return found


def _run(files: str, setup: str, program: str) -> str | None:
    if program == NOT_TRIED:
        return NOT_TRIED
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(files, folder, dirs_exist_ok=True)
        try:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", f"{_PRELUDE}\n{setup}\n{program}"],
                cwd=folder, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
    if done.returncode:
        print((done.stderr.strip().splitlines() or ["?"])[-1][:150], file=sys.stderr)
        return None
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else "yes"


def passed(point: Point, answers: dict[str, str | None]) -> dict[str, bool]:
    """Which tools do it; of figures, those within a tenth of the smallest."""
    if not point.is_figure:
        return {tool: answer not in (None, NOT_TRIED) for tool, answer in answers.items()}
    figures = {tool: float(answer) for tool, answer in answers.items() if answer is not None}
    best = min(figures.values())
    return {tool: tool in figures and figures[tool] <= 1.1 * best for tool in answers}


def page(found: list[dict[str, str | None]]) -> str:
    """The page of the documentation."""
    verdicts = [passed(point, answers) for point, answers in zip(POINTS, found, strict=True)]
    ours, *peers = TOOLS
    equal = sum(each[ours] or not any(each[peer] for peer in peers) for each in verdicts)
    alone = sum(each[ours] and not any(each[peer] for peer in peers) for each in verdicts)
    lines = [
        "# Comparison with DuckDB, polars, ClickHouse and PyIceberg",
        "",
        "This page compares 22 tasks of people with JSON files. Each task is a short program per tool;",
        "`python -m benchmarks.compare` runs all programs and writes this page. A tool passes if its program ends without an",
        "error. \"no\" means that no way to do the task was found in the tool's documentation. Extensions that must be",
        "downloaded (DuckDB's for Delta and Iceberg) were not tried. A figure passes if it is within a tenth of the smallest.",
        "The programs were written by the authors of parquet-variant; better programs for the other tools are welcome. The",
        "tasks concern JSON in files; other features of the tools are not compared.",
        "",
        f"parquet-variant passes or no tool does: {equal} of {len(POINTS)}; only parquet-variant passes: {alone}. Versions: "
        + ", ".join(f"{tool} {version(PACKAGES[tool])}" for tool in TOOLS) + ".",
        "",
        "| | " + " | ".join(TOOLS) + " |",
        "|---|" + "---|" * len(TOOLS),
    ]  # fmt: skip
    for number, (point, answers, verdict) in enumerate(zip(POINTS, found, verdicts, strict=True), 1):
        cells = []
        for tool in TOOLS:
            answer = answers[tool]
            if answer == NOT_TRIED:
                cells.append("not tried")
                continue
            shown = (answer or "no") if point.is_figure else ("yes" if verdict[tool] else "no")
            cells.append(f"**{shown}**" if verdict[tool] else shown)
        lines.append(f"| {number}. {point.question} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    from benchmarks.jobs import run_jobs, section

    (ROOT / "docs/compare.md").write_text(f"{page(compare())}\n{section(run_jobs())}", "utf-8")
