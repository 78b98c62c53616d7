"""`Table.compat`: try the installed engines on a user's own files, and compare the values that they return.

Every engine runs in a process of its own with a timeout, on a copy of one file or table. Owns the copies, the runs, the
verdicts, the search for a rewrite that helps, and predictions by the rules of `files.parquet.validation.engine_rules`
for engines that are not installed. `engine_programs` reads with the engines.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import (
    VariantError,
    VariantFileError,
    bad_option,
    check_choice,
    check_mapping,
    check_names,
    check_number,
    first_line,
    strings_of,
)
from parquet_variant.files.parquet.format.columns import find_variants, no_variant_column
from parquet_variant.files.parquet.format.files import locate, open_file
from parquet_variant.files.parquet.operations.rewrite import rewrite
from parquet_variant.files.parquet.validation import engine_rules
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.equals import equals
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.quality.compatibility import engine_programs
from parquet_variant.quality.sources import data_of
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, Report, counted, shortened
from parquet_variant.tables.opening import open as open_any
from parquet_variant.tables.table.base import TableFormat
from parquet_variant.tables.table.table import Table

# Larger directories are not copied as a whole: their first files are tried, at least one.
MAX_COPY_BYTES = 64 << 20


class Subject(Record):
    """A copy of some files or of a table."""

    kind: TableFormat
    paths: tuple[str, ...]  # The files, the directory of a table, or the metadata file of an Iceberg table.
    rows: pa.Table  # The rows of the copy as this library reads them.
    variants: tuple[str, ...]  # The Variant columns of the rows.

    @property
    def is_ordered(self) -> bool:
        """Whether engines return the rows in the order of the files."""
        return self.kind in ("parquet", "vortex")


@contextmanager
def copy_of(table: Table) -> Iterator[Subject]:
    """Copy files or a table into a temporary directory, and read the copy.

    Iceberg's metadata names absolute paths, so that an Iceberg table is tried in place. Raises `VariantFileError` for a
    path that does not exist on this machine, and for data without a Variant column.
    """
    source = Path(table.uri)
    if not _engines_of(table.format) or not (source.exists() or table.options.catalog is not None):
        problem = f"{source} is not a local Parquet or Vortex file or directory, or a Delta or Iceberg table: name one"
        raise VariantFileError(problem, reason="no-such-file", file=str(source))
    with TemporaryDirectory(prefix="variant-compat-") as folder:
        if table.format == "iceberg":
            paths, copied = [str(table.snapshot.table.metadata_location)], table
        elif table.format == "delta":
            paths = [shutil.copytree(source, f"{folder}/table")]
            copied = open_any(paths[0], version=table.options.version, at=table.options.at)
        else:
            paths, size = [], 0
            for number, file in enumerate(table.data_files()):
                size += Path(file).stat().st_size
                if paths and size > MAX_COPY_BYTES:
                    break
                paths.append(str(shutil.copyfile(file, Path(folder, f"{number:05}-{Path(file).name}"))))
            copied = open_any(folder if table.format == "vortex" else paths, format=table.format)
        rows = copied.to_arrow()
        variants = tuple(field.name for field in rows.schema if is_variant_field(field))
        if not variants:
            lacking = f"{paths[0]} has no Variant column: compat compares the Variant columns of a file"
            raise VariantFileError(lacking, reason="not-a-variant", file=paths[0])
        yield Subject(table.format, tuple(paths), rows, variants)


def _engines_of(kind: str) -> list[str]:
    return [name for name, engine in engine_programs.ENGINES.items() if kind in engine.kinds]


_SHOWN = 60  # Characters of a value.


def first_difference(subject: Subject, rows: pa.Table) -> str | None:
    """Return where the rows of an engine differ from the subject's, as text; None if all values are equal."""
    if len(rows) != len(subject.rows):
        return f"{len(rows):,} rows instead of {len(subject.rows):,}"
    for name in subject.variants:
        try:
            expected, is_text = VariantArray.from_arrow(subject.rows, column=name), _is_text(rows, name)
            expected = parse_json(to_json(expected)) if is_text else expected
            actual = parse_json(rows[name]) if is_text else VariantArray.from_arrow(rows, column=name)
            difference = _different_variants(expected, actual, ordered=subject.is_ordered)
        except (VariantError, pa.ArrowException) as error:
            difference = f"the values cannot be decoded: {first_line(error)}"
        if difference is not None:
            return f"column {name}: {difference}"
    if not subject.is_ordered:
        return None
    for name in subject.rows.column_names:
        if name not in subject.variants and (difference := _different_column(subject.rows[name], rows[name])):
            return f"column {name}: {difference}"
    return None


def _is_text(rows: pa.Table, name: str) -> bool:
    return pa.types.is_string(rows[name].type) or pa.types.is_large_string(rows[name].type)


def _different_variants(expected: VariantArray, actual: VariantArray, *, ordered: bool) -> str | None:
    json_rows = [pc.fill_null(to_json(array), "SQL NULL") for array in (expected, actual)]
    if not ordered:
        order = [pc.sort_indices(text) for text in json_rows]
        expected, actual = expected.take(order[0]), actual.take(order[1])
        json_rows = [text.take(indices) for text, indices in zip(json_rows, order, strict=True)]
    same = pc.and_(pc.fill_null(equals(expected, actual), True), pc.equal(expected.is_null(), actual.is_null()))
    if pc.all(same, min_count=0).as_py():
        return None
    count, row = pc.sum(pc.invert(same)).as_py(), pc.index(same, False).as_py()
    values = [shortened(text[row].as_py(), _SHOWN) for text in json_rows]
    place = f"row {row}" if ordered else "one row"
    how = " (of another type)" if values[0] == values[1] else ""
    return f"{count:,} of {len(expected):,} values differ: {place} is {values[1]}{how} instead of {values[0]}"


def _different_column(expected: pa.ChunkedArray, actual: pa.ChunkedArray) -> str | None:
    """Return the first difference of a column without Variants; other types of the same values are equal."""
    try:
        actual = actual.cast(expected.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return f"has the type {actual.type} instead of {expected.type}"
    if expected.equals(actual):
        return None
    for row, (mine, other) in enumerate(zip(expected.to_pylist(), actual.to_pylist(), strict=True)):
        if mine != other and not (mine != mine and other != other):
            return f"row {row} is {shortened(str(other), _SHOWN)} instead of {shortened(str(mine), _SHOWN)}"
    return None


Verdict: TypeAlias = Literal["equal", "json", "struct", "differs", "refused", "not installed"] | engine_rules.Result
# What `variant rewrite` may do so that an engine reads a file.
_REWRITES: Mapping[str, Mapping[str, Any]] = {
    "--no-annotation": {"annotation": False},
    "--layout unshredded": {"layout": "unshredded"},
    "--layout unshredded --no-annotation": {"layout": "unshredded", "annotation": False},
}


class EngineResult(Record):
    """What one engine does with the data. `engine` contains the version.

    `verdict`: ``"equal"``: Variants with equal values. ``"json"``: their JSON text. ``"struct"``: the physical columns
      of the Variants, with equal values. ``"differs"``: other values. ``"refused"``: an error, a crash or a timeout.
      ``"not installed"``. Of a prediction: see `EngineRule`.
    `detail`: the time, the error or the first difference, and the command that makes the data readable; of a
      prediction, the reason and its evidence.
    """

    engine: str
    verdict: Verdict
    detail: str


class CompatReport(Report, Record):
    """The results of all engines that read this kind of data."""

    engines: tuple[EngineResult, ...]

    def __str__(self) -> str:
        width = max((len(result.engine) for result in self.engines), default=0)
        return "\n".join(f"{result.engine:<{width}}  {result.verdict:<13}  {result.detail}" for result in self.engines)


def compat(
    table: Table,
    engines: Iterable[str] | Literal["all"] | None = None,
    *,
    require: Mapping[str, str] | None = None,
    timeout: float = 120,
    pythons: Iterable[str | os.PathLike[str]] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> CompatReport:
    """Try the engines that are installed here, and compare values, or predict; see `Table.compat`."""
    if require is not None or (isinstance(engines, str) and engines == "all"):
        if require is not None and engines is not None:
            raise bad_option("engines= and require= are both given: require= names the engines")
        return CompatReport(tuple(_predictions(table, require)))
    check_number("timeout", timeout)
    with copy_of(table) as subject, TemporaryDirectory(prefix="variant-compat-") as folder:
        readers = _engines_of(subject.kind)
        names = readers if engines is None else list(strings_of("engines", engines))
        check_names(f"engine for {subject.kind} data", names, readers, VariantError)
        trial = Trial(subject, Path(folder), timeout, [*(str(python) for python in pythons), sys.executable])
        results = []
        for number, engine in enumerate(names):
            if progress is not None:
                progress(engine, number, len(names))
            results.append(trial.result(engine, table.uri))
        if progress is not None:
            progress("done", len(names), len(names))
    return CompatReport(tuple(results))


def _traits_of(table: Table) -> list[frozenset[str]]:
    """Return the traits of each data file, from footers and the metadata of the table."""
    check_choice(f"the format of {table.uri}", table.format, ("parquet", "delta", "iceberg"))
    shared = {str(table.format)}
    if table.format == "parquet":
        sources = locate(table.source, table.options.filesystem)
    else:
        data = data_of(table, next((field.name for field in table.schema if is_variant_field(field)), None))
        sources = [file.source for file in data.files]
        shared |= {"deletes"} if data.has_deletes else set()
        if table.format == "delta":
            shared |= set(table.snapshot.protocol.reader_features or ())
        elif table.properties.get("read.parquet.vectorization.enabled") != "false":
            shared.add("vectorized")
    traits: dict[frozenset[str], None] = {}
    for source in sources:
        with open_file(source) as file:
            columns = find_variants(file.schema)
            if columns or table.format != "parquet":
                traits[frozenset(shared.union(*map(engine_rules.schema_traits, columns)))] = None
    if table.format == "parquet" and not traits:
        raise no_variant_column(table.schema.names, table.uri)
    return list(traits) or [frozenset(shared)]


def _predictions(table: Table, require: Mapping[str, str] | None) -> Iterator[EngineResult]:
    """Predict for some versions, or for all of the rules: those with one verdict by one rule are one result."""
    engines: dict[str, list[engine_rules.EngineRule]] = {}
    for rule in engine_rules.engine_rules():
        engines.setdefault(rule.engine, []).append(rule)
    if require is not None:
        check_mapping("require", require)
        check_names("engine in require", require, engines)
    files = _traits_of(table)
    for engine in engines if require is None else require:
        versions = {end for rule in engines[engine] for end in rule.ends} if require is None else {str(require[engine])}
        if require is not None and not engine_rules.version_numbers(str(require[engine])):
            raise bad_option(f"require names {engine} {require[engine]!r}: give a version, such as {engine}=4.0")
        ordered = sorted(versions, key=engine_rules.version_numbers)
        for (result, cause), group in groupby(ordered, partial(engine_rules.verdict_of, engine, files=files)):
            first, *later = group
            detail = "no rule for this version and these files"
            if cause:
                detail = f"{cause.effect}; {cause.evidence}".lstrip("; ")
            yield EngineResult(f"{engine} {f'{first} to {later[-1]}' if later else first}", result, detail)


class Trial(Record, frozen=False):
    """Runs engines on a subject."""

    subject: Subject
    folder: Path
    timeout: float
    pythons: list[str]
    finds_remedies: bool = True  # Whether rewrites are tried if an engine fails.

    def result(self, engine: str, source: str) -> EngineResult:
        """Run an engine and return its result. If an extension is missing, try the next Python that has the engine."""
        result = EngineResult(engine, "not installed", f"pip install {engine_programs.ENGINES[engine].package}")
        for python in self.pythons:
            version = self._ask(engine, python, {"kind": "parquet", "paths": [], "columns": []}).get("version")
            if not version:
                continue
            verdict, detail = self._run(engine, python, self.subject)
            if self.finds_remedies and verdict in ("refused", "differs") and self.subject.kind == "parquet":
                accepted: tuple[Verdict, ...] = ("equal",) if verdict == "differs" else ("equal", "json", "struct")
                remedy = self._remedy(engine, python, accepted)
                detail += f"; readable after: variant rewrite {source} DEST {remedy}" if remedy else ""
            result = EngineResult(f"{engine} {version}", verdict, detail)
            if verdict != "not installed":
                break
        return result

    def _run(self, engine: str, python: str, subject: Subject) -> tuple[Verdict, str]:
        """Read a subject with an engine and compare."""
        columns = subject.rows.column_names
        out = str(self.folder / "rows.arrow")
        request = {"kind": subject.kind, "paths": subject.paths, "columns": columns, "out": out}
        answer = self._ask(engine, python, request)
        if "error" in answer:
            return "refused", str(answer["error"])
        if "missing" in answer:
            return "not installed", str(answer["missing"])
        with pa.OSFile(out) as file:
            rows = pa.ipc.open_file(file).read_all()
        took = f"{counted(len(rows), 'row')} in {1000 * answer['seconds']:,.0f} ms"
        difference = first_difference(subject, rows)
        types = {answer["types"].get(name, "") for name in subject.variants}
        if difference is not None:
            return "differs", f"{difference}; {took}"
        if all(kind.lower() == "variant" for kind in types):
            return "equal", f"as Variant, {took}"
        if all(_is_text(rows, name) for name in subject.variants):
            return "json", f"as JSON text, with equal values, {took}"
        return "struct", f"as the struct of the physical columns, with equal values, {took}"

    def _ask(self, engine: str, python: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run the program of an engine; return its answer, or the failure of the process as its error."""
        command = [python, engine_programs.__file__, json.dumps({"engine": engine, **request})]
        environment = {**os.environ, "PYSPARK_PYTHON": python, "PYTHONWARNINGS": "ignore"}
        environment.pop("PYTHONPATH", None)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=self.timeout, env=environment, check=False
            )
            if lines := done.stdout.splitlines():
                return dict(json.loads(lines[-1]))
        except subprocess.TimeoutExpired:
            return {"error": f"no answer within {self.timeout:g} seconds"}
        except (OSError, ValueError, TypeError) as error:
            return {"error": f"{python} does not run Python: {error}"}
        reason = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        return {"error": f"the process ended without an answer ({reason})"}

    def _remedy(self, engine: str, python: str, accepted: tuple[Verdict, ...]) -> str | None:
        """Return the options of `variant rewrite` after which the engine has one of some verdicts."""
        for options, write in _REWRITES.items():
            target = self.folder / options.replace(" ", "")
            if not target.exists():
                target.mkdir()
                for path in self.subject.paths:
                    rewrite(path, target / Path(path).name, **write)
            paths = tuple(str(target / Path(path).name) for path in self.subject.paths)
            if self._run(engine, python, replace(self.subject, paths=paths))[0] in accepted:
                return options
        return None
