"""`RuleTables`: a contract in the form of the kernel that checks tapes.

Owns the arrays, and which rule applies to which path of a tape. `path_rules` has the meaning of the rules,
`kernels.tapes.check` their evaluation, and `tape_check` what the kernel does not decide.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.path_rules import FORMATS, PathRules, order_of
from parquet_variant.kernels.arrow_buffers import Int64s
from parquet_variant.kernels.memory import KIND, address_of
from parquet_variant.kernels.tapes.check import (
    BOUNDS,
    DAYS,
    DOUBLES,
    FORBIDDEN,
    ITEMS,
    MICROS,
    NANOS,
    NO_RULES,
    RULE,
    SCALES,
)
from parquet_variant.kernels.tapes.tape import PATH, Tape
from parquet_variant.types import TYPES
from parquet_variant.types.path import WILDCARD, VariantPath, outer_paths

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_ALL_KINDS = _LARGEST
# Strings that the kernel compares one by one.
_MAX_CHOICES = 64


@dataclass(frozen=True, eq=False)
class RuleTables:
    """The rules of a contract by number, parents first; the number 0 is ``$``."""

    contract: Contract
    paths: tuple[VariantPath, ...]  # The paths with rules, and the paths that lead to them.
    parents: tuple[int, ...]  # -1 for ``$``.
    # The tables of the kernel, and the bytes to which `choices` points.
    rules: Int64s
    bounds: Int64s
    choices: Int64s
    texts: npt.NDArray[np.uint8]
    _children: tuple[dict[bytes | None, int], ...]

    @classmethod
    def of(cls, contract: Contract) -> RuleTables:
        """Return the tables of a contract."""
        numbers: dict[VariantPath, int] = {VariantPath(): 0}
        for path in contract.paths:
            for outer in [*outer_paths(path), path]:
                numbers.setdefault(outer, len(numbers))
        paths = tuple(numbers)
        children: list[dict[bytes | None, int]] = [{} for _ in paths]
        parents = [-1]
        for number, path in enumerate(paths[1:], 1):
            parents.append(numbers[path.parent])
            segment = path.segments[-1]
            children[parents[number]][None if segment is WILDCARD else str(segment).encode()] = number
        rules = np.array([_row(contract.rules(path)) for path in paths], np.int64)
        bounds = np.array([_bounds(contract.rules(path)) for path in paths], np.int64)
        texts, choices = bytearray(), list[tuple[int, int]]()
        for number, path in enumerate(paths):
            strings = choices_of(contract.rules(path))
            rules[number, RULE.CHOICES], rules[number, RULE.CHOICES_END] = len(choices), len(choices) + len(strings)
            for text in strings:
                choices.append((len(texts), len(text)))
                texts += text
        buffer = np.frombuffer(bytes(texts) or b"\0", np.uint8).copy()
        table = np.array(choices or [(0, 0)], np.int64)
        table[:, 0] += address_of(buffer)
        return cls(contract, paths, tuple(parents), rules, bounds, table, buffer, tuple(children))

    def __reduce__(self) -> tuple[object, ...]:
        return RuleTables.of, (self.contract,)

    def required(self) -> Iterator[tuple[int, str]]:
        """Yield the number of each path whose absence breaks a rule, and the rule."""
        for number, path in enumerate(self.paths):
            rules = self.contract.rules(path)
            if rules.required:
                yield number, "required"
            elif rules.presence is not None:
                yield number, "presence"

    def rule_of_path(self, tape: Tape) -> Int64s:
        """Return the number of the rules of each path of a tape, `NO_RULES` or `FORBIDDEN`."""
        parents, keys = tape.paths[:, PATH.PARENT].tolist(), tape.paths[:, PATH.KEY].tolist()
        closed = [not self.contract.rules(path).extra_fields for path in self.paths]
        numbers = [NO_RULES] * len(parents)
        numbers[0] = 0
        for path in range(1, len(parents)):
            parent = numbers[parents[path]]
            if parent < 0:
                continue
            key = keys[path]
            child = self._children[parent].get(None if key < 0 else tape.key_list[key])
            if child is not None:
                numbers[path] = child
            elif closed[parent] and key >= 0:
                numbers[path] = FORBIDDEN
        return np.array(numbers, np.int64)


def choices_of(rules: PathRules) -> list[bytes]:
    """Return the allowed strings if they are few, so that the kernel compares them; else none."""
    strings = [value.encode() for value in rules.values or () if isinstance(value, str)]
    return strings if len(strings) <= _MAX_CHOICES else []


def _row(rules: PathRules) -> list[int]:
    """Return the columns of `RULE` for the rules of a path."""
    row = [0] * len(RULE)
    row[RULE.KINDS] = _ALL_KINDS if rules.kinds is None else sum(1 << kind for kind in _kinds(rules))
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


def _kinds(rules: PathRules) -> Iterator[int]:
    for variant_type in rules.kinds or ():
        yield from map(int, TYPES[variant_type].ids)
    if "array" in rules.types:
        yield KIND.ARRAY
    if "object" in rules.types:
        yield KIND.OBJECT


def _bounds(rules: PathRules) -> list[int]:
    """Return the lower bounds of values, then the upper bounds, in the order of the kernel's columns."""
    lower, upper = [_SMALLEST] * BOUNDS, [_LARGEST] * BOUNDS
    for bound, bounds, rounded, side in ((rules.min, lower, math.ceil, -1), (rules.max, upper, math.floor, 1)):
        if isinstance(bound, dt.date):
            micros = order_of(bound)
            bounds[DAYS] = -(-micros // MICROS_PER_DAY) if side < 0 else micros // MICROS_PER_DAY
            bounds[MICROS], bounds[NANOS] = micros, _clipped(micros * 1000)
        elif bound is not None:
            bounds[:SCALES] = [_clipped(rounded(_shifted(Decimal(bound), scale))) for scale in range(SCALES)]
            bounds[DOUBLES] = _double_bound(bound, side)
    lower[ITEMS] = rules.min_items or 0
    upper[ITEMS] = _LARGEST if rules.max_items is None else rules.max_items
    return lower + upper


def _shifted(value: Decimal, scale: int) -> Decimal:
    """Return a decimal times a power of ten, without rounding."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return Decimal((sign, digits, exponent + scale))


def _double_bound(bound: Any, side: int) -> int:
    """Return the double nearest to a bound as a number with the order of doubles; `side` is 1 for a maximum."""
    value = float(bound)
    if value == 0:
        value = 0.0 if side > 0 else -0.0
    bits = int(np.float64(value).view(np.int64))
    return bits ^ ((bits >> 63) & _LARGEST)


def _clipped(value: int) -> int:
    return max(_SMALLEST, min(_LARGEST, value))
