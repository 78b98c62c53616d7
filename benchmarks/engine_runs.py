"""Repeat the runs behind `engine_rules.toml`: `python -m benchmarks.engine_runs [--python PYTHON] [--engine ENGINE]`.

Writes a file or table for each trait that matters to an engine, or random files (`--random 20 --seed 1`), tries the
installed engines by `Table.compat`, and compares what they did with the rules. The exit code is 1 if a rule is wrong.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import re
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import parquet_variant as pv
from parquet_variant.files.parquet.validation.engine_rules import READABLE
from parquet_variant.quality.compatibility import engine_programs
from parquet_variant.quality.compatibility.run import Trial, copy_of

# The verdict of `Table.compat` that confirms a verdict of the rules, if its name differs.
CONFIRMS = {"reads": "equal", "null": "differs", "refuses": "refused"}


def write_fixtures(folder: Path) -> dict[str, Path]:
    """Write one file or table per trait, and return their paths."""
    mixed = pv.parse_json(['{"a": 1, "s": "x"}', '{"a": "x"}', None])
    objects = pv.parse_json(['{"o": {"a": 1}, "xs": [1]}', "{}"])
    nanos = pv.cast_to_variant(pa.array([1], pa.timestamp("ns")).cast(pa.timestamp("ns", "UTC")))
    names = pv.from_python([{f"{chr(0xFF5E if number % 2 else 0x1F600)}{number}": number for number in range(40)}])
    twins = pv.parse_json(['{"xs": [{"n": 1, "N": 2}]}', None])
    files: dict[str, tuple[Any, dict[str, Any]]] = {
        "unshredded": (mixed, {"schema": "variant"}),
        "shredded": (mixed, {"schema": "a bigint, s string"}),
        "nested": (objects, {"schema": "o struct<a bigint>, xs array<bigint>"}),
        "TIME": (pv.from_python([datetime.time(1, 2, 3)]), {"schema": "time"}),
        "NANOS": (nanos, {"schema": "timestamp_nanos"}),
        "UUID": (pv.from_python([uuid.UUID(int=5)]), {"schema": "uuid"}),
        "case_twins": (twins, {"schema": "xs array<struct<n bigint, N bigint>>"}),
        "utf16": (names, {"schema": "variant"}),
        "draft": (mixed, {"schema": "a bigint, s string", "layout": "draft-object"}),
    }
    paths = {}
    for name, (values, options) in files.items():
        paths[name] = folder / f"{name}.parquet"
        pv.write(paths[name], {"v": values}, **options)
        if name in ("unshredded", "shredded", "nested"):
            plain = paths[f"{name}, unannotated"] = folder / f"{name}-plain.parquet"
            pv.write(plain, {"v": values}, annotation=False, **options)
    # This library always writes ``value``, which may be missing.
    element = pa.struct([pa.field("typed_value", pa.int64())])
    fields = {"metadata": pa.binary(), "typed_value": pa.struct([pa.field("a", element, nullable=False)])}
    kind = pa.struct([pa.field(name, field, nullable=name != "metadata") for name, field in fields.items()])
    metadata = pv.parse_json(['{"a": 1}']).storage.field("metadata")[0].as_py()
    row = {"metadata": metadata, "typed_value": {"a": {"typed_value": 1}}}
    paths["no_value"] = folder / "no_value.parquet"
    pq.write_table(pa.table({"v": pa.array([row, None], kind)}), paths["no_value"])
    pv.open(paths["no_value"]).annotate(["v"])
    tables: dict[str, dict[str, Any]] = {
        "delta, unshredded": {
            "format": "delta",
            "schema": "variant",
            "properties": {"delta.enableVariantShredding": "false"},
        },
        "delta, shredded": {"format": "delta", "schema": "a bigint, s string"},
        "delta, preview": {"format": "delta", "schema": "a bigint, s string", "preview": True},
        "iceberg, unshredded": {"format": "iceberg", "schema": "variant"},
        "iceberg, shredded": {"format": "iceberg", "schema": "a bigint, s string"},
    }
    for name, options in tables.items():
        paths[name] = folder / name.replace(", ", "-")
        pv.write(paths[name], {"v": mixed}, **options)
    return paths


_RANDOM_TYPES = (
    "bigint", "string", "double", "boolean", "decimal(9,2)", "decimal(38,4)", "date", "timestamp", "timestamp_ntz",
    "time", "timestamp_nanos", "uuid", "binary", "int", "smallint", "float",
)  # fmt: skip


def write_random_fixtures(folder: Path, count: int, seed: int) -> dict[str, Path]:
    """Write files of random values, shredding schemas, layouts and annotations, and return their paths."""
    random = Random(seed)

    def scalar() -> Any:
        moment = datetime.datetime(2024, 2, random.randint(1, 28), 1, 2, 3, random.randint(0, 999_999))
        return random.choice(
            (
                random.randint(-9, 9), random.getrandbits(60), random.random(), "é" * random.randint(0, 9), None, True,
                decimal.Decimal(random.randint(-99999, 99999)).scaleb(-2), moment.date(), moment, moment.time(),
                moment.replace(tzinfo=datetime.UTC), uuid.UUID(int=random.getrandbits(128)), random.randbytes(3),
            )
        )  # fmt: skip

    def value(depth: int) -> Any:
        kind = random.random()
        if depth and kind < 0.4:
            return {random.choice("abcdN"): value(depth - 1) for _ in range(random.randint(0, 4))}
        return [value(depth - 1) for _ in range(random.randint(0, 3))] if depth and kind < 0.55 else scalar()

    def schema(depth: int) -> str:
        kind = random.random()
        if depth and kind < 0.6:
            names = random.sample("abcdN" if random.random() < 0.9 else "nN", 2)
            return f"struct<{', '.join(f'{name} {schema(depth - 1)}' for name in names)}>"
        return f"array<{schema(depth - 1)}>" if depth and kind < 0.75 else random.choice(_RANDOM_TYPES)

    paths = {}
    for number in range(count):
        rows = pv.from_python([random.choice((None, value(2), {"a": scalar(), "b": value(1)})) for _ in range(20)])
        layout = random.choice(("unshredded", "final", "final", "final", "final", "draft-object", "draft-paths"))
        ddl = "variant" if layout == "unshredded" else schema(2)
        is_annotated = random.random() < 0.6 and not layout.startswith("draft")
        name = f"random {number}: {layout} {ddl}{'' if is_annotated else ', unannotated'}"
        paths[name] = folder / f"random-{number}.parquet"
        form = {} if layout == "unshredded" else {"layout": layout}
        pv.write(paths[name], {"v": rows}, schema=ddl, annotation=is_annotated, **form)
    return paths


@dataclass(frozen=True)
class Run:
    """What an engine did with a fixture, and what the rules predict."""

    fixture: str
    engine: str  # With the version.
    verdict: str
    detail: str
    predicted: str

    @property
    def is_as_predicted(self) -> bool:
        """Whether the rules say what the engine did; a fixture that no rule speaks of is not wrong."""
        return self.predicted == "unknown" or self.verdict == CONFIRMS.get(self.predicted, self.predicted)


def run_engine(engine: str, paths: dict[str, Path], pythons: Iterable[str], timeout: float = 600) -> Iterator[Run]:
    """Try an engine on each fixture whose format it reads, with the first Python that has it."""
    for fixture, path in paths.items():
        table = pv.open(path)
        if table.format not in engine_programs.ENGINES[engine].kinds:
            continue
        with copy_of(table) as subject, tempfile.TemporaryDirectory() as folder:
            trial = Trial(subject, Path(folder), timeout, list(pythons), finds_remedies=False)
            result = trial.result(engine, str(path))
        name, _, version = result.engine.partition(" ")
        if result.verdict == "not installed" or "no answer" in result.detail:
            continue
        predicted = table.compat(require={name: version}).engines[0].verdict
        detail = re.sub(r"[,;] [0-9,]+ rows? in .*", "", result.detail)  # Without the time.
        yield Run(fixture, result.engine, result.verdict, detail, predicted)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_runs")
    parser.add_argument("--python", action="append", default=[], help="the Python of another environment")
    parser.add_argument("--engine", action="append", help="only this engine, by its name in Table.compat")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="random files instead of one per trait")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = write_fixtures(Path(folder))
        if options.random:
            paths = write_random_fixtures(Path(folder), options.random, options.seed)
        for engine in options.engine or engine_programs.ENGINES:
            for run in run_engine(engine, paths, [*options.python, sys.executable]):
                # Of random files, only promises are checked: a trait need not show in the values.
                is_right = run.is_as_predicted or (options.random and run.predicted not in READABLE)
                wrong += not is_right
                note = "" if is_right else f" BUT THE RULES SAY {run.predicted}"
                print(f"{run.engine}, {run.fixture}: {run.verdict}: {run.detail}{note}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
