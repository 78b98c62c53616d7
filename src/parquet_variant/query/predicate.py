"""Row predicates over extracted columns: the tree, its binding to column types, and its exact evaluation.

Owns the meaning of predicates: SQL's three-valued logic, NaN equal to itself and greater than every number (as in Spark
and DuckDB), and literals that are never rounded. Leaves reading text to `sql_pushdown`, and skipping by
statistics to `prune`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.cast.strings import zone_of
from parquet_variant.errors import PredicateError, VariantError
from parquet_variant.inference.statistics import order_key
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types.path import quoted

Operator = Literal["=", "<>", "<", "<=", ">", ">="]
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_BELOW_MICROSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})")
OPERATORS: tuple[Operator, ...] = ("=", "<>", "<", "<=", ">", ">=")
_TESTS: dict[type, tuple[Callable[[pa.DataType], bool], ...]] = {
    bool: (pa.types.is_boolean,),
    str: (pa.types.is_string, pa.types.is_large_string),
    bytes: (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary),
}
# The operators that change if the operands are exchanged.
FLIPPED: dict[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Compare(Record):
    """``column op literal``; unknown for null. After binding, the literal is an Arrow scalar."""

    column: str
    op: Operator
    literal: Any


class In(Record):
    """``column IN (values)``; unknown for null.

    Before binding, the values are Python values, and NULL may be among them. After it, `values` is a sorted list of
    different Arrow scalars, and `has_null` says whether the list had a NULL: then no answer is false.
    """

    column: str
    values: Any
    has_null: bool = False


class Like(Record):
    """``column LIKE pattern``; a backslash escapes ``%``, ``_`` and itself."""

    column: str
    pattern: str

    @property
    def prefix(self) -> str:
        """The string that every match starts with."""
        return self._parts()[0]

    @property
    def only_prefix(self) -> bool:
        """Whether every string with the prefix matches."""
        return self._parts()[1] == "%"

    def _parts(self) -> tuple[str, str]:
        text, index = "", 0
        while index < len(self.pattern) and self.pattern[index] not in "%_":
            index += self.pattern[index] == "\\"
            text += self.pattern[index : index + 1]
            index += 1
        return text, self.pattern[index:]


class IsNull(Record):
    """``column IS NULL``."""

    column: str


class Constant(Record):
    """One answer for every value of a column that is not null: a comparison whose result is the same for all values.

    The answer None means unknown, as in a comparison with NULL.
    """

    column: str
    answer: bool | None


class Not(Record):
    """``NOT part``."""

    part: Predicate


class And(Record):
    """True if all parts are true."""

    parts: tuple[Predicate, ...]


class Or(Record):
    """True if any part is true."""

    parts: tuple[Predicate, ...]


class Computed(Record):
    """A condition that an engine evaluates over columns; no row is skipped by it."""

    columns: tuple[str, ...]
    answers: Callable[[list[Any]], pa.BooleanArray]  # Returns for each row whether it is true.
    take_warnings: Callable[[], list[str]]  # Returns warnings about values not compared since the last call.


Predicate = Compare | In | Like | IsNull | Constant | Computed | Not | And | Or


def check_like(pattern: str, error: type[VariantError]) -> None:
    """Raise `error` unless each backslash of a LIKE pattern escapes ``%``, ``_`` or a backslash, as Spark requires."""
    tail = pattern
    while "\\" in tail:
        tail = tail.partition("\\")[2]
        if tail[:1] not in ("%", "_", "\\"):
            where = f"before {tail[0]!r}" if tail else "at the end"
            raise error(
                f"invalid LIKE pattern {pattern!r}: a backslash {where}; it escapes %, _ and itself, write it twice"
            )
        tail = tail[1:]


def joined(kind: type[And] | type[Or], parts: Iterable[Predicate]) -> Predicate:
    """Join predicates with AND or OR; a single one is returned unchanged."""
    parts = tuple(parts)
    return parts[0] if len(parts) == 1 else kind(parts)


def is_in(column: str, values: Iterable[object]) -> Predicate:
    """Return ``column IN (values)``; a NULL among the values makes the result unknown where no value matches."""
    values = tuple(values)
    if not values:
        raise PredicateError(f"{column} IN () has no values: write at least one")
    return Compare(column, "=", values[0]) if len(values) == 1 else In(column, values)


def all_of(conditions: Iterable[object]) -> Predicate:
    """Read tuples in pyarrow's form: ``[("mag", ">", 5), …]`` is AND; a list of such lists is OR.

    >>> all_of([("mag", ">", 5), ("place", "like", "x%")])
    And(parts=(Compare(column='mag', op='>', literal=5), Like(column='place', pattern='x%')))
    """
    conditions = list(conditions)
    if not conditions:
        raise PredicateError("the list of conditions is empty: omit the filter to read all rows")
    alternatives = [condition for condition in conditions if isinstance(condition, list)]
    if len(alternatives) == len(conditions):
        return Or(tuple(map(all_of, alternatives)))
    return joined(And, map(_condition, conditions))


def _python_value(value: Any) -> Any:
    """Return a scalar of NumPy or Arrow as a Python object, a time of NumPy as text."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    if isinstance(value, np.generic):
        return str(value) if isinstance(value, np.datetime64) else value.item()
    return value


def _condition(condition: object) -> Predicate:
    if isinstance(condition, (Compare, In, Like, IsNull, Constant, Computed, Not, And, Or)):
        return condition
    if not isinstance(condition, tuple) or len(condition) not in (2, 3):
        raise PredicateError(f"invalid condition {condition!r}: give (column, operator, value)")
    column, op, value = (*condition, None)[:3]
    op = " ".join(str(op).lower().split())
    op = {"==": "=", "!=": "<>"}.get(op, op)
    if op in OPERATORS:
        return Compare(column, op, _python_value(value))
    if op == "in":
        return is_in(column, map(_python_value, value))
    if op == "like":
        return Like(column, value)
    if op == "is null":
        return IsNull(column)
    if op in ("not in", "not like", "is not null"):
        return Not(_condition((column, op.replace("not ", ""), value)))
    raise PredicateError(f"unknown operator {op!r}: use {' '.join(OPERATORS)} in, like, is null (or not of them)")


def conditions_of(predicate: Predicate) -> list[Compare | In | Like | IsNull | Constant | Computed]:
    """Return the conditions that AND, OR and NOT combine."""
    if isinstance(predicate, (And, Or, Not)):
        parts = (predicate.part,) if isinstance(predicate, Not) else predicate.parts
        return [condition for part in parts for condition in conditions_of(part)]
    return [predicate]


def columns_of(predicate: Predicate, *, compared: bool = False) -> set[str]:
    """Return the columns that a predicate uses, or only those that it compares with values."""
    parts = [part for part in conditions_of(predicate) if not (compared and isinstance(part, IsNull))]
    return {name for part in parts for name in (part.columns if isinstance(part, Computed) else (part.column,))}


def predicate_text(
    predicate: Predicate, column: Callable[[str], str] = quoted, literal: Callable[[Any], str] | None = None
) -> str:
    r"""Return a predicate as text that a scan reads.

    `predicate`: a predicate that is not bound yet, so its literals are Python values.
    `column`: returns the text of a column name; by default the name in double quotes.
    `literal`: returns the text of a literal; by default as filters of scans have it.

    >>> predicate_text(And((Compare("a", ">", 5), Not(Or((Like("b", "x%"), IsNull("c")))))))
    '"a" > 5 and not ("b" like \'x%\' or "c" is null)'
    """
    literal = literal or _literal_text
    if isinstance(predicate, (And, Or)):
        parts = [predicate_text(part, column, literal) for part in predicate.parts]
        word = " and " if isinstance(predicate, And) else " or "
        return word.join(
            f"({text})" if isinstance(part, (And, Or)) else text
            for part, text in zip(predicate.parts, parts, strict=True)
        )
    if isinstance(predicate, Not):
        inner = predicate_text(predicate.part, column, literal)
        return f"not ({inner})" if isinstance(predicate.part, (And, Or)) else f"not {inner}"
    if isinstance(predicate, IsNull):
        return f"{column(predicate.column)} is null"
    if isinstance(predicate, Like):
        return f"{column(predicate.column)} like {literal(predicate.pattern)}"
    if isinstance(predicate, In):
        return f"{column(predicate.column)} in ({', '.join(map(literal, predicate.values))})"
    assert not isinstance(predicate, Constant | Computed), "only predicates that users write have a text"
    return f"{column(predicate.column)} {predicate.op} {literal(predicate.literal)}"


def _literal_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return f"{value}" if isinstance(value, (int, float, Decimal)) else "'" + str(value).replace("'", "''") + "'"


def renamed(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    """Return a predicate over columns with other names: `names` has the new name of each column that gets one."""
    if isinstance(predicate, (And, Or)):
        return type(predicate)(tuple(renamed(part, names) for part in predicate.parts))
    if isinstance(predicate, Not):
        return Not(renamed(predicate.part, names))
    if isinstance(predicate, Computed):
        return replace(predicate, columns=tuple(names.get(name, name) for name in predicate.columns))
    return replace(predicate, column=names.get(predicate.column, predicate.column))


def bind(predicate: Predicate, types: Mapping[str, pa.DataType | None], zone: str = "UTC") -> Predicate:
    """Return the predicate with each literal as a scalar of its column's type.

    A literal between two values of an exact column is replaced by the next value that means the same (``n > 5.5``
    becomes ``n >= 6``); a comparison with the same result for all values becomes a `Constant`. A float column is
    compared as double.

    `predicate`: a predicate with Python literals: bool, int, float, Decimal, str, bytes, date, datetime, time, UUID,
      None.
    `types`: the Arrow type of each column; None for a Variant, which allows only IS NULL.
    `zone`: the session time zone, which applies to literals without an offset that are compared with timestamps.
    Raises `PredicateError` for an unknown column, or a literal that cannot be compared with the column.
    """
    if isinstance(predicate, (And, Or)):
        return type(predicate)(tuple(bind(part, types, zone) for part in predicate.parts))
    if isinstance(predicate, Not):
        return Not(bind(predicate.part, types, zone))
    if unknown := columns_of(predicate) - set(types):
        raise PredicateError(f"unknown column {unknown.pop()!r}: choose from {', '.join(types) or 'none'}")
    if isinstance(predicate, Computed):
        return predicate
    kind = types[predicate.column]
    if isinstance(predicate, (IsNull, Constant)):
        return predicate
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    if kind is None or pa.types.is_nested(kind):
        hint = ", or write a type, as in $.a.b:int" if kind is None else ""
        raise PredicateError(f"{predicate.column} is {kind or 'variant'}, which cannot be compared: use IS NULL{hint}")
    if isinstance(predicate, Like):
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)) or not isinstance(predicate.pattern, str):
            raise PredicateError(
                f"{predicate.column} LIKE {predicate.pattern!r}: LIKE needs a string column and a string pattern"
            )
        check_like(predicate.pattern, PredicateError)
        return predicate
    column = predicate.column
    if not isinstance(predicate, In):  # A comparison with NULL is neither true nor false.
        is_unknown = predicate.literal is None or pa.types.is_null(kind)
        return Constant(column, None) if is_unknown else _bind_compare(predicate, kind, zone)
    has_null = pa.types.is_null(kind) or any(value is None for value in predicate.values)
    literals = () if pa.types.is_null(kind) else (value for value in predicate.values if value is not None)
    bound = (_bind_compare(Compare(column, "=", literal), kind, zone) for literal in literals)
    scalars = [part.literal for part in bound if isinstance(part, Compare)]  # others equal no value of the column
    if not scalars:
        return Constant(column, None if has_null else False)
    by_key = {order_key(literal): literal for literal in scalars}
    ordered = sorted(by_key, key=lambda key: (key != key, key))  # NaN is above every number
    return In(column, [by_key[key] for key in ordered], has_null)


def _bind_compare(compare: Compare, kind: pa.DataType, zone: str) -> Predicate:
    literal = compare.literal
    number = isinstance(literal, (int, float, Decimal)) and not isinstance(literal, bool)
    if pa.types.is_floating(kind) and number:
        try:
            double = float(literal)
        except OverflowError:
            double = math.inf if literal > 0 else -math.inf
        return Compare(compare.column, compare.op, scalar(double, pa.float64()))
    if (pa.types.is_integer(kind) or pa.types.is_decimal(kind)) and number:
        return _bind_exact(compare, kind)
    try:
        if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
            units, remainder = divmod(_nanoseconds(literal, kind, zone), _NANOSECONDS[kind.unit])
            return _bind_units(compare, kind, units, bool(remainder))
        return Compare(compare.column, compare.op, _scalar(literal, kind))
    except (pa.ArrowException, TypeError, ValueError):
        raise PredicateError(
            f"cannot compare {compare.column} ({kind}) with {literal!r}: write a literal of that type"
        ) from None


def _bind_exact(compare: Compare, kind: pa.DataType) -> Predicate:
    """Compare an integer or decimal column with a number, in units of the column's last digit."""
    column, op, literal = compare.column, compare.op, compare.literal
    if not math.isfinite(literal):  # NaN is greater than every number.
        is_greater = not float(literal) < 0
        return Constant(column, {"=": False, "<>": True, "<": is_greater, "<=": is_greater}.get(op, not is_greater))
    sign, digits, exponent = Decimal(literal).as_tuple()
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    unscaled = int(Decimal((sign, digits, 0)))  # not from text, since Python limits int() to 4,300 digits
    assert isinstance(exponent, int)
    shift = exponent + scale
    if shift >= 0:
        units, remainder = unscaled * 10 ** min(shift, 100), 0  # No exact type has 100 more digits.
    elif -shift > len(digits):
        units, remainder = (-1 if unscaled < 0 else 0), abs(unscaled)  # Less than one unit.
    else:
        units, remainder = divmod(unscaled, 10**-shift)
    return _bind_units(compare, kind, units, bool(remainder))


def _bind_units(compare: Compare, kind: pa.DataType, units: int, has_remainder: bool) -> Predicate:
    """Compare a column of whole units with a literal; with a remainder it lies between `units` and the next unit."""
    column, op = compare.column, compare.op
    if has_remainder:  # No value is equal.
        if op in ("=", "<>"):
            return Constant(column, op == "<>")
        op, units = (">=", units + 1) if op in (">", ">=") else ("<=", units)
    if pa.types.is_decimal(kind):
        low, high = 1 - 10**kind.precision, 10**kind.precision - 1
    else:
        bits, is_unsigned = kind.bit_width, pa.types.is_unsigned_integer(kind)
        low, high = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= units <= high:
        return Constant(column, {"=": False, "<>": True}.get(op, (units > high) == (op in ("<", "<="))))
    if pa.types.is_temporal(kind):
        return Compare(column, op, scalar(units, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind))
    if pa.types.is_integer(kind):
        return Compare(column, op, scalar(units, kind))
    data = pa.py_buffer(units.to_bytes(kind.byte_width, "little", signed=True))
    return Compare(column, op, pa.Array.from_buffers(kind, 1, [None, data])[0])


def _scalar(literal: Any, kind: pa.DataType) -> pa.Scalar:
    if any(isinstance(literal, python) and any(test(kind) for test in tests) for python, tests in _TESTS.items()):
        return scalar(literal, kind)
    if kind == pa.uuid() and isinstance(literal, (str, uuid.UUID)):
        return pa.scalar(uuid.UUID(str(literal)).bytes, pa.binary(16)).cast(kind)
    if pa.types.is_date(kind) and isinstance(literal, (str, dt.date)) and not isinstance(literal, dt.datetime):
        return pa.scalar(dt.date.fromisoformat(literal) if isinstance(literal, str) else literal, kind)
    raise TypeError


def _nanoseconds(literal: Any, kind: pa.DataType, zone: str) -> int:
    """Return a timestamp or time literal in nanoseconds; a timestamp without an offset is in the session's zone.

    Raises `TypeError` or `ValueError` if the literal is not a timestamp or time, or has a zone and the column has none.
    """
    nanoseconds = getattr(literal, "nanosecond", 0)  # of pandas
    if isinstance(literal, str):
        if digits := _BELOW_MICROSECONDS.search(literal):  # Python drops the digits after microseconds.
            nanoseconds = int(digits[1].ljust(3, "0"))
        read = dt.time.fromisoformat if pa.types.is_time(kind) else dt.datetime.fromisoformat
        literal = read(literal)
    if pa.types.is_time(kind):
        if not isinstance(literal, dt.time) or literal.tzinfo is not None:
            raise TypeError
        literal = dt.datetime.combine(dt.date(1970, 1, 1), literal, dt.UTC)
    elif not isinstance(literal, dt.datetime):
        literal = dt.datetime.combine(literal, dt.time())
    if pa.types.is_timestamp(kind) and kind.tz is None and literal.tzinfo is not None:
        raise ValueError
    if literal.tzinfo is None:
        literal = literal.replace(tzinfo=dt.UTC if kind.tz is None else zone_of(zone))
    micros = (literal - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    return micros * 1000 + nanoseconds


def evaluate(predicate: Predicate, columns: Mapping[str, pa.Array | pa.ChunkedArray] | pa.Table) -> pa.BooleanArray:
    """Return the answer for each row as an Arrow boolean array; null means unknown.

    `columns`: the columns by name, all of the same length.
    """
    if isinstance(predicate, (And, Or)):
        names = columns_of(predicate)
        column = columns[next(iter(names))] if len(names) == 1 else None
        by_row = any(isinstance(part, (IsNull, Computed)) for part in conditions_of(predicate))
        if isinstance(column, pa.DictionaryArray) and not by_row:  # IN, for instance
            return _of_distinct(predicate, names.pop(), column)
        combine = pc.and_kleene if isinstance(predicate, And) else pc.or_kleene
        return reduce(combine, (evaluate(part, columns) for part in predicate.parts))
    if isinstance(predicate, Not):
        return pc.invert(evaluate(predicate.part, columns))
    if isinstance(predicate, Computed):
        return predicate.answers([columns[name] for name in predicate.columns])
    column = columns[predicate.column]
    if isinstance(predicate, IsNull):
        return pc.is_null(column)
    if isinstance(column, pa.DictionaryArray):
        return _of_distinct(predicate, predicate.column, column)
    if isinstance(predicate, Constant):
        answer = scalar(predicate.answer, pa.bool_())
        return pc.if_else(pc.is_valid(column), answer, scalar(None, pa.bool_()))
    if isinstance(predicate, Like):
        return pc.match_like(column, predicate.pattern)
    if isinstance(predicate, In):
        return _is_in(column, predicate)
    return _compare(column, predicate.op, predicate.literal)


def _of_distinct(predicate: Predicate, name: str, column: pa.DictionaryArray) -> pa.BooleanArray:
    """Evaluate a predicate once per distinct value; null is unknown."""
    return evaluate(predicate, {name: column.dictionary}).take(column.indices)


_ARROW_NAMES = {
    "=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip


def _is_in(column: pa.Array, predicate: In) -> pa.BooleanArray:
    kind = predicate.values[0].type
    if column.type == pa.uuid():
        column, values = column.cast(pa.binary(16)), pa.array([literal.value.as_py() for literal in predicate.values])
        values = values.cast(pa.binary(16))
    elif pa.types.is_floating(column.type):  # 0.0 and -0.0 are equal, and NaN equals itself
        column, values = pc.add(column.cast(kind), 0.0), pc.add(pa.array(predicate.values, kind), 0.0)
    else:
        values = pa.array(predicate.values, kind).cast(column.type)
    is_member = pc.is_in(column, values)
    unknown = scalar(None, pa.bool_())
    if predicate.has_null:
        is_member = pc.if_else(is_member, is_member, unknown)
    return pc.if_else(pc.is_valid(column), is_member, unknown)


def _compare(column: pa.Array, op: Operator, literal: pa.Scalar) -> pa.BooleanArray:
    if column.type == pa.uuid():
        column, literal = column.cast(pa.binary(16)), literal.cast(pa.binary(16))
    if not pa.types.is_floating(column.type):
        return pc.call_function(_ARROW_NAMES[op], [column, literal])
    column = column.cast(pa.float64())
    nan = pc.is_nan(column)
    if math.isnan(literal.as_py()):  # No value is greater than NaN, and only NaN equals it.
        if op in ("=", ">="):
            return nan
        if op in ("<>", "<"):
            return pc.invert(nan)
        return pc.if_else(pc.is_valid(column), scalar(op == "<=", pa.bool_()), scalar(None, pa.bool_()))
    answer = pc.call_function(_ARROW_NAMES[op], [column, literal])
    return pc.or_kleene(answer, nan) if op in (">", ">=", "<>") else answer
