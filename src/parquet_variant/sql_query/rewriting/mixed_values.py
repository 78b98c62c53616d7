"""Expressions that return one of several values, some of which are Variants, such as ``coalesce(v:a, 0)``.

Owns the common form of such values: the only type of all of them, or else a Variant. Leaves the expressions that have
them to `values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.sql_pushdown import NO_LITERAL, literal_value
from parquet_variant.sql_query.kinds import is_variant
from parquet_variant.sql_query.rewriting.comparisons import class_of_type
from parquet_variant.sql_query.rewriting.protocols import ValueRewriter
from parquet_variant.types.targets import VARIANT_STORAGE

_JSON_CLASSES = ("number", "string", "boolean")


def in_one_form(values: ValueRewriter, parts: Sequence[exp.Expr]) -> list[exp.Expr] | None:
    """Return replacements of expressions that have one type, or else are Variants; None if that is not possible.

    New expressions are rewritten already; the others are returned as they are.
    """
    kinds = [values.expression(part)[1] for part in parts]
    typed = [values.typed(part) if is_variant(kind) else None for part, kind in zip(parts, kinds, strict=True)]
    types = {values.static_type(column) for column in typed if column is not None}
    if len(types) == 1 and all(
        column is not None or (kind is None and _has_type(values, part, next(iter(types))))
        for part, column, kind in zip(parts, typed, kinds, strict=True)
    ):
        return [part if column is None else column for part, column in zip(parts, typed, strict=True)]
    if all(
        is_variant(kind) or (kind is None and _has_json(values, part)) for part, kind in zip(parts, kinds, strict=True)
    ):
        return [
            part if is_variant(kind) else as_variant(values, values.expression(part)[0])
            for part, kind in zip(parts, kinds, strict=True)
        ]
    return None


def as_variant(values: ValueRewriter, value: exp.Expr) -> exp.Expr:
    """Return a rewritten value of the engine as a Variant."""
    as_json = exp.Anonymous(this="to_json", expressions=[value.copy()])
    text = exp.Anonymous(this="encode", expressions=[exp.cast(as_json, "TEXT")])
    variant = values.call("parse_json", text)
    variant.meta["kind"] = VARIANT_STORAGE
    return variant


def _has_type(values: ValueRewriter, part: exp.Expr, kind: pa.DataType | None) -> bool:
    """Return whether a literal, or an expression of a known type, has a type exactly, or is a whole number for one."""
    literal = literal_value(part.unnest())
    if literal is NO_LITERAL:
        return kind is not None and values.static_type(part) == kind
    return kind is not None and class_of_type(kind) == _class_of_literal(literal) and not _has_fraction(literal, kind)


def _has_json(values: ValueRewriter, part: exp.Expr) -> bool:
    literal = literal_value(part.unnest())
    type_class = class_of_type(values.static_type(part)) if literal is NO_LITERAL else _class_of_literal(literal)
    return type_class in _JSON_CLASSES


def _class_of_literal(literal: Any) -> str | None:
    if isinstance(literal, bool):
        return "boolean"
    if isinstance(literal, (int, float, Decimal)):
        return "number"
    return "string" if isinstance(literal, str) else None


def _has_fraction(literal: Any, kind: pa.DataType) -> bool:
    return not isinstance(literal, (bool, str)) and literal != int(literal) and not pa.types.is_floating(kind)
