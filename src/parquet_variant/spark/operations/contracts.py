"""`Table.check` and `StreamContract`: contracts of DataFrames and of streams.

Owns the job that counts violations and profiles a DataFrame in one pass, and what a stream does with each micro-batch.
Leaves evaluation to `contracts`, the rules of new paths to `quality.contract`, and writing to the data source.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import bad_option
from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.contract_check import ContractCheck, contract_error
from parquet_variant.inference.contracts.path_rules import PathRules
from parquet_variant.inference.contracts.report import ContractCounts, ContractReport
from parquet_variant.inference.profile import Profile
from parquet_variant.io.filesystems import absolute
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.quality.contract import type_rules
from parquet_variant.spark.arrow_variant import from_spark
from parquet_variant.spark.datasource.source import VariantDataSource, make_active
from parquet_variant.spark.engine import choose_column, is_connect, merged_batches
from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors
from parquet_variant.support.options import OnViolation
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, VariantPath, is_within, outer_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The column with the rule that a row breaks, in quarantined rows.
VIOLATION_COLUMN = "_violation"


def check(
    df: DataFrame, contract: Any, *, column: str | None = None, values: bool = True, examples: int = 5
) -> ContractReport:
    """Check a column of a DataFrame against a contract, as one job over all rows; see `Table.check`."""
    rules = ContractCheck(Contract.of(contract), "warn", values, examples)
    return rules.report("the DataFrame", _figures(df, column, rules)[0])


# The violations and the profile of some rows.
_Figures = tuple[ContractCounts, Profile]


def _figures(df: DataFrame, column: str | None, rules: ContractCheck, *, profile: bool = False) -> _Figures:
    """Count the violations of all rows, and profile them on request, in one job."""

    def figures(array: VariantArray) -> _Figures:
        counts, _reasons = rules.check(list(array_tapes(array, 0)), int)
        return counts, Profile.of_array(array) if profile else Profile()

    def merge(left: _Figures, right: _Figures) -> _Figures:
        return rules.merge([left[0], right[0]]), left[1].merge(right[1])

    return merged_batches(df, column, figures, (ContractCounts(), Profile()), merge)


def _with_violations(df: DataFrame, column: str | None, rules: ContractCheck) -> DataFrame:
    """Return the rows with the rule that each breaks in `VIOLATION_COLUMN`, null for valid rows."""
    from pyspark.sql.functions import arrow_udf

    name, is_json = choose_column(df.schema, column)
    checking = replace(rules, on_violation="quarantine")

    @arrow_udf("string")
    def violations(values: pa.Array) -> pa.Array:
        with to_spark_errors():
            array = parse_json(values) if is_json else from_spark(values)
            reasons = checking.check(list(array_tapes(array, 0)), int)[1]
        return pa.array([reasons.get(row) for row in range(len(values))], pa.string())

    return df.withColumn(VIOLATION_COLUMN, violations(df[name]))


class BatchDrift(Record):
    """What a micro-batch of a stream has that the contract does not.

    Parameters
    ----------
    batch
        The number of the micro-batch.
    report
        The violations in the micro-batch.
    new_paths
        Paths that the contract does not name, with the types of their values.
    added
        The paths that were added to the contract, because `evolve` is set.
    """

    batch: int
    report: ContractReport
    new_paths: dict[VariantPath, PathRules] = field(default_factory=dict)
    added: tuple[VariantPath, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any drift."""
        return bool(self.new_paths) or not self.report

    def to_dict(self) -> dict[str, Any]:
        """Return the drift as a metric, in types that JSON can represent."""
        return {
            "batch": self.batch,
            "rows": self.report.rows,
            "bad_rows": self.report.bad_rows,
            "violations": [violation.to_dict() for violation in self.report.violations],
            "new_paths": {path.shorthand: list(rules.types) for path, rules in self.new_paths.items()},
            "added": [path.shorthand for path in self.added],
        }


class StreamContract:
    """A contract of a stream, for ``writeStream.foreachBatch``: each micro-batch is checked before it is written.

    Every micro-batch is written exactly once to a Delta table, also if Spark repeats it. The contract, the metrics and
    the callback are in the driver.

    Parameters
    ----------
    contract
        A `Contract`, a file, or a mapping of paths to rules. With `evolve`, a file that does not exist starts empty.
    dest
        The Delta table; created if it does not exist.
    column
        The VARIANT or JSON column; by default the only one.
    on_violation
        ``"fail"``: the micro-batch raises `ContractError`, which ends the stream, and is not written.
        ``"quarantine"``: bad rows are written to `quarantine` with the rule in the column ``_violation``. ``"warn"``:
        they are written and counted.
    quarantine
        The Delta table of bad rows; by default `dest` followed by ``_bad_rows``.
    evolve
        Add paths that appear to the contract, as optional paths with their types, and save it if it is a file.
    on_drift
        A function that is called with the `BatchDrift` of a micro-batch that has any.
    stream
        A name of the stream for the transactions of the table; by default the id of the query in its checkpoint.
    **options
        Options of the data source, such as ``schema``, ``compression`` or ``partitionBy``.

    Attributes
    ----------
    contract
        The contract, with the paths that were added.
    metrics
        The `BatchDrift` of the last 1,000 micro-batches, as dictionaries.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> events = pv.spark.StreamContract({"$.id": {"type": "integer"}}, "events", on_violation="quarantine")
    >>> events.on_violation, events.quarantine
    ('quarantine', 'events_bad_rows')
    """

    _MAX_METRICS = 1000

    def __init__(
        self,
        contract: Any,
        dest: str | os.PathLike[str],
        *,
        column: str | None = None,
        on_violation: OnViolation = "fail",
        quarantine: str | os.PathLike[str] | None = None,
        evolve: bool = False,
        on_drift: Callable[[BatchDrift], object] | None = None,
        stream: str | None = None,
        **options: Any,
    ) -> None:
        self._file = os.fspath(contract) if isinstance(contract, str | os.PathLike) else None
        is_new = evolve and self._file is not None and "://" not in self._file and not os.path.exists(self._file)  # noqa: PTH110
        self.contract = Contract() if is_new else Contract.of(contract)
        self.dest = os.fspath(dest)
        self.column, self.on_violation = column, on_violation
        self.quarantine = f"{self.dest.rstrip('/')}_bad_rows" if quarantine is None else os.fspath(quarantine)
        self.evolve, self.on_drift, self.options = evolve, on_drift, options
        self.stream = stream
        self.metrics: list[dict[str, Any]] = []
        self._rules()  # checks on_violation

    def _rules(self) -> ContractCheck:
        rules = ContractCheck.of(self.contract, self.on_violation)
        assert rules is not None
        return rules

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Check a micro-batch and write it.

        Parameters
        ----------
        batch
            The rows.
        number
            The number of the micro-batch.

        Raises
        ------
        ContractError
            For rows that break the contract if `on_violation` is ``"fail"``.
        """
        batch = batch.persist()
        try:
            drift = self._drift(*_figures(batch, self.column, self._rules(), profile=True), number)
            self.metrics = [*self.metrics, drift.to_dict()][-self._MAX_METRICS :]
            if drift and self.on_drift is not None:
                self.on_drift(drift)
            if drift.report.violations and self.on_violation == "fail":
                raise contract_error(drift.report)
            self._write(batch, drift, number)
        finally:
            batch.unpersist()

    def _drift(self, counts: ContractCounts, profile: Profile, number: int) -> BatchDrift:
        report = self._rules().report(f"batch {number}", counts)
        new_paths = {
            path: type_rules(path_profile.types)
            for path_profile in profile
            if (path := path_profile.path) not in self.contract.paths
            and not any(is_within(inner, path) for inner in self.contract.paths)
            and path.segments
        }
        added: tuple[VariantPath, ...] = ()
        fails = self.on_violation == "fail" and report.violations
        if self.evolve and new_paths and not fails:
            rules = self.contract.rules
            # The paths at which the contract allows new fields.
            added = tuple(
                path
                for path in new_paths
                if all(path.segments[len(o)] is WILDCARD or rules(o).extra_fields for o in outer_paths(path))
            )
            paths = {**self.contract.paths, **{path: new_paths[path] for path in added}}
            self.contract = replace(self.contract, paths=paths)
            if added and self._file is not None:
                self.contract.save(self._file)
        return BatchDrift(number, report, new_paths, added)

    def _write(self, batch: DataFrame, drift: BatchDrift, number: int) -> None:
        if self.on_violation == "quarantine" and drift.report.bad_rows:
            marked = _with_violations(batch, self.column, self._rules()).persist()
            try:
                self._append(marked.where(f"{VIOLATION_COLUMN} IS NOT NULL"), self.quarantine, number)
                good = marked.where(f"{VIOLATION_COLUMN} IS NULL").drop(VIOLATION_COLUMN)
                self._append(good, self.dest, number)
            finally:
                marked.unpersist()
        elif drift.report.rows:
            self._append(batch, self.dest, number)

    def _append(self, rows: DataFrame, table: str, number: int) -> None:
        """Append rows in one transaction, which is skipped if the table has it already."""
        if rows.isEmpty():
            return
        column, _ = choose_column(rows.drop(VIOLATION_COLUMN).schema, self.column)
        spark, stream = rows.sparkSession, self.stream
        spark.dataSource.register(VariantDataSource)
        make_active(spark)
        if stream is None and not is_connect(spark):
            stream = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        if stream is None:
            raise bad_option("the id of the streaming query is unknown: name the stream with stream=")
        options = {"format": "delta", "column": column, "txnAppId": stream, "txnVersion": number}
        writer = rows.write.format("variant").options(**options, **self.options).mode("append")
        with from_spark_errors():
            writer.save(absolute(table))
