"""`ContractCheck`: a contract and what to do with rows that break it, for every task of a job; the check of tapes.

Owns the contract in the form of the kernel that checks tapes, which rule applies to which path of a tape, and what the
kernel does not decide. `path_rules` has the meaning of the rules, `kernels.tapes.check` their evaluation.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial, reduce
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.tapes import scalar_objects
from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.errors import ContractError, VariantError, check_choice
from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.path_rules import FORMATS, RULES, PathRules, order_of, scalar_key
from parquet_variant.inference.contracts.path_rules import TYPES as CONTRACT_TYPES
from parquet_variant.inference.contracts.report import ContractCounts, ContractReport, Example, RuleCount, ShownText
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, filled_binary, from_bytes, to_numpy
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.memory import KIND, address_of, copy_spans
from parquet_variant.kernels.tapes import check as kernel
from parquet_variant.kernels.tapes.check import FORBIDDEN, NO_RULES, RESULT, RULE, SCALES
from parquet_variant.kernels.tapes.profile import KINDS
from parquet_variant.kernels.tapes.tape import DROPPED, PATH, Tape, path_ids
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import OnViolation
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types import TYPES
from parquet_variant.types.path import WILDCARD, VariantPath, outer_paths

# Violations that the message of an error names.
_NAMED = 5
_NONE = -1
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# Strings that the kernel compares one by one.
_MAX_CHOICES = 64
# Result of the kernel -> number of the rule in RULES.
_RULE_OF_RESULT = np.array(
    [RULES.index(name.lower()) if name.lower() in RULES else _NONE for name in RESULT._fields], np.int64
)
_NUMBERS = (KIND.FLOAT, KIND.DOUBLE, *range(KIND.INT8, KIND.INT64 + 1), *range(KIND.DECIMAL4, KIND.DECIMAL16 + 1))


class ContractCheck(Record, eq=False):
    """A contract, and whether rows that break it fail the job, are quarantined, or are written and counted (``warn``).

    It can be pickled. `values`: whether reports contain values of the data, at most `examples` per rule.
    """

    contract: Contract
    on_violation: OnViolation = "fail"
    values: bool = True
    examples: int = 5

    @classmethod
    def of(cls, contract: Any, on_violation: OnViolation = "fail") -> ContractCheck | None:
        """Return the check of a contract in any form that `Contract.of` accepts; None without a contract."""
        check_choice("on_violation", on_violation, get_args(OnViolation))
        return None if contract is None else cls(Contract.of(contract), on_violation)

    @cached_property
    def _tables(self) -> _RuleTables:
        return _RuleTables(self.contract)

    def check(
        self, tapes: Iterable[Tape], row_number: Callable[[int], int], *, file: str | None = None, unit: str = "row"
    ) -> tuple[ContractCounts, dict[int, str]]:
        """Return the counts of consecutive tapes, and the first rule that each bad row breaks as text, by row.

        `row_number`, `file` and `unit` name the rows in reports.
        """
        counts, reasons, first = ContractCounts(), dict[int, str](), 0
        for tape in tapes:
            violations = self.violations(tape)
            numbers = partial(lambda first, row: row_number(first + row), first)
            counts = counts.merge(violations.counts(numbers, file=file, unit=unit), self.examples)
            if self.on_violation == "quarantine" and len(violations.rows):
                reasons |= {first + row: reason for row, reason in violations.reasons().items()}
            first += tape.rows
        return counts, reasons

    def violations(self, tape: Tape) -> TapeViolations:
        """Return the violations in a tape."""
        tables = self._tables
        rule_of_path = tables.rule_of_path(tape)
        kinds = np.zeros((len(tables.paths), KINDS), np.int64)
        violating_rows = adopt(
            *kernel.check_nodes(
                tape.nodes, tape.row_start, rule_of_path, tables.rules, tables.bounds, tables.choices, kinds
            )
        )
        rows, nodes, results = violating_rows[:, 0], violating_rows[:, 1], violating_rows[:, 2]
        numbers = rule_of_path[path_ids(tape.nodes[nodes, 0])]
        if (forbidden := numbers == FORBIDDEN).any():
            of_forbidden = path_ids(tape.nodes[nodes[forbidden], 0])
            numbers[forbidden] = rule_of_path[tape.paths[of_forbidden, PATH.PARENT]]
        decided = results != RESULT.UNDECIDED
        parts = [(rows[decided], nodes[decided], numbers[decided], _RULE_OF_RESULT[results[decided]])]
        rows, nodes, numbers = rows[~decided], nodes[~decided], numbers[~decided]
        for number in np.unique(numbers).tolist():
            at = np.flatnonzero(numbers == number)
            for rule, broken in _undecided(tape.nodes[nodes[at]], tables.of_path[number]):
                bad = at[broken]
                parts.append((rows[bad], nodes[bad], numbers[bad], np.full(len(bad), RULES.index(rule))))
        # The places for a value: rows, or the objects above.
        places = {
            number: int(kinds[tables.parents[number], KIND.OBJECT]) if number else tape.rows
            for number, _ in tables.required
        }
        parts += _missing(tape, tables, rule_of_path, places, kinds)
        rows, nodes, numbers, rules = (np.concatenate(column) for column in zip(*parts, strict=True))
        of_presence = {tables.paths[number]: places[number] for number, rule in tables.required if rule == "presence"}
        return TapeViolations(self, tape, rows, nodes, numbers, rules, of_presence)

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


class TapeViolations(Record, eq=False):
    """The violations in a tape: one entry per value and rule that it breaks."""

    check: ContractCheck
    tape: Tape  # It must still be valid when examples are read.
    rows: Int64s
    nodes: Int64s  # -1 for a missing value.
    numbers: Int64s  # The number of the path.
    rules: Int64s  # The number of the rule, in `RULES`.
    places: dict[VariantPath, int]  # Places for a value, of the paths with a smallest presence.

    @cached_property
    def bad_rows(self) -> Int64s:
        """The rows that break a rule of a single row, in order."""
        return np.unique(self.rows[self.rules != RULES.index("presence")])

    def reasons(self) -> dict[int, str]:
        """Return for each bad row the first rule that it breaks, as text, with the value if values are shown."""
        entries = np.flatnonzero(self.rules != RULES.index("presence"))
        rows, first = np.unique(self.rows[entries], return_index=True)
        entries, reasons = entries[first], {}
        for row, entry, value in zip(rows.tolist(), entries.tolist(), self._values(entries), strict=True):
            path, rule = self.check._tables.paths[self.numbers[entry]], RULES[self.rules[entry]]
            reasons[row] = f"{path.shorthand} {rule}: expected {self.check.contract.rules(path).describe(rule)}"
            if value is not None:
                reasons[row] += f", found {str(Example(0, value)).partition(': ')[2]}"
        return reasons

    def counts(
        self, row_number: Callable[[int], int] | None = None, *, file: str | None = None, unit: str = "row"
    ) -> ContractCounts:
        """Return the counts by path and rule; the parameters are those of `ContractCheck.check`."""
        broken: dict[tuple[VariantPath, str], RuleCount] = {}
        keys = self.numbers * len(RULES) + self.rules
        for key in np.unique(keys).tolist():
            entries = np.flatnonzero(keys == key)
            entries = entries[np.argsort(self.rows[entries], kind="stable")]
            first = entries[: self.check.examples]
            examples = tuple(
                Example(row if row_number is None else row_number(row), value, file, unit)
                for row, value in zip(self.rows[first].tolist(), self._values(first), strict=True)
            )
            place = self.check._tables.paths[key // len(RULES)], RULES[key % len(RULES)]
            broken[place] = RuleCount(len(entries), len(np.unique(self.rows[entries])), examples)
        return ContractCounts(self.tape.rows, len(self.bad_rows), broken, self.places)

    def _values(self, entries: Int64s) -> list[Any]:
        """Return what to show for entries: the value, the name of an extra field, or None for a missing value."""
        shown: list[Any] = [None] * len(entries)
        if not self.check.values:
            return shown
        nodes = self.nodes[entries]
        present = np.flatnonzero(nodes >= 0)
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


def _undecided(nodes: Int64s, rules: PathRules) -> list[tuple[str, Mask]]:
    """Return for each rule that depends on the value, which nodes break it."""
    kinds = nodes[:, 0] & 0xFF
    broken_rules: list[tuple[str, Mask]] = []
    is_string = kinds == KIND.STRING
    if rules.pattern is not None and is_string.any():
        broken = np.zeros(len(nodes), np.bool_)
        encoded = _strings(nodes[is_string]).dictionary_encode()
        matches = to_numpy(pc.match_substring_regex(encoded.dictionary, rules.pattern))
        broken[is_string] = ~matches[to_numpy(encoded.indices)]
        broken_rules.append(("pattern", broken))
    if rules.values is not None:
        broken = np.zeros(len(nodes), np.bool_)
        if is_string.any() and not choices_of(rules):  # otherwise the kernel has decided strings
            strings = [value.encode() for value in rules.values if isinstance(value, str)]
            allowed = from_bytes(strings, pa.large_binary())
            is_allowed = pc.is_in(_strings(nodes[is_string]).cast(pa.large_binary()), value_set=allowed)
            broken[is_string] = ~to_numpy(is_allowed)
        integers = [value for value in rules.values if type(value) is int and _SMALLEST <= value <= _LARGEST]
        is_integer = (kinds >= KIND.INT8) & (kinds <= KIND.INT64)
        broken[is_integer] = ~np.isin(nodes[is_integer, 1], np.array(integers, np.int64))
        keys, remaining = set(map(scalar_key, rules.values)), np.flatnonzero(~is_string & ~is_integer)
        is_container = kinds[remaining] >= KIND.ARRAY
        broken[remaining] = [
            bool(container) or scalar_key(value) not in keys
            for container, value in zip(is_container.tolist(), scalar_objects(nodes[remaining]), strict=True)
        ]
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


def _missing(
    tape: Tape, tables: _RuleTables, rule_of_path: Int64s, places: dict[int, int], kinds: Int64s
) -> list[tuple[Int64s, Int64s, Int64s, Int64s]]:
    """Return the places without a value, of the paths that must have one."""
    parts = []
    rule_of_node: Int64s | None = None
    for number, rule in tables.required:
        if places[number] == int(kinds[number].sum()):
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
            values = np.flatnonzero(rule_of_node == number)
            lacks = np.ones(len(objects), np.bool_)
            # The nodes of a path are never inside each other, so the last object before a field contains it.
            lacks[np.searchsorted(objects, values) - 1] = False
            rows = np.searchsorted(tape.row_start, objects[lacks], "right") - 1
        rule_numbers = np.full(len(rows), RULES.index(rule))
        parts.append((rows, np.full(len(rows), _NONE), np.full(len(rows), number), rule_numbers))
    return parts


class _RuleTables:
    """The rules of a contract by number, parents first; the number 0 is ``$``."""

    def __init__(self, contract: Contract) -> None:
        numbers: dict[VariantPath, int] = {VariantPath(): 0}
        for path in contract.paths:
            for outer in [*outer_paths(path), path]:
                numbers.setdefault(outer, len(numbers))
        self.paths = list(numbers)  # The paths with rules, and the paths that lead to them.
        self.parents = [numbers[path.parent] if path.segments else -1 for path in self.paths]
        self.of_path = [contract.rules(path) for path in self.paths]
        self._children: dict[tuple[int, bytes | None], int] = {}
        for path, parent, number in zip(self.paths[1:], self.parents[1:], range(1, len(numbers)), strict=True):
            segment = path.segments[-1]
            self._children[parent, None if segment is WILDCARD else str(segment).encode()] = number
        # The number of each path whose absence breaks a rule, and the rule.
        self.required = [
            (number, "required" if rules.required else "presence")
            for number, rules in enumerate(self.of_path)
            if rules.required or rules.presence is not None
        ]
        # The tables of the kernel, and the bytes to which `choices` points.
        self.rules = np.array(list(map(_row, self.of_path)), np.int64)
        self.bounds = np.array(list(map(_bounds, self.of_path)), np.int64)
        data, choices = bytearray(), list[tuple[int, int]]()
        for number, rules in enumerate(self.of_path):
            strings = choices_of(rules)
            self.rules[number, RULE.CHOICES] = len(choices)
            self.rules[number, RULE.CHOICES_END] = len(choices) + len(strings)
            for text in strings:
                choices.append((len(data), len(text)))
                data += text
        self.choice_bytes = np.frombuffer(bytes(data) or b"\0", np.uint8).copy()
        self.choices = np.array(choices or [(0, 0)], np.int64)
        self.choices[:, 0] += address_of(self.choice_bytes)

    def rule_of_path(self, tape: Tape) -> Int64s:
        """Return the number of the rules of each path of a tape, `NO_RULES` or `FORBIDDEN`."""
        numbers = [0]
        for parent, key in tape.paths[1:, [PATH.PARENT, PATH.KEY]].tolist():
            above = numbers[parent]
            if above < 0:
                numbers.append(NO_RULES)
                continue
            otherwise = FORBIDDEN if key >= 0 and not self.of_path[above].extra_fields else NO_RULES
            numbers.append(self._children.get((above, None if key < 0 else tape.key_list[key]), otherwise))
        return np.array(numbers, np.int64)


def choices_of(rules: PathRules) -> list[bytes]:
    """Return the allowed strings if they are few, so that the kernel compares them; else none."""
    strings = [value.encode() for value in rules.values or () if isinstance(value, str)]
    return strings if len(strings) <= _MAX_CHOICES else []


def _row(rules: PathRules) -> list[int]:
    """Return the columns of `RULE` for the rules of a path."""
    row = [0] * len(RULE)
    kinds = {int(number) for name in rules.types for kind in CONTRACT_TYPES[name] for number in TYPES[kind].ids}
    kinds |= {number for name, number in (("array", KIND.ARRAY), ("object", KIND.OBJECT)) if name in rules.types}
    row[RULE.KINDS] = sum(1 << kind for kind in kinds) if rules.types else _LARGEST
    row[RULE.WHOLE] = rules.whole_numbers
    row[RULE.NULLABLE] = rules.allows_null
    bounded = [bound for bound in (rules.min, rules.max) if bound is not None]
    row[RULE.NUMBERS] = bool(bounded) and not any(isinstance(bound, dt.date) for bound in bounded)
    row[RULE.LENGTH_MIN] = rules.min_length or 0
    row[RULE.LENGTH_MAX] = _LARGEST if rules.max_length is None else rules.max_length
    row[RULE.FORM] = -1 if rules.format is None else FORMATS[rules.format]
    row[RULE.UNDECIDED_OTHERS] = rules.values is not None
    row[RULE.UNDECIDED_STRINGS] = rules.pattern is not None or (rules.values is not None and not choices_of(rules))
    return row


def _bounds(rules: PathRules) -> list[int]:
    """Return the lower bounds of values, then the upper bounds, in the order of the kernel's columns."""
    lower, upper = [_SMALLEST] * kernel.BOUNDS, [_LARGEST] * kernel.BOUNDS
    for bound, bounds, rounded, side in ((rules.min, lower, math.ceil, -1), (rules.max, upper, math.floor, 1)):
        if isinstance(bound, dt.date):
            micros = order_of(bound)
            bounds[kernel.DAYS] = -(-micros // MICROS_PER_DAY) if side < 0 else micros // MICROS_PER_DAY
            bounds[kernel.MICROS], bounds[kernel.NANOS] = micros, _clipped(micros * 1000)
        elif bound is not None:
            sign, digits, exponent = Decimal(bound).as_tuple()
            # Times powers of ten, without rounding.
            shifted = (Decimal((sign, digits, int(exponent) + scale)) for scale in range(SCALES))
            bounds[:SCALES] = [_clipped(rounded(value)) for value in shifted]
            # The nearest double as a number with the order of doubles, and the zero that is farther from the values.
            value = float(bound) or (0.0 if side > 0 else -0.0)
            bits = int(np.float64(value).view(np.int64))
            bounds[kernel.DOUBLES] = bits ^ ((bits >> 63) & _LARGEST)
    lower[kernel.ITEMS] = rules.min_items or 0
    upper[kernel.ITEMS] = _LARGEST if rules.max_items is None else rules.max_items
    return lower + upper


def _clipped(value: int) -> int:
    return max(_SMALLEST, min(_LARGEST, value))
