"""Run the jobs of an analyst's first hour with JSON in three tools; `benchmarks.compare` writes them to docs/compare.md.

Each job has one program per tool, in which each line is one call. A program prints its answer; the answers of a job must
be equal, or the program has not done the job. ``python -m benchmarks.jobs`` prints the table.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["JOBS", "SETUPS", "Job", "run_jobs", "section"]

SETUPS = {
    "parquet-variant": "import parquet_variant as pv",
    "DuckDB": "import duckdb",
    "polars": "import polars as pl",
}
# An extension that must be downloaded.
NOT_TRIED = "not tried"
# The table that SQL of DuckDB reads: one Variant per line of the file.
_DUCK = "duckdb.sql(\"CREATE TABLE t AS SELECT json::VARIANT AS v FROM read_ndjson_objects('events.ndjson')\")\n"


@dataclass(frozen=True)
class Job:
    """A question, the answer, and a program for each tool that may answer it."""

    question: str
    answer: str
    programs: tuple[str, str, str]


JOBS = (
    Job(
        "Count by a nested key, without a schema",
        "[('buy', 10), ('click', 10), ('view', 10)]",
        (
            "r = pv.sql(\"SELECT v:kind::string, count(*) AS n FROM 'events.ndjson' GROUP BY kind ORDER BY kind\")\n"
            "print([tuple(row.values()) for row in r.to_pylist()])",
            "r = duckdb.sql(\"SELECT kind, count(*) AS n FROM 'events.ndjson' GROUP BY kind ORDER BY kind\")\n"
            "print(r.fetchall())",
            "r = pl.read_ndjson('events.ndjson').group_by('kind').len().sort('kind')\nprint(r.rows())",
        ),
    ),
    Job(
        "The distinct values of a key whose type differs between rows",
        "30",
        (
            "print(pv.sql(\"SELECT count(DISTINCT v:mixed) AS n FROM 'events.ndjson'\").to_pylist()[0]['n'])",
            "print(duckdb.sql(\"SELECT count(DISTINCT mixed) FROM 'events.ndjson'\").fetchall()[0][0])",
            "print(pl.read_ndjson('events.ndjson')['mixed'].n_unique())",
        ),
    ),
    Job(
        "The same key of two files is joined by value, although one file has decimals",
        "15",
        (
            "q = \"SELECT count(*) AS n FROM 'events.ndjson' a JOIN 'other.ndjson' b ON a.v:mixed = b.v:key\"\n"
            "print(pv.sql(q).to_pylist()[0]['n'])",
            "q = \"SELECT count(*) FROM 'events.ndjson' a JOIN 'other.ndjson' b ON a.mixed = b.key\"\n"
            "print(duckdb.sql(q).fetchall()[0][0])",
            "a, b = pl.read_ndjson('events.ndjson'), pl.read_ndjson('other.ndjson')\n"
            "print(len(a.join(b, left_on='mixed', right_on='key')))",
        ),
    ),
    Job(
        "A misspelled path of a document in one column is reported with the right name",
        "user",
        (
            "r = pv.sql(\"SELECT v:usr.id FROM 'events.ndjson'\")\nprint(r.warnings[0].split('v:')[-1].split('.')[0])",
            _DUCK + "r = duckdb.sql('SELECT v.usr.id FROM t').fetchall()\nprint(r[0][0])",
            "",
        ),
    ),
    Job(
        "The elements of arrays become rows",
        "435",
        (
            "q = \"SELECT sum(e.value:n::int) AS s FROM 'events.ndjson' t, LATERAL variant_explode(v:items) e\"\n"
            "print(pv.sql(q).to_pylist()[0]['s'])",
            "q = \"SELECT sum(e.n) FROM (SELECT unnest(items) AS e FROM 'events.ndjson')\"\n"
            "print(duckdb.sql(q).fetchall()[0][0])",
            "r = pl.read_ndjson('events.ndjson').explode('items')\nprint(r['items'].struct.field('n').sum())",
        ),
    ),
    Job(
        "Timestamps in strings are typed in the file, and a filter on them works",
        "5",
        (
            "pv.ingest('events.ndjson', 'out', types={'$.when': 'timestamp!'})\n"
            "q = \"SELECT count(*) AS n FROM 'out/' WHERE v:when > TIMESTAMP '2026-01-25 12:00:00+00:00'\"\n"
            "print(pv.sql(q).to_pylist()[0]['n'])",
            "duckdb.sql(\"COPY (SELECT * FROM 'events.ndjson') TO 'o.parquet'\")\n"
            "q = \"SELECT count(*) FROM 'o.parquet' WHERE \\\"when\\\" > TIMESTAMP '2026-01-25 12:00:00'\"\n"
            "print(duckdb.sql(q).fetchall()[0][0])",
            "e = pl.read_ndjson('events.ndjson').with_columns(pl.col('when').str.to_datetime('%Y-%m-%dT%H:%M:%SZ'))\n"
            "e.write_parquet('o.parquet')\n"
            "print(len(pl.read_parquet('o.parquet').filter(pl.col('when').dt.day() > 25)))",
        ),
    ),
    Job(
        "JSON in strings inside JSON is parsed and queried",
        "3",
        (
            "pv.ingest('kafka.ndjson', 'out', json_column='$.payload')\n"
            "print(pv.sql(\"SELECT sum(v:payload.a::int) AS s FROM 'out/'\").to_pylist()[0]['s'])",
            "print(duckdb.sql(\"SELECT sum((payload::JSON->>'a')::INT) FROM 'kafka.ndjson'\").fetchall()[0][0])",
            "s = pl.read_ndjson('kafka.ndjson')['payload'].str.json_path_match('$.a')\nprint(s.cast(pl.Int64).sum())",
        ),
    ),
    Job(
        "CSV with a JSON column becomes typed columns and a document column in Parquet",
        "(3.5, 3)",
        (
            "pv.ingest('orders.csv', 'out', json_column='payload', infer_types=True)\n"
            "r = pv.sql(\"SELECT sum(price) AS p, sum(payload:a::int) AS a FROM 'out/'\").to_pylist()[0]\n"
            "print((r['p'], int(r['a'])))",
            "duckdb.sql(\"COPY (SELECT * REPLACE (payload::JSON::VARIANT AS payload) FROM 'orders.csv') TO 'o.parquet'\")\n"
            "r = duckdb.sql(\"SELECT sum(price), sum(payload.a::INT) FROM 'o.parquet'\").fetchall()[0]\n"
            "print((r[0], int(r[1])))",
            "c = pl.read_csv('orders.csv')\n"
            "p = c.with_columns(pl.col('payload').str.json_decode(pl.Struct({'a': pl.Int64})))\n"
            "p.write_parquet('o.parquet')\n"
            "d = pl.read_parquet('o.parquet')\n"
            "print((d['price'].sum(), d['payload'].struct.field('a').sum()))",
        ),
    ),
    Job(
        "A result is written to CSV",
        "4",
        (
            "pv.sql(\"COPY (SELECT v:kind, count(*) AS n FROM 'events.ndjson' GROUP BY v:kind) TO 'o.csv'\")\n"
            "print(len(open('o.csv').readlines()))",
            "duckdb.sql(\"COPY (SELECT kind, count(*) AS n FROM 'events.ndjson' GROUP BY kind) TO 'o.csv'\")\n"
            "print(len(open('o.csv').readlines()))",
            "pl.read_ndjson('events.ndjson').group_by('kind').len().write_csv('o.csv')\n"
            "print(len(open('o.csv').readlines()))",
        ),
    ),
    Job(
        "The rows of an API's answer are ingested from the array under one key",
        "20",
        (
            "r = pv.ingest('api.json', 'out', root='$.items[*]')\nprint(r.rows)",
            "duckdb.sql(\"COPY (SELECT unnest(items) AS v FROM 'api.json') TO 'o.parquet'\")\n"
            "print(duckdb.sql(\"SELECT count(*) FROM 'o.parquet'\").fetchall()[0][0])",
            "r = pl.read_json('api.json').explode('items')\nr.write_parquet('o.parquet')\nprint(len(r))",
        ),
    ),
    Job(
        "New JSON is merged into a Delta table by a nested key",
        "(31, 1)",
        (
            "pv.ingest('events.ndjson', 'table', format='delta')\n"
            "new = pv.read_json('new.ndjson')\n"
            "m = pv.open('table').merge({'v': new}, 'target.v:user.id::int = source.v:user.id::int')\n"
            "r = m.when_matched_update_all().when_not_matched_insert_all().execute()\n"
            "print((30 + r.rows_inserted, r.rows_updated))",
            NOT_TRIED,
            "",
        ),
    ),
    Job(
        "The fields of a nested object as columns",
        "[0, 1, 2]",
        (
            "r = pv.sql(\"SELECT v:user.* FROM 'events.ndjson' ORDER BY id LIMIT 3\").to_arrow()\n"
            "print((r['id'].to_pylist()))",
            'r = duckdb.sql("SELECT \\"user\\".* FROM \'events.ndjson\' LIMIT 3").fetchall()\n'
            "print(([row[0] for row in r]))",
            "r = pl.read_ndjson('events.ndjson').select('user').unnest('user').sort('id').head(3)\n"
            "print((r['id'].to_list()))",
        ),
    ),
    Job(
        "The keys of a document, and the number of elements of an array",
        "(['items', 'kind', 'mixed', 'user', 'when'], 1)",
        (
            "q = \"SELECT variant_keys(v) AS k, array_size(v:items) AS n FROM 'events.ndjson' LIMIT 1\"\n"
            "r = pv.sql(q).to_pylist()[0]\n"
            "print((r['k'], r['n']))",
            _DUCK + "q = \"SELECT variant_keys(v), variant_array_length(v, 'items') FROM t LIMIT 1\"\n"
            "r = duckdb.sql(q).fetchall()[0]\n"
            "print((sorted(r[0]), r[1]))",
            "r = pl.read_ndjson('events.ndjson', n_rows=1)\nprint((sorted(r.columns), len(r['items'][0])))",
        ),
    ),
    Job(
        "The JSON files of a folder that also holds other files",
        "2",
        (
            "print(pv.ingest('folder', 'out', exclude='*.md').rows)",
            "print(duckdb.sql(\"SELECT count(*) FROM 'folder/*.json'\").fetchall()[0][0])",
            "print(len(pl.read_ndjson('folder/*.json')))",
        ),
    ),
    Job(
        "Rows of a Delta table are erased with its older versions and statistics, and a report says what was removed",
        "(1, 1)",
        (
            "pv.ingest('events.ndjson', 'table', format='delta')\n"
            "r = pv.open('table').erase('v:user.id::int = 3', force=True)\n"
            "print((r.rows_erased, r.versions_removed))",
            NOT_TRIED,
            "",
        ),
    ),
    Job(
        "A page shows paths, types, examples and the cost of typed columns",
        "True",
        (
            "r = pv.open('events.ndjson').explore().save('page.html')\nprint((r.exists()))",
            "",
            "",
        ),
    ),
)


def make_files(folder: Path) -> None:
    """Write the files that the programs read."""
    kinds = ("click", "view", "buy")
    rows = [
        {"kind": kinds[n % 3], "mixed": n if n % 2 else f"s{n}", "user": {"id": n}, "items": [{"n": n}],
         "when": f"2026-01-{n + 1:02d}T00:00:00Z"}
        for n in range(30)
    ]  # fmt: skip
    files = {
        "events.ndjson": rows,
        "other.ndjson": [{"key": n + 0.0} for n in range(30)],
        "kafka.ndjson": [{"payload": json.dumps({"a": n})} for n in range(3)],
        "new.ndjson": [{"user": {"id": 3}}, {"user": {"id": 99}}],
        "api.json": [{"count": 20, "items": [{"id": n} for n in range(20)]}],
    }
    for name, values in files.items():
        (folder / name).write_text("".join(json.dumps(value) + "\n" for value in values))
    (folder / "folder").mkdir()
    for name, text in (("a.json", '{"a": 1}\n'), ("b.json", '{"a": 2}\n'), ("README.md", "# Data\n")):
        (folder / "folder" / name).write_text(text)
    (folder / "orders.csv").write_text('id,price,payload\n1,1.5,"{""a"": 1}"\n2,2.0,"{""a"": 2}"\n')


def run_jobs() -> list[list[str]]:
    """Run every program: the number of calls if it gave the answer, otherwise what happened."""
    return [
        [_run(job, setup, program) for setup, program in zip(SETUPS.values(), job.programs, strict=True)]
        for job in JOBS
    ]


def _run(job: Job, setup: str, program: str) -> str:
    if not program or program == NOT_TRIED:
        return program or "no way found"
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", f"{setup}\n{program}"],
            cwd=folder, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    if done.returncode:
        error = done.stderr.strip().splitlines() or ["?"]
        lines = [line for line in error if "Error" in line or "Exception" in line] or error
        return f"fails: {lines[-1][:90].replace('|', '/')}"
    answer = done.stdout.strip()
    calls = sum(not line.startswith(("q = ", "print(len(open", "print((")) for line in program.splitlines())
    return f"{calls} {'call' if calls == 1 else 'calls'}" if answer == job.answer else f"other answer: {answer[:60]}"


def section(found: list[list[str]]) -> str:
    """The part of the page about the jobs."""
    lines = [
        "## Jobs of a first hour",
        "",
        "Each cell is the number of calls that the job takes, or what happened instead; a query that is written to a variable",
        "first is not counted. The programs are in `benchmarks/jobs.py`, and `tests/journeys` types the same jobs at a shell.",
        "",
        "| | " + " | ".join(SETUPS) + " |",
        "|---|" + "---|" * len(SETUPS),
    ]
    lines += [f"| {job.question} | " + " | ".join(cells) + " |" for job, cells in zip(JOBS, found, strict=True)]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    print(section(run_jobs()))
