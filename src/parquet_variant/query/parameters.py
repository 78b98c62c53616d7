"""Parameters of SQL: ``?`` with a list of values, and ``$name`` with a dict.

Owns finding parameters in the text, and the literal of each Python value. Leaves parsing to `sql_dialect`.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect

from parquet_variant.errors import VariantError

_MARK = "\x00parameter "  # begins the string literal that stands for a parameter while the text is parsed


def mark_parameters(text: str, dialect: Dialect, params: Any) -> tuple[str, list[Any]]:
    """Return a text with a string literal in place of each parameter, and the values in the order of the literals.

    Raises `VariantError` with reason ``bad-parameter`` if parameters and values do not match.
    """
    if not isinstance(params, Mapping) and (isinstance(params, (str, bytes)) or not isinstance(params, Sequence)):
        raise _error(f"params is {params!r}: give a list of values for ?, or a dict of values for $name")
    tokens = dialect.tokenize(text)
    values: list[Any] = []
    used: set[Any] = set()
    parts: list[str] = []
    end = 0
    for number, token in enumerate(tokens):
        key: Any
        if token.token_type == TokenType.PLACEHOLDER and token.text == "?" and not isinstance(params, Mapping):
            key, stop = len(values), token.end
        elif token.token_type == TokenType.PARAMETER and token.text == "$" and number + 1 < len(tokens):
            name = tokens[number + 1]
            key, stop = (name.text if isinstance(params, Mapping) else int(name.text) - 1), name.end
        else:
            continue
        known = key in params if isinstance(params, Mapping) else 0 <= key < len(params)
        if not known:
            shown = f"${key}" if isinstance(params, Mapping) else f"number {key + 1}"
            raise _error(f"the SQL has the parameter {shown}, and params has {len(params)} values: add it")
        used.add(key)
        parts += [text[end : token.start], f"'{_MARK}{len(values)}'"]
        values.append(params[key])
        end = stop + 1
    keys = list(params) if isinstance(params, Mapping) else range(len(params))
    if unused := [key for key in keys if key not in used]:
        raise _error(
            f"the SQL does not use the parameter {unused[0]!r} of params: remove it, or write it as $name or ?"
        )
    return "".join([*parts, text[end:]]), values


def with_values(tree: exp.Expr, values: Sequence[Any]) -> exp.Expr:
    """Return a tree with the literals of the values in place of the marked literals."""

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Literal) and node.is_string and node.name.startswith(_MARK):
            return literal_of(values[int(node.name.removeprefix(_MARK))])
        node.meta.pop("text", None)  # it has the marks
        return node

    return tree.transform(replaced) if values else tree


def literal_of(value: Any) -> exp.Expr:
    """Return the SQL of a Python value.

    Raises `VariantError` with reason ``bad-parameter`` for a value without a literal.

    >>> [literal_of(value).sql() for value in (None, True, -5, 2.5, "it's", [1, 2])]
    ['NULL', 'TRUE', '(-5)', '2.5e0', "'it''s'", 'ARRAY(1, 2)']
    """
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, float) and not math.isfinite(value):
        return exp.cast(exp.Literal.string(str(value)), "DOUBLE")
    if isinstance(value, (int, float, Decimal)):
        text = f"{abs(value):f}" if isinstance(value, Decimal) else repr(abs(value))
        number = exp.Literal.number(text if not isinstance(value, float) or "e" in text else f"{text}e0")
        return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, bytes):
        return exp.Anonymous(this="unhex", expressions=[exp.Literal.string(value.hex())])
    if isinstance(value, dt.datetime):
        return exp.cast(exp.Literal.string(value.isoformat(" ")), "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMPNTZ")
    if isinstance(value, (dt.date, dt.time, uuid.UUID)):
        kind = "UUID" if isinstance(value, uuid.UUID) else "DATE" if isinstance(value, dt.date) else "TIME"
        return exp.cast(exp.Literal.string(str(value)), kind)
    if isinstance(value, (list, tuple)):
        return exp.Array(expressions=[literal_of(part) for part in value])
    raise _error(f"a parameter is {type(value).__name__}: give a number, string, date, time, bytes, UUID or list")


def _error(message: str) -> VariantError:
    return VariantError(message, reason="bad-parameter")
