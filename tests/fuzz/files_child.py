"""Damaged files and logs through everything that reads them; `test_files` starts it as its own process.

Prints the number of each case before it is tried, so that one that ends the process is known.
"""

from __future__ import annotations

import faulthandler
import json
import random
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import parquet_variant as pv
from fuzz.parquet_structs import changed_footer
from fuzz.samples import damaged_bytes, damaged_text, documents, random_ddl
from fuzz.seeds import random_source, tries


def _ended(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except pv.VariantError as error:
        assert "\n" not in str(error)
        return error


def _table(source: random.Random) -> pa.Table | dict[str, Any]:
    rows = source.randrange(1, 40)
    return {"id": pa.array(range(rows)), "v": pv.parse_json(documents(source, rows))}


READS: dict[str, Callable[[Path], Any]] = {
    "read": lambda path: pv.open(path).read("v").to_pylist(),
    "typed": lambda path: pv.open(path).read("v", on_conflict="typed").to_pylist(),
    "read_table": lambda path: pv.open(path).to_arrow().num_rows,
    "extract": lambda path: (
        pv.open(path)
        .scan({"id": "id", "a": "$.a:string", "b": "$.b[0]:double"}, "a >= 'x' or b > 0", column="v")
        .to_arrow()
        .num_rows
    ),
    "inspect": (lambda path: pv.open(path).inspect()),
    "validate": lambda path: str(pv.open(path).validate()),
    "profile": lambda path: pv.profile(path, column="v"),
    "schema": lambda path: pv.ShreddingSchema.from_parquet(path, "v"),
}


def _write(source: random.Random, path: Path) -> None:
    schema = source.choice([None, "infer", random_ddl(source)])
    options: dict[str, Any] = {"layout": source.choice(["final", "draft-paths", "draft-object"])} if schema else {}
    pv.write(path, _table(source), schema=schema, mode="overwrite", row_group_bytes=2000, **options)


def parquet_files(part: str, folder: Path) -> None:
    """Parquet files with a damaged ``footer``, one whose ``structs`` say other things, or damaged ``pages``."""
    path = folder / "v.parquet"
    for number in tries(part, {"footer": 24, "structs": 16, "pages": 10}[part]):
        print(number, flush=True)
        with random_source(part, number) as source:
            _write(source, path)
            data = path.read_bytes()
            split = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
            for _ in range(4):
                if part == "pages":
                    changed = b"PAR1" + damaged_bytes(source, data[4:split])
                    changed = changed[:split].ljust(split, b"\0") + data[split:]
                else:
                    change = damaged_bytes if part == "footer" else changed_footer
                    footer = change(source, data[split:-8])
                    changed = data[:split] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
                path.write_bytes(changed)
                for read in READS.values():
                    _ended(lambda read=read: read(path))


def noise(folder: Path) -> None:
    """Files that have nothing but Parquet's marks."""
    path = folder / "v.parquet"
    for number in tries("noise", 80, share=0.25):
        print(number, flush=True)
        with random_source("noise", number) as source:
            size = source.randrange(64)
            length = source.choice([0, size, size - 1, 2**31, 2**32 - 1, source.randrange(100)]) % 2**32
            path.write_bytes(b"PAR1" + source.randbytes(size) + length.to_bytes(4, "little") + b"PAR1")
            for read in READS.values():
                assert isinstance(_ended(lambda read=read: read(path)), pv.VariantError | str)


DELTA_READS: list[Callable[[Path], Any]] = [
    (lambda path: pv.open(path).to_arrow()),
    lambda table: pv.open(table).scan({"id": "id", "a": "$.a:string"}, "a >= 'x' or id > 3", column="v").to_arrow(),
    lambda table: pv.open(table).snapshot.num_files,
    (lambda path: pv.open(path).history()),
    lambda table: pv.open(table).vacuum(dry_run=True),
]
_JSON_WORDS = ["null", "NaN", "Infinity", "-1", '""', "[]", "{}", "1e400", "9" * 40, '"../x"', '"/etc/passwd"', "true"]


def _damaged_line(source: random.Random, line: str) -> str:
    """One action of a log with a value replaced, taken out, or its text damaged."""
    if source.random() < 0.3:
        return damaged_text(source, line, _JSON_WORDS)
    action = json.loads(line)
    name = next(iter(action))
    body = action[name]
    key = source.choice(list(body)) if isinstance(body, dict) and body else None
    if key == "stats" and isinstance(body[key], str) and source.random() < 0.8:
        body[key] = damaged_text(source, body[key], _JSON_WORDS)
    elif key is not None and source.random() < 0.2:
        del body[key]
    elif key is not None:
        text = body[key] if isinstance(body[key], str) else json.dumps(body[key])
        body[key] = source.choice([None, -1, 10**30, [], {}, "", True, damaged_text(source, text, _JSON_WORDS)])
    return json.dumps(action)


def delta_logs(folder: Path) -> None:
    """Tables with damaged lines and statistics."""
    for number in tries("delta", 6):
        print(number, flush=True)
        with random_source("delta", number) as source:
            table = folder / f"t{number}"
            for _ in range(2):
                pv.write(table, _table(source), format="delta", mode="append")
            if source.random() < 0.3:
                pv.open(table).checkpoint()
            logs = sorted((table / "_delta_log").glob("*.json"))
            before = {path: path.read_text() for path in logs}
            for _ in range(4):
                for path, text in before.items():
                    lines = text.splitlines()
                    for _ in range(source.randrange(2)):
                        at = source.randrange(len(lines))
                        lines[at] = _damaged_line(source, lines[at])
                    path.write_text("\n".join(lines))
                for read in DELTA_READS:
                    _ended(lambda read=read: read(table))  # noqa: B023
            shutil.rmtree(table)


if __name__ == "__main__":
    faulthandler.enable(all_threads=False)
    suite, where = sys.argv[1], Path(sys.argv[2])
    {"noise": noise, "delta": delta_logs}.get(suite, partial(parquet_files, suite))(where)
