"""`ContractCheck`: a contract and what to do with rows that break it, for every task of a job; the check of tapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, reduce
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.tapes import scalar_objects
from parquet_variant.errors import ContractError, VariantError, check_choice
from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.path_rules import RULES, PathRules, scalar_key
from parquet_variant.inference.contracts.report import ContractCounts, ContractReport, Example, RuleCount, ShownText
from parquet_variant.inference.contracts.rule_tables import RuleTables, choices_of
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, filled_binary, from_bytes, to_numpy
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.memory import KIND, copy_spans
from parquet_variant.kernels.tapes.check import FORBIDDEN, RESULT, check_nodes
from parquet_variant.kernels.tapes.profile import KINDS
from parquet_variant.kernels.tapes.tape import DROPPED, PATH, Tape, path_ids
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.choices import OnViolation
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types.path import VariantPath

# Violations that the message of an error names.
_NAMED = 5


@dataclass(frozen=True, eq=False)
class ContractCheck:
    """A contract, and whether rows that break it fail the job, are quarantined, or are written and counted (``warn``).

    It can be pickled. `values`: whether reports contain values of the data, at most `examples` per rule.
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
        self, tapes: Sequence[Tape], row_number: Callable[[int], int], *, file: str | None = None, unit: str = "row"
    ) -> tuple[ContractCounts, dict[int, str]]:
        """Return the counts of consecutive tapes, and the first rule that each bad row breaks as text, by row.

        `row_number`, `file` and `unit` name the rows in reports.
        """
        counts, reasons, first = ContractCounts(), dict[int, str](), 0
        for tape in tapes:
            violations = check_tape(tape, self.tables)
            numbers = partial(lambda first, row: row_number(first + row), first)
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


_NONE = -1
# Result of the kernel -> number of the rule in RULES.
_RULE_OF_RESULT = np.array(
    [RULES.index(name.lower()) if name.lower() in RULES else _NONE for name in RESULT._fields], np.int64
)
_NUMBERS = (KIND.FLOAT, KIND.DOUBLE, *range(KIND.INT8, KIND.INT64 + 1), *range(KIND.DECIMAL4, KIND.DECIMAL16 + 1))


@dataclass(frozen=True, eq=False)
class TapeViolations:
    """The violations in a tape: one entry per value and rule that it breaks."""

    tape: Tape  # It must still be valid when examples are read.
    tables: RuleTables
    rows: Int64s
    nodes: Int64s  # -1 for a missing value.
    numbers: Int64s  # The number of the path, in `tables`.
    rules: Int64s  # The number of the rule, in `RULES`.
    kinds: Int64s  # Number of values by path and kind.

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _of_single_rows(self) -> Mask:
        return self.rules != RULES.index("presence")

    @cached_property
    def bad_rows(self) -> Int64s:
        """The rows that break a rule of a single row, in order."""
        return np.unique(self.rows[self._of_single_rows])

    def reasons(self, *, values: bool = True) -> dict[int, str]:
        """Return for each bad row the first rule that it breaks, as text, with the value if `values` is true."""
        entries = np.flatnonzero(self._of_single_rows)
        rows, first = np.unique(self.rows[entries], return_index=True)
        entries = entries[first]
        shown = self._values(entries) if values else [None] * len(entries)
        return {
            row: self._reason(int(entry), value)
            for row, entry, value in zip(rows.tolist(), entries.tolist(), shown, strict=True)
        }

    def _reason(self, entry: int, value: Any) -> str:
        number, rule = int(self.numbers[entry]), RULES[int(self.rules[entry])]
        expected = f"{self.tables.paths[number].shorthand} {rule}: expected "
        expected += self.tables.contract.rules(self.tables.paths[number]).describe(rule)
        return expected if value is None else f"{expected}, found {str(Example(0, value)).partition(': ')[2]}"

    def counts(
        self,
        row_number: Callable[[int], int] | None = None,
        *,
        file: str | None = None,
        unit: str = "row",
        examples: int = 5,
        values: bool = True,
    ) -> ContractCounts:
        """Return the counts by path and rule; the parameters are those of `ContractCheck`."""
        broken: dict[tuple[VariantPath, str], RuleCount] = {}
        keys = self.numbers * len(RULES) + self.rules
        for key in np.unique(keys).tolist():
            entries = np.flatnonzero(keys == key)
            entries = entries[np.argsort(self.rows[entries], kind="stable")]
            first = entries[:examples]
            shown = self._values(first) if values else [None] * len(first)
            broken_examples = tuple(
                Example(row if row_number is None else row_number(row), value, file, unit)
                for row, value in zip(self.rows[first].tolist(), shown, strict=True)
            )
            place = self.tables.paths[key // len(RULES)], RULES[key % len(RULES)]
            broken[place] = RuleCount(len(entries), len(np.unique(self.rows[entries])), broken_examples)
        places = {
            self.tables.paths[number]: _places(self.tape, self.tables, self.kinds, number)
            for number, rule in self.tables.required()
            if rule == "presence"
        }
        return ContractCounts(self.tape.rows, len(self.bad_rows), broken, places)

    def _values(self, entries: Int64s) -> list[Any]:
        """Return what to show for entries: the value, the name of an extra field, or None for a missing value."""
        nodes = self.nodes[entries]
        present = np.flatnonzero(nodes >= 0)
        shown: list[Any] = [None] * len(entries)
        rows = self.tape.nodes[nodes[present]]
        path_numbers = path_ids(rows[:, 0]).tolist()
        for place, node, path, value in zip(present.tolist(), rows, path_numbers, scalar_objects(rows), strict=True):
            kind = int(node[0]) & 0xFF
            if RULES[int(self.rules[entries[place]])] == "extra_fields":
                key = self.tape.paths[path, PATH.KEY]
                shown[place] = self.tape.key_list[key].decode("utf-8", "replace")
            elif kind >= KIND.ARRAY:
                count = int(node[1])
                of_array = f"an array of {count} element{'' if count == 1 else 's'}"
                # Columns may have been left out, so that the number of fields is unknown.
                shown[place] = ShownText(of_array if kind == KIND.ARRAY else "an object")
            else:
                shown[place] = ShownText("null") if value is None else value
        return shown


def check_tape(tape: Tape, tables: RuleTables) -> TapeViolations:
    """Return the violations in a tape."""
    rule_of_path = tables.rule_of_path(tape)
    kinds = np.zeros((len(tables.paths), KINDS), np.int64)
    violations = adopt(
        *check_nodes(tape.nodes, tape.row_start, rule_of_path, tables.rules, tables.bounds, tables.choices, kinds)
    )
    rows, nodes, results = violations[:, 0], violations[:, 1], violations[:, 2]
    numbers = rule_of_path[path_ids(tape.nodes[nodes, 0])]
    if (forbidden := numbers == FORBIDDEN).any():
        of_forbidden = path_ids(tape.nodes[nodes[forbidden], 0])
        numbers[forbidden] = rule_of_path[tape.paths[of_forbidden, PATH.PARENT]]
    decided = results != RESULT.UNDECIDED
    parts = [(rows[decided], nodes[decided], numbers[decided], _RULE_OF_RESULT[results[decided]])]
    if not decided.all():
        rows, nodes, numbers = rows[~decided], nodes[~decided], numbers[~decided]
        for number in np.unique(numbers).tolist():
            at = np.flatnonzero(numbers == number)
            for rule, broken in _undecided(tape.nodes[nodes[at]], tables.contract.rules(tables.paths[number])):
                bad = at[broken]
                rule_numbers = np.full(len(bad), RULES.index(rule))
                parts.append((rows[bad], nodes[bad], numbers[bad], rule_numbers))
    parts += _missing(tape, tables, rule_of_path, kinds)
    rows, nodes, numbers, rules = (np.concatenate(column) for column in zip(*parts, strict=True))
    return TapeViolations(tape, tables, rows, nodes, numbers, rules, kinds)


def _undecided(nodes: Int64s, rules: PathRules) -> list[tuple[str, Mask]]:
    """Return for each rule that depends on the value, which nodes break it."""
    kinds = nodes[:, 0] & 0xFF
    broken_rules: list[tuple[str, Mask]] = []
    is_string = kinds == KIND.STRING
    if rules.pattern is not None and is_string.any():
        broken = np.zeros(len(nodes), np.bool_)
        texts = _strings(nodes[is_string]).dictionary_encode()
        matches = to_numpy(pc.match_substring_regex(texts.dictionary, rules.pattern))
        broken[is_string] = ~matches[to_numpy(texts.indices)]
        broken_rules.append(("pattern", broken))
    if rules.values is not None:
        broken = _other_values(nodes, kinds, rules.values)
        if choices_of(rules):
            broken &= ~is_string  # The kernel has decided strings.
        broken_rules.append(("values", broken))
    wide = (kinds == KIND.DECIMAL16) | (kinds == KIND.FLOAT) | ((kinds != KIND.STRING) & (nodes[:, 0] >> 8 & 0xFF > 18))
    if wide.any():
        broken_rules += _wide_numbers(nodes, wide, rules)
    return broken_rules


def _strings(nodes: Int64s) -> pa.StringArray:
    sizes = nodes[:, 2].copy()
    return filled_binary(sizes, partial(copy_spans, nodes[:, 1].copy(), sizes), arrow_type=pa.large_binary()).cast(
        pa.large_string()
    )


def _other_values(nodes: Int64s, kinds: Int64s, values: tuple[Any, ...]) -> Mask:
    """Return which nodes have none of the values."""
    broken = np.zeros(len(nodes), np.bool_)
    texts = [value for value in values if isinstance(value, str)]
    integers = np.array([value for value in values if type(value) is int and -(2**63) <= value < 2**63], np.int64)
    is_string = kinds == KIND.STRING
    if is_string.any():
        allowed = from_bytes([text.encode() for text in texts], pa.large_binary())
        is_allowed = pc.is_in(_strings(nodes[is_string]).cast(pa.large_binary()), value_set=allowed)
        broken[is_string] = ~to_numpy(is_allowed)
    is_integer = (kinds >= KIND.INT8) & (kinds <= KIND.INT64)
    broken[is_integer] = ~np.isin(nodes[is_integer, 1], integers)
    remaining = np.flatnonzero(~is_string & ~is_integer)
    keys = {scalar_key(value) for value in values}
    is_container = kinds[remaining] >= KIND.ARRAY
    scalars = scalar_objects(nodes[remaining])
    broken[remaining] = [
        bool(container) or scalar_key(value) not in keys
        for container, value in zip(is_container.tolist(), scalars, strict=True)
    ]
    return broken


def _wide_numbers(nodes: Int64s, wide: Mask, rules: PathRules) -> list[tuple[str, Mask]]:
    """Return the violations of numbers that the kernel does not compare, as Python's decimals."""
    at = np.flatnonzero(wide & np.isin(nodes[:, 0] & 0xFF, _NUMBERS))
    broken = {name: np.zeros(len(nodes), np.bool_) for name in ("type", "min", "max")}
    for place, value in zip(at.tolist(), scalar_objects(nodes[at]), strict=True):
        # Doubles are compared with the double nearest to the bound, decimals exactly.
        number, bounds = Decimal(value), [b if isinstance(b, int | Decimal) else None for b in (rules.min, rules.max)]
        if not isinstance(value, Decimal):
            bounds = [None if bound is None else Decimal(float(bound)) for bound in bounds]
        low, high = bounds
        if rules.whole_numbers and (not number.is_finite() or number != number.to_integral_value()):
            broken["type"][place] = True
        elif low is not None and not number >= low:
            broken["min"][place] = True
        elif high is not None and not number <= high:
            broken["max"][place] = True
    return list(broken.items())


def _places(tape: Tape, tables: RuleTables, kinds: Int64s, number: int) -> int:
    """Return the number of places for a value of a path: rows, or the objects above."""
    parent = tables.parents[number]
    return tape.rows if parent < 0 else int(kinds[parent, KIND.OBJECT])


def _missing(
    tape: Tape, tables: RuleTables, rule_of_path: Int64s, kinds: Int64s
) -> list[tuple[Int64s, Int64s, Int64s, Int64s]]:
    """Return the places without a value, of the paths that must have one."""
    parts = []
    rule_of_node: Int64s | None = None
    for number, rule in tables.required():
        count = _places(tape, tables, kinds, number) - int(kinds[number].sum())
        if not count:
            continue
        parent = tables.parents[number]
        if parent < 0:
            rows = np.flatnonzero(tape.row_start[1:] == tape.row_start[:-1])
        else:
            if rule_of_node is None:
                rule_of_node = rule_of_path[path_ids(tape.nodes[:, 0])]
                # Repeated fields, and what is inside of them, have no rules.
                for node in np.flatnonzero(tape.nodes[:, 0] & DROPPED).tolist():
                    rule_of_node[node : tape.nodes[node, 3]] = _NONE
            objects = np.flatnonzero((rule_of_node == parent) & (tape.nodes[:, 0] & 0xFF == KIND.OBJECT))
            fields = np.flatnonzero(rule_of_node == number)
            lacks = np.ones(len(objects), np.bool_)
            # The nodes of a path are never inside each other, so the last object before a field contains it.
            lacks[np.searchsorted(objects, fields) - 1] = False
            rows = np.searchsorted(tape.row_start, objects[lacks], "right") - 1
        rule_numbers = np.full(len(rows), RULES.index(rule))
        parts.append((rows, np.full(len(rows), _NONE), np.full(len(rows), number), rule_numbers))
    return parts
