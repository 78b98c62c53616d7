"""SQL conditions as a `Predicate` over columns: the filter of a scan, and the part of a condition that can skip rows.

Owns which comparisons mean the same in the engine and in `predicate`. A filter has no others; of the condition of a
query or change, the engine evaluates the others alone, and the predicate is true for every row for which it is true.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from parquet_variant.encoding.cast.strings import zone_of
from parquet_variant.errors import PredicateError, VariantError
from parquet_variant.query.path_dialect import steps_of
from parquet_variant.query.predicate import FLIPPED, And, Compare, IsNull, Like, Not, Or, Predicate, bind, is_in, joined
from parquet_variant.query.sql_dialect import SqlError, parse_sql, sql_type, sql_type_name, written
from parquet_variant.types.path import VariantPath, column_request, quoted, split_type

# Callback: an expression -> the name and Arrow type (None for a Variant) of the scan's column that it is, or None.
FindColumn = Callable[[exp.Expr], tuple[str, pa.DataType | None] | None]
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
# Arguments of a node; any other (symmetric, a subquery, an escape) changes its meaning.
_ARGUMENTS = {"this", "expression", "expressions", "low", "high", "negate", "table"}
NO_LITERAL = object()
_EXACT_DOUBLES = 2**53
MAX_DIGITS = 38  # of a decimal of the engine
SQL_TIMES = {"date": "DATE", "timestamp_ntz": "TIMESTAMPNTZ", "timestamp": "TIMESTAMPTZ"}
_LITERALS: dict[Any, Callable[[str], Any]] = {
    exp.DataType.Type.DATE: dt.date.fromisoformat, exp.DataType.Type.UUID: uuid.UUID,
    **dict.fromkeys((exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPNTZ), dt.datetime.fromisoformat),
}  # fmt: skip
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?")


class Pushdown:
    """Reads conditions over columns of known types, as far as the engine means the same.

    `find_column`: returns the column of the scan that an expression is.
    """

    any_type: Any = NO_LITERAL  # The type of a column that may have every type.

    def __init__(self, find_column: FindColumn, zone: str) -> None:
        self.find_column, self.zone = find_column, zone

    def implied(self, condition: exp.Expr) -> Predicate | None:
        """Return a predicate that is true for every row for which the condition is true; None without one."""
        condition = condition.unnest()
        if isinstance(condition, exp.And):
            parts = [part for operand in condition.flatten() if (part := self.implied(operand)) is not None]
            return joined(And, parts) if parts else None
        if isinstance(condition, exp.Or):
            return _all_of(Or, map(self.implied, condition.flatten()))
        return self.exact(condition)

    def exact(self, node: exp.Expr) -> Predicate | None:
        """Return the predicate that is equivalent to a condition, also where the condition is unknown."""
        node = node.unnest()
        if {key for key, value in node.args.items() if value} - _ARGUMENTS:
            return None
        if isinstance(node, (exp.And, exp.Or)):
            return _all_of(And if isinstance(node, exp.And) else Or, map(self.exact, node.flatten()))
        if isinstance(node, exp.Not):
            inner = self.exact(node.this)
            return None if inner is None else Not(inner)
        if type(node) in _OPERATORS:
            return self.comparison(_OPERATORS[type(node)], node.this, node.expression)
        if isinstance(node, exp.Between):
            bounds = (self.comparison(op, node.this, node.args[key]) for op, key in ((">=", "low"), ("<=", "high")))
            return _all_of(And, bounds)
        has_operand = isinstance(node, (exp.Is, exp.In, exp.Like))
        column = self.find_column(node.this.unnest() if has_operand else node)
        if column is None:
            return None
        predicate: Predicate | None = None
        if isinstance(node, exp.Is):
            predicate = IsNull(column[0]) if isinstance(node.expression, exp.Null) else None
        elif isinstance(node, exp.In):
            compares = [self.compare_with(column, "=", value) for value in node.expressions]
            if compares and None not in compares:
                predicate = is_in(column[0], [compare.literal for compare in compares if compare is not None])
        elif isinstance(node, exp.Like):
            is_pattern = node.expression.is_string and column[1] in (pa.string(), self.any_type)
            predicate = Like(column[0], node.expression.name) if is_pattern else None
        elif column[1] in (pa.bool_(), self.any_type):
            predicate = Compare(column[0], "=", True)
        return Not(predicate) if predicate is not None and node.args.get("negate") else predicate

    def comparison(self, op: str, first: exp.Expr, second: exp.Expr) -> Predicate | None:
        """Return the comparison of a column with a literal, on either side."""
        if (compared := self.find_column(first.unnest())) is not None:
            return self.compare_with(compared, op, second)
        compared = self.find_column(second.unnest())
        return None if compared is None else self.compare_with(compared, FLIPPED.get(op, op), first)

    def compare_with(self, compared: tuple[str, pa.DataType | None], op: str, other: exp.Expr) -> Compare | None:
        """Return the comparison of a column with a literal; None if the engine may compare otherwise."""
        column, kind = compared
        other = other.unnest()
        kind_class = class_of_type(kind)
        iso = _ISO.fullmatch(other.name) if isinstance(other, exp.Literal) and other.is_string else None
        if iso and kind_class in SQL_TIMES and bool(iso[1]) == (kind_class == "timestamp"):
            other = exp.cast(other, SQL_TIMES[kind_class])  # as the engine casts the text
        literal = literal_value(other)
        if kind is None or literal is NO_LITERAL:
            return None
        if literal is not None and (  # the engine must not round either side
            class_of_value(literal_in_zone(other, self.zone)) != kind_class
            or (pa.types.is_timestamp(kind) and kind.unit != "us")
            or (kind_class == "number" and not numbers_compare_alike([kind], [literal]))
        ):
            return None
        compare = Compare(column, op, literal)  # type: ignore[arg-type]
        try:
            bind(compare, {column: kind}, self.zone)
        except (VariantError, ValueError, OverflowError):
            return None
        return compare


class _Filter(Pushdown):
    """Reads a filter, whose columns have no types yet, and whose literals are exact; refuses all other SQL."""

    any_type = None

    def exact(self, node: exp.Expr) -> Predicate | None:
        predicate = super().exact(node)
        if predicate is None:
            raise PredicateError(
                f"invalid filter: {written(node)[:100]}: compare a column or path with literals, or use IN (…), "
                "BETWEEN, LIKE '…' or IS NULL; a path is written $.a.b:int, and a name with a dot in double quotes"
            )
        return predicate

    def compare_with(self, compared: tuple[str, pa.DataType | None], op: str, other: exp.Expr) -> Compare | None:
        literal = literal_value(other.unnest(), exact=True)
        return None if literal is NO_LITERAL else Compare(compared[0], op, literal)  # type: ignore[arg-type]


FILTER_NAMES = re.compile(
    r"""(?P<kept>[xX]?'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|::\s*\w+)
    | (?P<path>\$(?:\['(?:\\.|[^'\\])*'\]|\["(?:\\.|[^"\\])*"\]|\[[\d*]+\]|[^\s\[\]<>=!(),:'"`])*
        (?::\w+(?:\(\d+(?:,\s*\d+)?\))?)?)
    | (?<![\w:.])(?!(?:and|or|not|in|is|null|like|between|true|false)\b)(?P<name>[^\W\d]\w*)\b(?!\s*['(])""",
    re.VERBOSE | re.IGNORECASE,
)


def parse_predicate(text: str) -> Predicate:
    """Read the filter of a scan.

    Parameters
    ----------
    text
        Comparisons (``= <> != < <= > >=``), ``IN (…)``, ``BETWEEN … AND …``, ``LIKE 'x%'``, ``IS NULL`` of columns with
        literals, joined by AND, OR, NOT and parentheses. Literals: numbers, ``'text'``, TRUE, FALSE, NULL,
        ``DATE '2024-01-31'``, ``TIMESTAMP '2024-01-31 12:00:00'``, ``X'0A0B'``. A path can take the place of a column:
        ``$.a.b:int`` or ``v:a.b::int``. Column names that are not identifiers are written in double quotes or
        backticks. In a LIKE pattern a backslash escapes ``%``, ``_`` and itself, as in Spark. Keywords have any case.

    Raises
    ------
    PredicateError
        If the text is not a filter.

    Examples
    --------
    >>> parse_predicate("mag > 5 and place like 'x%'")
    And(parts=(Compare(column='mag', op='>', literal=5), Like(column='place', pattern='x%')))
    >>> parse_predicate("mag >")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.PredicateError: invalid filter: an operand is missing (near '>')
    """
    predicate = _Filter(_column_of_filter, "UTC").exact(parsed_filter(text))
    assert predicate is not None
    return predicate


def parsed_filter(text: str) -> exp.Expr:
    """Return the tree of a filter, which may call functions. Raises `PredicateError` for invalid SQL."""
    try:
        return parse_sql(FILTER_NAMES.sub(_quoted_name, text), what="expression")
    except SqlError as error:
        message = re.sub(r"^invalid SQL( at line \d+, column \d+)?", "invalid filter", str(error))
        raise PredicateError(message.replace("the SQL", "the filter")) from None


def _quoted_name(match: re.Match[str]) -> str:
    """Return a name or a path of a filter in quotes, because names of columns can be any words; other text as is."""
    text, sign = match[0], match[0][0]
    if text[1:2] == "$" and sign in '"`':
        name = text[1:-1].replace(sign * 2, sign)
        return quoted(name if split_type(name)[1] is not None else column_request(name))
    return text if match["kept"] else quoted(text if match["path"] else column_request(text))


def _column_of_filter(node: exp.Expr) -> tuple[str, None] | None:
    """Return the name of a column, or of a path with its type, which is written as ``v:$.a:int``."""
    if isinstance(node, exp.Column) and not node.table:
        return node.name, None
    kind = ""
    if isinstance(node, exp.Cast):
        target, node = sql_type(node.to), node.this.unnest()
        kind = ":variant" if target is None else f":{sql_type_name(target)}"
    if isinstance(node, exp.JSONExtract) and isinstance(node.this, exp.Column):
        return f"{node.this.name}:{VariantPath(steps_of(node))}{kind}", None
    return None


def _all_of(kind: type[And] | type[Or], parts: Iterable[Predicate | None]) -> Predicate | None:
    """Join predicates; None if one of them is None."""
    predicates = list(parts)
    return None if None in predicates else joined(kind, [part for part in predicates if part is not None])


def literal_value(node: exp.Expr, *, exact: bool = False) -> Any:
    """Return the Python value of a literal, or `NO_LITERAL` for any other expression.

    `exact`: whether a number is never a float, and `PredicateError` is raised for a literal without a Python value.
    """
    if isinstance(node, exp.Neg):
        inner = literal_value(node.this.unnest(), exact=exact)
        if isinstance(inner, Decimal):
            return inner.copy_negate()  # -inner would round
        return -inner if isinstance(inner, (int, float)) and not isinstance(inner, bool) else NO_LITERAL
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node.this if isinstance(node, exp.Cast) else node, exp.Null):
        return None
    if isinstance(node, exp.Literal):
        return node.name if node.is_string else _number(node.name, exact)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "unhex" and exact:
        return bytes.fromhex(node.expressions[0].name)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _moment(node, exact)
    return NO_LITERAL


def _number(text: str, exact: bool) -> Any:
    if text.isdecimal() and len(text) < (39 if exact else 40):
        return int(text)
    if not exact and ("e" in text.lower() or "." not in text):
        return float(text) if "e" in text.lower() else NO_LITERAL
    try:
        return Decimal(text)
    except InvalidOperation:
        raise PredicateError(f"the number {text[:40]} is out of range") from None


def _moment(node: exp.Cast, exact: bool) -> Any:
    """Return the value of ``DATE '2024-01-31'``, ``TIMESTAMP '…'`` or ``UUID '…'``."""
    text = node.this.name
    if exact and re.search(r"[.,]\d{7}", text):
        raise PredicateError(f"{text!r} has more than six fractional digits: write the literal as a plain string")
    try:
        return _LITERALS[node.to.this](text) if node.to.this in _LITERALS else NO_LITERAL
    except ValueError:
        if exact:
            raise PredicateError(f"{text!r} is not a valid ISO 8601 {node.to.this.value.lower()}") from None
        return NO_LITERAL


def literal_in_zone(node: exp.Expr, zone: str) -> Any:
    """Return the Python value of a literal; a timestamp without an offset is in the session's zone."""
    value = literal_value(node.unnest())
    if isinstance(value, dt.datetime) and isinstance(cast := node.unnest(), exp.Cast):
        if cast.is_type(exp.DataType.Type.TIMESTAMPTZ):
            return value if value.tzinfo else value.replace(tzinfo=zone_of(zone))
        return value.replace(tzinfo=None)
    return value


def numbers_compare_alike(types: Sequence[pa.DataType], literals: Sequence[Any]) -> bool:
    """Return whether the engine compares numbers of some types, and literals, without rounding one of them."""
    if any(pa.types.is_floating(kind) for kind in types):
        return len(set(types)) == 1 and all(_is_shown_by(literal, types[0]) for literal in literals)
    if any(isinstance(literal, float) for literal in literals):  # all operands become doubles
        return all(map(pa.types.is_integer, types)) and all(
            abs(literal) < _EXACT_DOUBLES and _is_shown_by(literal, pa.float64()) for literal in literals
        )
    return common_digits(types, literals) <= MAX_DIGITS


def common_digits(kinds: Sequence[pa.DataType], literals: Sequence[Any]) -> int:
    """Return the digits of the decimal type that holds all values."""
    digits = [(kind.precision - kind.scale, kind.scale) if pa.types.is_decimal(kind) else (20, 0) for kind in kinds]
    # The engine counts the zero before the point of a literal.
    for _, places, exponent in (Decimal(literal).as_tuple() for literal in literals):
        assert isinstance(exponent, int)
        digits.append((max(len(places) + exponent, 1), max(-exponent, 0)))
    return max(integer_digits for integer_digits, _ in digits) + max(scale for _, scale in digits)


def _is_shown_by(literal: Any, kind: pa.DataType) -> bool:
    """Return whether a number is the JSON of a floating-point value, and a float is the number itself."""
    number = Decimal(repr(literal)) if isinstance(literal, float) else Decimal(literal)
    if pa.types.is_float64(kind):
        return Decimal(repr(float(number))) == number
    return Decimal(str(np.float32(number))) == number == Decimal(float(np.float32(number)))


# The classes of values in the order of Variants, with the tests of their Arrow types.
_CLASSES: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "boolean": (pa.types.is_boolean,),
    "number": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    "string": (pa.types.is_string, pa.types.is_large_string),
    "date": (pa.types.is_date,),
    "timestamp_ntz": (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,),
    "timestamp": (pa.types.is_timestamp,),
    "uuid": (pa.uuid().equals,),
}


def class_of_value(value: Any) -> str | None:
    """Return the class of a Python value in the order of Variants."""
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    kinds = {str: pa.string(), uuid.UUID: pa.uuid()}
    return "number" if is_number else class_of_type(kinds.get(type(value)) or pa.scalar(value).type)


def class_of_type(kind: pa.DataType | None) -> str | None:
    """Return the class of an Arrow type in the order of Variants, if it is one of the simple ones."""
    classes = (name for name, tests in _CLASSES.items() if any(test(kind) for test in tests))
    return None if kind is None else next(classes, None)
