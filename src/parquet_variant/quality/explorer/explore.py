"""`Table.explore`: a page that shows how Variants are stored; `save_diff`: the page of two data sets' differences.

Owns reading only footers, metadata of tables and a bounded sample, and the figures of the sample by path that footers
do not have: types, distinct values, the cost of typing a path, and examples of values. Leaves formats to `pv.open` and
`quality.sources`, the choice of a schema to `inference`, the document to `report`, and the page to `page`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.errors import VariantFileError, without_secrets
from parquet_variant.files.parquet.operations.inspect import inspect
from parquet_variant.files.parquet.writing.write import write
from parquet_variant.inference.columns import best_column
from parquet_variant.inference.explain import slow_paths
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.decision import InferenceResult
from parquet_variant.inference.profile import Profile
from parquet_variant.ingestion.batches import steps
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.io.temporaries import atomic_file
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.value_edits import variant_normalize
from parquet_variant.quality.diff import DataDiff
from parquet_variant.quality.explorer.page import page, page_frame
from parquet_variant.quality.explorer.report import ExploreReport, PathSample, Sample, read_footers
from parquet_variant.quality.footers import SAMPLE_ROW_GROUPS, SAMPLE_ROWS, evenly, first_rows
from parquet_variant.quality.sources import DataFile, DataSet, data_of
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.opening import open as open_any
from parquet_variant.tables.table.table import Table
from parquet_variant.types import VariantType
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

# Rows that are searched at most, and about the number of values in them.
_SEARCHED_ROWS = 400
_VALUES = 5_000
# Examples of a type at a path, and the characters of an example.
_EXAMPLES = 3
_TEXT = 60

# For each path, for each type: the number of a row, and JSON.
Examples: TypeAlias = dict[tuple[Segment, ...], dict[str, list[tuple[int, str]]]]


def examples_of(rows: VariantArray, values: int) -> Examples:
    """Return examples from the first rows; `values` is the number of values in all rows.

    >>> import parquet_variant as pv
    >>> examples_of(pv.parse_json(['{"a": [1, 2.5]}', '{"a": [1]}']), 6)[("a", WILDCARD)]
    {'int8': [(0, '1')], 'decimal4': [(0, '2.5')]}
    """
    count = min(_SEARCHED_ROWS, -(-_VALUES * len(rows) // max(values, 1)))
    examples: Examples = {}
    for row, root in enumerate(rows[:count].to_unshredded()):
        remaining: list[tuple[tuple[Segment, ...], Any]] = [] if root is None else [((), root)]
        while remaining:  # parents first
            path, value = remaining.pop()
            of_type = examples.setdefault(path, {}).setdefault(str(value.type), [])
            if len(of_type) < _EXAMPLES:
                text = value.to_json()
                text = text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
                of_type += [(row, text)] * (text not in (other for _, other in of_type))
            children: Iterable[tuple[Segment, Any]] = ()
            if value.type == VariantType.OBJECT:
                children = value.items()
            elif value.type == VariantType.ARRAY:
                children = ((WILDCARD, element) for element in value)
            remaining += reversed([((*path, segment), child) for segment, child in children])
    return examples


SAMPLE_BYTES = 8 << 20
# The largest number of paths whose columns are written and measured, not estimated.
_MEASURED = 2_000
# Figures of a version that the page shows, as Delta and Iceberg name them.
_METRICS = ("numFiles", "numOutputRows", "numOutputBytes", "numAddedFiles", "numRemovedFiles")
_SUMMARY = ("added-data-files", "deleted-data-files", "added-records", "deleted-records", "added-position-deletes")


def report_of(table: Table) -> ExploreReport:
    """Build the report of an open table. Raises `VariantFileError` if there is no Variant column."""
    data = data_of(table)
    report = _of_text(table.uri, data) if data.text_files else _of_rows(table.uri, data)
    if table.format == "delta":
        report.versions = [
            _version(entry, entry["version"], entry["timestamp"], entry.get("engineInfo"), metrics, _METRICS)
            for entry in table.history(200)
            for metrics in (entry.get("operationMetrics") or {},)
        ]
    elif table.format == "iceberg":
        report.table, catalog = table.snapshot, table.options.catalog
        # Properties may contain credentials.
        report.catalog = catalog if catalog is None or isinstance(catalog, str) else "CATALOG"
        for entry in table.history(200):
            time, summary = datetime.fromtimestamp(entry["timestamp"] / 1000, UTC), entry["summary"]
            engine = summary.get("engine-name")
            report.versions.append(_version(entry, entry["snapshot_id"], time, engine, summary, _SUMMARY))
    return report


def _version(
    entry: dict[str, Any], version: int, time: datetime, engine: Any, metrics: dict[str, Any], shown: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "version": version,
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        "operation": entry["operation"],
        "engine": engine,
        "metrics": {name: metrics[name] for name in shown if name in metrics},
    }


def _of_rows(path: str, data: DataSet) -> ExploreReport:
    """Return the report of Parquet files, from footers and some pages; or of the first rows of other data."""
    if not data.files:
        if data.kind in ("delta", "iceberg"):
            raise VariantFileError(f"the table {path} has no rows: append rows first", reason="no-rows", file=path)
        batch = next(data.batches(), None)
        sample = sample_of(VariantArray.from_pylist([]) if batch is None else batch.values[:SAMPLE_ROWS])
        types = {VariantPath(): "variant"}
        return ExploreReport(path, data.kind, data.column, data.rows or 0, data.size, None, sample, types=types)
    root = os.path.commonpath([file.source.path for file in data.files])
    footers = read_footers(data.files, root if len(data.files) > 1 else os.path.dirname(root))  # noqa: PTH120
    sample, read = sample_of(parquet_rows(data.files)), sum(size for _, size, _ in footers.files)
    # The rows of files whose footers were not read are estimated by bytes.
    rows = footers.rows + (round(footers.rows * footers.skipped_bytes / read) if read else 0)
    return ExploreReport(path, data.kind, data.column, rows, data.size, footers, sample)


def _of_text(path: str, data: DataSet) -> ExploreReport:
    """Return the report of JSON files, from the first lines; invalid lines are left out."""
    lenient = replace(data.text, on_error="quarantine", chunk_bytes=1 << 20)
    parts: list[VariantArray] = []
    rows, text_bytes, is_complete = 0, 0, True

    def work(tape: Tape) -> VariantArray:
        return trusted_array(shredded_rows(tape, per_batch=True).storage())

    for step in steps([Split(file) for file in data.text_files], lenient, work):
        if rows >= SAMPLE_ROWS or text_bytes >= SAMPLE_BYTES:
            is_complete = False
            break
        chunk = step()
        parts += chunk.results
        rows, text_bytes = sum(map(len, parts)), text_bytes + chunk.text_bytes
    if not rows:
        raise VariantFileError(f"no JSON values in {path}: name files with JSON", reason="no-rows", file=path)
    sample = sample_of(VariantArray.concat(parts)[:SAMPLE_ROWS])
    if not is_complete:
        rows = max(round(data.text_bytes * rows / text_bytes), rows)
    return ExploreReport(path, "json", "v", rows, data.size, None, sample)


def parquet_rows(files: Sequence[DataFile]) -> VariantArray:
    """Read rows from the beginning of some files, and only their pages."""
    sampled = evenly(files, SAMPLE_ROW_GROUPS)
    parts: list[VariantArray] = []
    for file in sampled:
        with file.open() as (opened, column):
            rows = opened.facts.rows(opened.facts.groups[:1])
            if column is None or not rows:
                continue
            leaves = [leaf.leaf for leaf in column.node.leaves() if leaf.leaf is not None]
            size = SAMPLE_BYTES // len(sampled)
            row_bytes = opened.facts.plain_size(leaves, [0]) // rows + 1
            limit = max(min(SAMPLE_ROWS // len(sampled), size // row_bytes), 1)
            for values in first_rows(opened, column, 0, limit, leaves):
                parts.append(values.to_unshredded())
                size -= parts[-1].storage.nbytes
                if size <= 0:
                    break
    if any(part.storage.type != parts[0].storage.type for part in parts):  # files of several writers
        parts = [variant_normalize(part) for part in parts]
    return VariantArray.concat(parts) if parts else VariantArray.from_pylist([])


def sample_of(rows: VariantArray) -> Sample:
    """Compute the figures of every path in some rows.

    >>> import parquet_variant as pv
    >>> sample = sample_of(pv.parse_json(['{"a": 1, "b": "x"}', '{"a": "one"}'] * 50))
    >>> a = sample.paths[VariantPath(("a",))]
    >>> a.count, a.kinds, a.column, sorted(a.examples)
    (100, {'int8': 50, 'string': 50}, 'string', ['int8', 'string'])
    """
    profile = Profile.of_array(rows)
    result = AutoPolicy().choose(profile)
    decisions = {decision.path: decision for decision in result.decisions}
    paths: dict[VariantPath, PathSample] = {}
    for of_path in profile:  # parents first
        path, parent, best = of_path.path, paths.get(of_path.path.parent), best_column(of_path)
        decision = decisions.get(path)
        paths[path] = PathSample(
            count=of_path.count,
            row_share=of_path.row_share,
            kinds={str(kind): count for kind, count in of_path.types.items()},
            column=None if best is None else best.name,
            distinct=of_path.distinct if best is not None and best.arrow is not None else 0,
            int_range=of_path.int_range or (None, None),
            bytes=of_path.encoded_bytes,
            # Without a decision, the reason of the nearest path above that has one.
            reason=decision.reason if decision is not None else "" if parent is None else parent.reason,
            is_typed=decision is not None and decision.shredded,
        )
    texts = to_json(rows)
    for segments, examples in examples_of(rows, profile.values).items():
        if (sample := paths.get(VariantPath(segments))) is not None:
            sample.examples = examples
    with tempfile.TemporaryDirectory(prefix="parquet-variant-") as folder:
        unshredded, residual = _write_sample(rows, None, Path(folder) / "unshredded.parquet")[:2]
        shredded = unshredded
        if any(sample.is_typed for sample in paths.values()):
            shredded = _write_sample(rows, result, Path(folder) / "shredded.parquet")[0]
        if len(paths) <= _MEASURED:
            wide = AutoPolicy(min_row_share=0.0, max_columns=_MEASURED).choose(profile)
            for path, size in _write_sample(rows, wide, Path(folder) / "wide.parquet")[2].items():
                if path in paths:
                    paths[path].typed_bytes = size
    plain = max(rows.to_unshredded().storage.field("value").nbytes, 1)
    return Sample(
        len(rows),
        texts.nbytes,
        paths,
        result.schema.to_ddl(),
        unshredded,
        shredded,
        min(residual / plain, 1.0),
        slow_paths(result),
    )


def _write_sample(
    rows: VariantArray, result: InferenceResult | None, file: Path
) -> tuple[int, int, dict[VariantPath, int]]:
    """Write the sample, and return its bytes in the file, those of its residual, and those of each path."""
    if not len(rows):
        return 0, 0, {}
    write(file, rows, schema=None if result is None else result.schema)
    report = inspect(str(file)).columns[0]
    by_path = {VariantPath.parse(entry.path): entry.bytes for entry in report.paths}
    total = sum(by_path.values()) + report.metadata_bytes
    return total, by_path[VariantPath()], by_path


def save_diff(differences: DataDiff, file: str | os.PathLike[str]) -> Path:
    """Write differences as one self-contained HTML page, which appears only when it is complete.

    >>> import tempfile, parquet_variant as pv
    >>> differences = pv.open(pv.parse_json(["1"])).diff(pv.parse_json(['"x"']))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_diff(differences, f"{folder}/diff.html").stat().st_size > 10_000
    True
    """
    return _saved(page(differences.to_dict()), file)


def _saved(document: str, file: str | os.PathLike[str]) -> Path:
    target = Path(file)
    with atomic_file(target) as staged:
        staged.write_bytes(document.encode())
    return target


@dataclass(frozen=True, slots=True)
class Exploration:
    """A page about a table, which notebooks display and `save` writes to a file."""

    report: ExploreReport

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the page."""
        return self.report.to_dict()

    def to_html(self) -> str:
        """Return the page as one self-contained HTML document."""
        return page(self.to_dict())

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the page to a file, which appears only when it is complete."""
        return _saved(self.to_html(), file)

    def sql(self, query: str, *, rows: int | None = None, seconds: float | None = None) -> pa.Table:
        """Run SQL over the table, which is called ``t``; see `pv.sql`. Other files and tables cannot be read.

        The query ends after a number of rows, or after some seconds with `SqlError`, reason ``time-limit``.
        """
        with optional_libraries("SQL"):
            from parquet_variant.sql_query.sql import plan_sql

        report = self.report
        table: Any = report.table or report.source
        if report.kind == "json":
            from parquet_variant.ingestion.ingest import read_json  # not needed to make a page

            table = read_json(report.source)
        with closing(plan_sql(query, {"t": table}, opens_paths=False).batches(seconds=seconds)) as batches:
            parts: list[pa.Table] = []
            for part in batches:
                parts.append(part)
                if rows is not None and sum(map(len, parts)) >= rows:
                    break
        return pa.concat_tables(parts).slice(0, rows)

    def _repr_html_(self) -> str:
        return page_frame(self.to_dict())

    def __repr__(self) -> str:
        report = self.report
        counts = f"{report.rows:,} rows, {len(report.sample.paths):,} paths"
        return f"<Exploration of {without_secrets(report.source)}: {counts}; save('x.html')>"


def explore(table: Table, *, compare: Any = None) -> Exploration:
    """Inspect a table of Variants, or JSON before it is ingested; see `Table.explore`."""
    report = report_of(table)
    if compare is not None:
        report.before = report_of(open_any(compare, column=table.options.column))
    return Exploration(report)
