"""`ContractCheck`: a contract and what to do with rows that break it, for every task of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, get_args

from parquet_variant.contracts.contract import Contract
from parquet_variant.contracts.report import ContractCounts, ContractReport
from parquet_variant.contracts.rule_tables import RuleTables
from parquet_variant.contracts.tape_check import check_tape
from parquet_variant.errors import ContractError, VariantError, check_choice
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.support.choices import OnViolation

# Violations that the message of an error names.
_NAMED = 5


@dataclass(frozen=True, eq=False)
class ContractCheck:
    """A contract, and what to do with rows that break it. It can be pickled.

    Parameters
    ----------
    tables
        The rules.
    on_violation
        ``"fail"``: the job fails before it commits. ``"quarantine"``: the rows are written to the bad records.
        ``"warn"``: they are written and counted.
    values
        Whether reports contain values of the data.
    examples
        Number of examples per rule.
    """

    tables: RuleTables
    on_violation: OnViolation = "fail"
    values: bool = True
    examples: int = 5

    @classmethod
    def of(cls, contract: Any, on_violation: OnViolation = "fail") -> ContractCheck | None:
        """Return the check of a contract in any form that `Contract.of` accepts; None without a contract."""
        check_choice("on_violation", on_violation, get_args(OnViolation))
        return None if contract is None else cls(RuleTables.of(Contract.of(contract)), on_violation)

    @property
    def contract(self) -> Contract:
        """The contract."""
        return self.tables.contract

    def check(
        self,
        tapes: Sequence[Tape],
        row_number: Callable[[int], int],
        *,
        file: str | None = None,
        unit: str = "row",
    ) -> tuple[ContractCounts, dict[int, str]]:
        """Check the rows of consecutive tapes.

        Returns the counts, and the first rule that each bad row breaks as text, by row.

        `row_number`: returns the number of a row for reports.
        `file`, `unit`: the file and the unit of the rows, for reports.
        """
        counts, reasons, first = ContractCounts(), dict[int, str](), 0
        for tape in tapes:
            violations = check_tape(tape, self.tables)
            numbers = _shifted(row_number, first)
            counts = counts.merge(
                violations.counts(numbers, file=file, unit=unit, examples=self.examples, values=self.values),
                self.examples,
            )
            if self.on_violation == "quarantine" and len(violations):
                reasons |= {first + row: reason for row, reason in violations.reasons(values=self.values).items()}
            first += tape.rows
        return counts, reasons

    def merge(self, parts: Sequence[ContractCounts]) -> ContractCounts:
        """Return the counts of all parts."""
        return reduce(lambda total, part: total.merge(part, self.examples), parts, ContractCounts())

    def report(self, source: str, counts: ContractCounts) -> ContractReport:
        """Return the report of all rows of a job."""
        return ContractReport(source, counts.rows, counts.bad_rows, counts.violations(self.contract))

    def raise_for(self, report: ContractReport) -> None:
        """Raise `ContractError` if the violations have to end the job: a broken presence cannot be quarantined."""
        violations = report.violations
        if self.on_violation == "quarantine":
            violations = tuple(violation for violation in violations if violation.rule == "presence")
        if self.on_violation != "warn" and violations:
            raise contract_error(ContractReport(report.source, report.rows, report.bad_rows, violations))


def contract_error(report: ContractReport) -> VariantError:
    """Return the error for data that breaks a contract; its `report` has all violations."""
    shown = [
        f"{violation}{f' (first: {violation.examples[0]})' if violation.examples else ''}"
        for violation in report.violations[:_NAMED]
    ]
    more = len(report.violations) - len(shown)
    error = ContractError(
        f"{report.bad_rows:,} of {report.rows:,} rows break the contract: {'; '.join(shown)}"
        f"{f'; and {more} more rules' if more else ''}: fix the data, or write with on_violation='quarantine' or 'warn'"
    )
    error.report = report
    return error


def _shifted(row_number: Callable[[int], int], first: int) -> Callable[[int], int]:
    return lambda row: row_number(first + row)
