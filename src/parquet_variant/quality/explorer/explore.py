"""`Table.explore`: a page that shows how Variants are stored; `save_diff`: the page of two data sets' differences.

Owns reading only footers, metadata of tables and a bounded sample; the figures of the sample by path that footers do
not have: types, distinct values, the cost of typing a path, and examples of values; and the document that ``page/*.js``
reads. Leaves formats to `pv.open` and `quality.sources`, the choice of a schema to `inference`, footers to `report`.
"""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.errors import VariantFileError, without_secrets
from parquet_variant.files.parquet.operations.inspect import inspect
from parquet_variant.files.parquet.writing.writer import write
from parquet_variant.inference.columns import best_column
from parquet_variant.inference.explain import slow_paths
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.decision import InferenceResult
from parquet_variant.inference.profile import Profile
from parquet_variant.ingestion.batches import Pass
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.io.staging import atomic_file
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.conversions import to_json
from parquet_variant.quality.diff import DataDiff
from parquet_variant.quality.explorer.page import page
from parquet_variant.quality.explorer.report import Footers, read_footers
from parquet_variant.quality.footers import SAMPLE_ROW_GROUPS, SAMPLE_ROWS, evenly, first_rows
from parquet_variant.quality.sources import DataFile, DataSet, data_of
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.support.records import Record, shortened
from parquet_variant.tables.opening import open as open_any
from parquet_variant.tables.table.table import Table
from parquet_variant.types import VariantType
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, depth_first, outer_paths

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
                text = shortened(value.to_json(), _TEXT)
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
_METRICS = (
    *("numFiles", "numOutputRows", "numOutputBytes", "numAddedFiles", "numRemovedFiles"),
    *("added-data-files", "deleted-data-files", "added-records", "deleted-records", "added-position-deletes"),
)
# The largest number of paths on the page, with examples: about 3 MB.
_MAX_PATHS = 12_000


class Sample(Record, frozen=False):
    """Figures of a sample of the rows."""

    profile: Profile
    result: InferenceResult  # The choice of the ``auto`` policy.
    text_bytes: int  # Bytes of the rows as JSON.
    examples: Examples
    unshredded_bytes: int = 0  # Compressed bytes without typed columns.
    shredded_bytes: int = 0
    residual_ratio: float = 0.0  # Compressed bytes per byte of residual.
    typed_bytes: dict[VariantPath, int] = field(default_factory=dict)  # Compressed bytes of typed columns, if measured.

    @classmethod
    def of(cls, rows: VariantArray) -> Sample:
        """Compute the figures of some rows.

        >>> import parquet_variant as pv
        >>> sample = Sample.of(pv.parse_json(['{"a": 1, "b": "x"}', '{"a": "one"}'] * 50))
        >>> sample.profile.get("$.a").count, sample.result.schema.to_ddl(), sorted(sample.examples[("a",)])
        (100, 'a string, b string', ['int8', 'string'])
        """
        profile = Profile.of_array(rows)
        result = AutoPolicy().choose(profile)
        sample = cls(profile, result, to_json(rows).nbytes, examples_of(rows, profile.values))
        if not len(rows):
            return sample
        with tempfile.TemporaryDirectory(prefix="parquet-variant-") as folder:

            def column_bytes(schema: ShreddingSchema | None) -> tuple[int, dict[VariantPath, int]]:
                """Write the sample with a schema; return its bytes, and those of each path."""
                write(f"{folder}/sample.parquet", rows, schema=schema, mode="overwrite")
                report = inspect(f"{folder}/sample.parquet").columns[0]
                by_path = {VariantPath.parse(entry.path): entry.bytes for entry in report.paths}
                return sum(by_path.values()) + report.metadata_bytes, by_path

            sample.unshredded_bytes, by_path = column_bytes(None)
            plain = max(rows.to_unshredded().storage.field("value").nbytes, 1)
            sample.residual_ratio = min(by_path[VariantPath()] / plain, 1.0)
            sample.shredded_bytes = sample.unshredded_bytes
            if any(decision.shredded for decision in result.decisions):
                sample.shredded_bytes = column_bytes(result.schema)[0]
            if len(profile) <= _MEASURED:
                wide = AutoPolicy(min_row_share=0.0, max_columns=_MEASURED).choose(profile)
                sample.typed_bytes = column_bytes(wide.schema)[1]
        return sample

    def by_path(self, rows: int) -> dict[VariantPath, dict[str, Any]]:
        """Return the figures of each path, parents first, scaled to a number of rows."""
        scale = rows / self.profile.rows if self.profile.rows else 0.0
        decisions = {decision.path: decision for decision in self.result.decisions}
        by_path: dict[VariantPath, dict[str, Any]] = {}
        for of_path in self.profile:
            path, best = of_path.path, best_column(of_path)
            decision, typed = decisions.get(path), self.typed_bytes.get(path)
            lower, upper = of_path.int_range or (None, None)
            by_path[path] = {
                "column": None if best is None else best.name,
                "share": round(of_path.row_share, 5),
                "count": round(of_path.count * scale),
                "kinds": {str(kind): round(count * scale) for kind, count in of_path.types.items()},
                "distinct": of_path.distinct if best is not None and best.arrow is not None else 0,
                "lower": lower,
                "upper": upper,
                "encoded": round(of_path.encoded_bytes * scale),
                "typed": None if typed is None else round(typed * scale),
                # Without a decision, the reason of the nearest path above that has one.
                "reason": by_path.get(path.parent, _NOT_SAMPLED)["reason"] if decision is None else decision.reason,
                "chosen": int(decision is not None and decision.shredded),
                "examples": self.examples.get(path.segments, {}),
            }
        return by_path


# The figures of a path without values in the sample.
_NOT_SAMPLED: dict[str, Any] = {
    "column": None, "share": 0.0, "count": 0, "kinds": {}, "distinct": 0, "lower": None, "upper": None, "encoded": 0,
    "typed": None, "reason": "", "chosen": 0, "examples": {},
}  # fmt: skip


class Exploration(Record, frozen=False):
    """A page about a table, or about JSON before it is ingested; notebooks display it, and `save` writes a file."""

    source: str  # The path, as the user wrote it.
    kind: str  # ``"parquet"``, ``"delta"``, ``"iceberg"``, ``"vortex"`` or ``"json"``.
    column: str  # The Variant column; ``"v"`` for JSON.
    # Rows and bytes of the whole table; an estimate for JSON.
    rows: int
    bytes: int
    footers: Footers | None  # The figures of footers; None without Parquet files.
    sample: Sample
    # The versions of a table, newest first: version, time, operation, figures.
    versions: list[dict[str, Any]] = field(default_factory=list)
    before: Exploration | None = None  # Another page to compare with.
    table: Any = None  # The snapshot of an Iceberg table, over which SQL runs.
    catalog: str | None = None  # The name of the catalog of an Iceberg table, for commands; None without a catalog.

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the page, with tables by column so that they compress well."""
        sample, of_sample = self.sample, self.sample.by_path(self.rows)
        kinds: dict[VariantPath, str] = {}
        if self.footers is None and self.kind != "json":
            kinds[VariantPath()] = "variant"
        for shape in reversed([] if self.footers is None else self.footers.shapes):
            kinds |= shape.kinds
        paths = list({VariantPath(), *of_sample, *kinds})
        if len(paths) > _MAX_PATHS:  # the largest and their parents
            largest: dict[VariantPath, None] = {}
            for path in sorted(
                paths, key=lambda path: (path not in kinds, -of_sample.get(path, _NOT_SAMPLED)["encoded"])
            ):
                if len(largest) >= _MAX_PATHS:
                    break
                largest |= dict.fromkeys([*outer_paths(path), path])
            paths = list(largest)
        paths.sort(key=depth_first)
        numbers = {path: at for at, path in enumerate(paths)}
        table = {
            "parent": [numbers[path.parent] if path.segments else -1 for path in paths],
            # null stands for the elements of an array: no key of JSON is null.
            "key": [
                "$" if not path.segments else path.segments[-1] if isinstance(path.segments[-1], str) else None
                for path in paths
            ],
            "kind": [kinds.get(path) for path in paths],
        }
        figures = [of_sample.get(path, _NOT_SAMPLED) for path in paths]
        document: dict[str, Any] = {
            "source": without_secrets(self.source),
            **{name: getattr(self, name) for name in ("kind", "column", "rows", "bytes", "versions", "catalog")},
            "sample": {
                "rows": sample.profile.rows, "text": sample.text_bytes, "ddl": sample.result.schema.to_ddl(),
                "unshredded": sample.unshredded_bytes, "shredded": sample.shredded_bytes,
                "ratio": sample.residual_ratio, "slow": slow_paths(sample.result),
            },
            "paths": table | {name: [of_path[name] for of_path in figures] for name in _NOT_SAMPLED},
        }  # fmt: skip
        if self.footers is not None:
            document["footers"] = self.footers.to_dict(numbers)
        if self.before is not None:
            document["before"] = self.before.to_dict() | {"before": None}
        return document

    def to_html(self) -> str:
        """Return the page as one self-contained HTML document."""
        return page(self.to_dict())

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the page to a file, which appears only when it is complete."""
        return _saved(self.to_dict(), file)

    def sql(self, query: str, *, rows: int | None = None, seconds: float | None = None) -> pa.Table:
        """Run SQL over the table, which is called ``t``; see `pv.sql`. Other files and tables cannot be read.

        The query ends after a number of rows, or after some seconds with `SqlError`, reason ``time-limit``.
        """
        with optional_libraries("SQL"):
            from parquet_variant.sql_query.sql import plan_sql

        table: Any = self.table or self.source
        if self.kind == "json":
            from parquet_variant.ingestion.ingest import read_json  # not needed to make a page

            table = read_json(self.source)
        with closing(plan_sql(query, {"t": table}, opens_paths=False).batches(seconds=seconds)) as batches:
            parts: list[pa.Table] = []
            for part in batches:
                parts.append(part)
                if rows is not None and sum(map(len, parts)) >= rows:
                    break
        return pa.concat_tables(parts).slice(0, rows)

    def _repr_html_(self) -> str:
        inner = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{inner}" style="width:100%;height:760px;border:0" sandbox="allow-scripts"></iframe>'

    def __repr__(self) -> str:
        counts = f"{self.rows:,} rows, {len(self.sample.profile):,} paths"
        return f"<Exploration of {without_secrets(self.source)}: {counts}; save('x.html')>"


def explore(table: Table, *, compare: Any = None) -> Exploration:
    """Inspect a table of Variants, or JSON before it is ingested; see `Table.explore`."""
    data, path = data_of(table), table.uri
    footers: Footers | None = None
    if data.text_files:
        rows, sample = _rows_of_text(path, data)
    elif data.files:
        root = os.path.commonpath([file.source.path for file in data.files])
        footers = read_footers(data.files, root if len(data.files) > 1 else os.path.dirname(root))  # noqa: PTH120
        read = sum(size for _, size, _ in footers.files)
        # The rows of files whose footers were not read are estimated by bytes.
        rows = footers.rows + (round(footers.rows * footers.skipped_bytes / read) if read else 0)
        sample = Sample.of(_parquet_rows(data.files))
    elif data.kind in ("delta", "iceberg"):
        raise VariantFileError(f"the table {path} has no rows: append rows first", reason="no-rows", file=path)
    else:
        rows, batch = data.rows or 0, next(data.batches(), None)
        sample = Sample.of(VariantArray.from_pylist([]) if batch is None else batch.values[:SAMPLE_ROWS])
    exploration = Exploration(path, data.kind, data.column, rows, data.size, footers, sample)
    if table.format in ("delta", "iceberg"):
        exploration.versions = list(map(_version, table.history(200)))
    if table.format == "iceberg":
        exploration.table, catalog = table.snapshot, table.options.catalog
        # Properties may contain credentials.
        exploration.catalog = catalog if catalog is None or isinstance(catalog, str) else "CATALOG"
    if compare is not None:
        exploration.before = explore(open_any(compare, column=table.options.column))
    return exploration


def _version(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of the history of a Delta or Iceberg table."""
    if "snapshot_id" not in entry:
        version, engine, metrics = entry["version"], entry.get("engineInfo"), entry.get("operationMetrics") or {}
    else:
        version, engine, metrics = entry["snapshot_id"], entry["summary"].get("engine-name"), entry["summary"]
    return {
        "version": version,
        "time": entry["timestamp"].strftime("%Y-%m-%d %H:%M:%S"),
        "operation": entry["operation"],
        "engine": engine,
        "metrics": {name: metrics[name] for name in _METRICS if name in metrics},
    }


def _rows_of_text(path: str, data: DataSet) -> tuple[int, Sample]:
    """Return the estimated rows of JSON files, and a sample of the first lines; invalid lines are left out."""
    lenient = replace(data.text, on_error="quarantine", chunk_bytes=1 << 20)
    parts: list[VariantArray] = []
    rows, text_bytes, is_complete = 0, 0, True

    def work(tape: Tape) -> VariantArray:
        return trusted_array(shredded_rows(tape, per_batch=True).storage())

    for step in Pass(lenient, work).steps([Split(file) for file in data.text_files]):
        if rows >= SAMPLE_ROWS or text_bytes >= SAMPLE_BYTES:
            is_complete = False
            break
        chunk = step()
        parts += chunk.results
        rows, text_bytes = sum(map(len, parts)), text_bytes + chunk.counts.text_bytes
    if not rows:
        raise VariantFileError(f"no JSON values in {path}: name files with JSON", reason="no-rows", file=path)
    if not is_complete:
        rows = max(round(data.text_bytes * rows / text_bytes), rows)
    return rows, Sample.of(VariantArray.concat(parts)[:SAMPLE_ROWS])


def _parquet_rows(files: Sequence[DataFile]) -> VariantArray:
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
            row_bytes = opened.facts.size(leaves, [0], plain=True) // rows + 1
            limit = max(min(SAMPLE_ROWS // len(sampled), size // row_bytes), 1)
            for values in first_rows(opened, column, 0, limit, leaves):
                parts.append(values.to_unshredded())
                size -= parts[-1].storage.nbytes
                if size <= 0:
                    break
    return VariantArray.concat(parts) if parts else VariantArray.from_pylist([])


def save_diff(differences: DataDiff, file: str | os.PathLike[str]) -> Path:
    """Write differences as one self-contained HTML page, which appears only when it is complete.

    >>> import tempfile, parquet_variant as pv
    >>> differences = pv.open(pv.parse_json(["1"])).diff(pv.parse_json(['"x"']))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_diff(differences, f"{folder}/diff.html").stat().st_size > 10_000
    True
    """
    return _saved(differences.to_dict(), file)


def _saved(document: dict[str, Any], file: str | os.PathLike[str]) -> Path:
    with atomic_file(target := Path(file)) as staged:
        staged.write_bytes(page(document).encode())
    return target
