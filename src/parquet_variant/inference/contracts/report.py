"""`ContractReport`: the violations of a contract in some data.

Owns counts that merge, the violations that readers see, and the forms of the report (text, JSON, JUnit XML and GitHub
annotations). `contract_check` makes the counts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import field, replace
from decimal import Decimal
from typing import Any

from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.path_rules import RULES, repr_of
from parquet_variant.support.records import Record, Report, shortened
from parquet_variant.types.path import VariantPath

# Characters of a value in reports.
_SHOWN = 60


class ShownText(str):
    """What a report shows instead of a value, such as a number of fields; it is not quoted."""

    __slots__ = ()


class Example(Record):
    """A value that breaks a rule; None for a missing value, and if values are suppressed.

    `row` counts from 0, and from 1 if the `unit` is ``"line"``, or ``"element"`` of a JSON array, instead of ``"row"``.
    """

    row: int
    value: Any = None
    file: str | None = None
    unit: str = "row"

    def __str__(self) -> str:
        place = f"{self.unit} {self.row}{f' of {self.file}' if self.file else ''}"
        if self.value is None:
            return place
        text = shortened(str(self.value) if isinstance(self.value, ShownText) else repr_of(self.value), _SHOWN)
        return f"{place}: {text if text.isprintable() else repr(text)[1:-1]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the example in types that JSON can represent."""
        value = self.value
        if isinstance(value, Decimal):
            value = int(value) if value == value.to_integral_value() else float(value)
        elif isinstance(value, dt.date | dt.time):
            value = value.isoformat()
        elif not isinstance(value, str | int | float | bool | None):
            value = str(value)
        return {"row": self.row, "unit": self.unit, "file": self.file, "value": value}


class Violation(Record):
    """A rule that some values break.

    Parameters
    ----------
    path
        The path.
    rule
        The name of the rule, such as ``"type"`` or ``"required"``.
    expected
        What the rule expects.
    count
        Number of values that break it; for ``"required"`` and ``"presence"``, of places without a value.
    rows
        Number of rows with such a value.
    share
        `rows` as a share of all rows.
    examples
        The first such values.
    """

    path: VariantPath
    rule: str
    expected: str
    count: int
    rows: int
    share: float
    examples: tuple[Example, ...] = ()

    def __str__(self) -> str:
        plural = "" if self.count == 1 else "s"
        is_missing = self.rule in ("required", "presence")
        count = f"missing {self.count:,} time{plural}" if is_missing else f"{self.count:,} value{plural}"
        return f"{self.path.shorthand} {self.rule}: expected {self.expected}; {count} in {self.share:.2%} of rows"

    def to_dict(self) -> dict[str, Any]:
        """Return the violation in types that JSON can represent."""
        return vars(self) | {"path": self.path.shorthand, "examples": [one.to_dict() for one in self.examples]}


class RuleCount(Record):
    """How often a rule was broken."""

    count: int
    rows: int
    examples: tuple[Example, ...] = ()


class ContractCounts(Record):
    """The counts of some rows, which merge with those of other rows; `broken` has them by path and rule.

    `bad_rows`: rows that break a rule of a single row (every rule but ``"presence"``).
    `places`: number of places for a value, for the paths with a smallest presence.
    """

    rows: int = 0
    bad_rows: int = 0
    broken: dict[tuple[VariantPath, str], RuleCount] = field(default_factory=dict)
    places: dict[VariantPath, int] = field(default_factory=dict)

    def merge(self, other: ContractCounts, limit: int = 5) -> ContractCounts:
        """Return the counts of both parts of the data; `limit` is the number of examples per rule."""
        broken = dict(self.broken)
        for key, of in other.broken.items():
            first = broken.get(key, RuleCount(0, 0))
            examples = (*first.examples, *of.examples)[:limit]
            broken[key] = RuleCount(first.count + of.count, first.rows + of.rows, examples)
        places = {path: self.places.get(path, 0) + other.places.get(path, 0) for path in self.places | other.places}
        return ContractCounts(self.rows + other.rows, self.bad_rows + other.bad_rows, broken, places)

    def violations(self, contract: Contract) -> tuple[Violation, ...]:
        """Return the violations in the order of the contract."""
        violations = []
        for (path, rule), count in self.broken.items():
            rules = contract.rules(path)
            if rule == "presence" and 1 - count.count / max(self.places.get(path, 0), 1) >= (rules.presence or 0):
                continue
            share = count.rows / self.rows if self.rows else 0.0
            expected = rules.describe(rule)
            violations.append(Violation(path, rule, expected, count.count, count.rows, share, count.examples))
        order = {path: number for number, path in enumerate(contract.paths)}
        violations.sort(key=lambda violation: (order.get(violation.path, 0), RULES.index(violation.rule)))
        return tuple(violations)


class ContractReport(Report, Record):
    """The violations of a contract in some data. An empty report is true.

    Parameters
    ----------
    source
        The data, as it was named.
    rows
        Number of rows.
    bad_rows
        Number of rows that break a rule, of those that rows break alone (every rule but ``"presence"``).
    violations
        The violations, in the order of the contract.
    evidence
        Number of rules by how they were decided: ``"footers"``, ``"columns"`` or ``"values"``.
    bytes_read
        Bytes of data that were read, without footers and logs; None if unknown.

    Examples
    --------
    >>> report = ContractReport("orders.ndjson", 1000, 0, ())
    >>> bool(report), str(report)
    (True, 'orders.ndjson: 1,000 rows satisfy the contract')
    """

    source: str
    rows: int
    bad_rows: int
    violations: tuple[Violation, ...]
    evidence: dict[str, int] = field(default_factory=dict)
    bytes_read: int | None = None

    def __bool__(self) -> bool:
        return not self.violations

    def __repr__(self) -> str:
        return f"<ContractReport {next(self._lines())}>"

    def renamed(self, file: str, name: str) -> ContractReport:
        """Return the report with another name for a file, such as a copy of standard input."""
        violations = []
        for violation in self.violations:
            examples = (replace(one, file=name) if one.file == file else one for one in violation.examples)
            violations.append(replace(violation, examples=tuple(examples)))
        return replace(self, source=self.source.replace(file, name), violations=tuple(violations))

    def to_dict(self) -> dict[str, Any]:
        """Return the report in types that JSON can represent."""
        violations = [violation.to_dict() for violation in self.violations]
        return {"source": self.source, "ok": bool(self)} | vars(self) | {"violations": violations}

    def __str__(self) -> str:
        """Return the report as text."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if self:
            yield f"{self.source}: {self.rows:,} {'row satisfies' if self.rows == 1 else 'rows satisfy'} the contract"
        else:
            rules = f"{len(self.violations):,} {'rule is' if len(self.violations) == 1 else 'rules are'}"
            yield f"{self.source}: {rules} broken in {self.bad_rows:,} of {self.rows:,} rows"
        for violation in self.violations:
            yield f"  {violation}"
            yield from (f"    {example}" for example in violation.examples)
        if decided := [f"{count:,} by {source}" for source, count in self.evidence.items() if count]:
            yield f"rules decided: {', '.join(decided)}"

    def to_junit(self) -> str:
        """Return the report as JUnit XML: one test case per broken rule, or one that passes."""
        from xml.etree import ElementTree

        suite = ElementTree.Element(
            "testsuite",
            name=_xml_text(f"contract of {self.source}"),
            tests=str(max(len(self.violations), 1)),
            failures=str(len(self.violations)),
            errors="0",
        )
        for violation in self.violations:
            name = _xml_text(f"{violation.path.shorthand} {violation.rule}")
            case = ElementTree.SubElement(suite, "testcase", classname="contract", name=name)
            failure = ElementTree.SubElement(case, "failure", type=violation.rule, message=_xml_text(str(violation)))
            failure.text = _xml_text("\n".join(map(str, violation.examples)))
        if self:
            ElementTree.SubElement(suite, "testcase", classname="contract", name="all rules")
        suites = ElementTree.Element("testsuites")
        suites.append(suite)
        return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode")

    def to_github(self) -> str:
        """Return the report as workflow commands of GitHub Actions: one annotation per broken rule."""
        lines = []
        for violation in self.violations:
            first = violation.examples[0] if violation.examples else None
            place = ""
            if first is not None and first.file is not None:
                line = f",line={first.row}" if first.unit == "line" else ""
                place = f" file={_escaped(first.file, ':,')}{line}"
            title = _escaped(f"{violation.path.shorthand} {violation.rule}", ":,")
            message = "\n".join([str(violation), *map(str, violation.examples)])
            lines.append(f"::error{place}{',' if place else ' '}title={title}::{_escaped(message)}")
        return "\n".join(lines) if lines else f"::notice title=contract::{_escaped(next(self._lines()))}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(character):02X}" if character in f"%\r\n{more}" else character for character in text)


def _xml_text(text: str) -> str:
    """Return a text without the characters that XML does not allow."""
    return "".join(
        character if character in "\n\t" or (character >= " " and character not in "\ufffe\uffff") else "\ufffd"
        for character in text
    )
