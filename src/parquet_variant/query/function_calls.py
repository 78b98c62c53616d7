"""Functions of SQL that return a Variant: JSON that is parsed, values of the engine, and changed Variants.

Owns how users write them, and the call for the engine, in queries and in conditions and values of changes. Leaves the
functions to `variant_functions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.kinds import is_variant
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.query.sql_pushdown import literal_value
from parquet_variant.query.variant_functions import BUILDERS, EDITS, PARSERS, TRIES
from parquet_variant.support.choices import SqlEngine

_USAGE = {
    "variant_set": ", path, value, create_if_missing", "variant_insert": ", path, value", "variant_delete": ", path, …",
    "variant_array_append": ", path, value", "variant_strip_nulls": ", include_arrays",
}  # fmt: skip


class CallWriter(Protocol):
    """Rewrites the arguments of a call."""

    engine: SqlEngine

    def expression(self, node: exp.Expr) -> tuple[exp.Expr, pa.DataType | None]:
        """Rewrite an expression, and return it with the Variants in its result."""
        ...

    def text_of(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an argument that is text; a Variant is its cast to string."""
        ...

    def variant_of(self, value: exp.Expr, kind: pa.DataType | None) -> exp.Expr:
        """Return a rewritten value that is not a Variant as one."""
        ...

    def call(self, function: str, *arguments: exp.Expr, constants: tuple[Any, ...] = ()) -> exp.Expr:
        """Return a call of a function of `variant_functions`."""
        ...


def rewrite_call(values: CallWriter, node: exp.Expr, name: str) -> exp.Expr | None:
    """Return the engine's call for a function whose result is a Variant; None for any other expression."""
    arguments: Sequence[exp.Expr] = node.expressions
    if name in PARSERS and len(arguments) == 1:
        return values.call(name, _json_bytes(values.text_of(arguments[0])))
    if name.removeprefix("try_") in EDITS and (name in EDITS or name.removeprefix("try_") in TRIES):
        return _rewrite_edit(values, node, name)
    if name == "to_variant_object" and len(arguments) == 1:
        return variant_argument(values, arguments[0])
    if name == "variant_from_arrays" and len(arguments) == 2:
        return values.call(name, values.expression(arguments[0])[0], variant_argument(values, arguments[1]))
    if name == "variant_from_entries" and len(arguments) == 1:
        return _rewrite_entries(values, arguments[0])
    return None


def _json_bytes(value: exp.Expr) -> exp.Expr:
    """Return JSON as bytes: a binary column as it is, since its cast to text would escape quotes."""
    type_name = exp.Anonymous(this="typeof", expressions=[value.copy()])
    is_binary = exp.EQ(this=type_name, expression=exp.Literal.string("BLOB"))
    text = exp.Anonymous(this="encode", expressions=[exp.cast(value, "TEXT")])
    return exp.Case(ifs=[exp.If(this=is_binary, true=exp.cast(value.copy(), "BLOB"))], default=text)


def variant_argument(values: CallWriter, node: exp.Expr) -> exp.Expr:
    """Return an argument as a Variant."""
    value, kind = values.expression(node)
    return value if is_variant(kind) else values.variant_of(value, kind)


def _rewrite_edit(values: CallWriter, node: exp.Expr, name: str) -> exp.Expr:
    """Rewrite a function that returns a changed Variant; paths and switches are constants."""
    function = name.removeprefix("try_")
    roles = EDITS[function]
    first, *further = node.expressions or [exp.Null()]
    value, kind = values.expression(first)
    usage = f"{written(node, values.engine)}: write {name}(variant{_USAGE[function]}), with paths in quotes"
    if (
        not is_variant(kind)
        or (roles != "p*" and len(further) > len(roles))
        or len(further) < roles.rstrip("c").count("p")
    ):
        raise SqlError(usage)
    arguments, constants = [value], []
    for role, part in zip(roles if roles != "p*" else "p" * len(further), further, strict=False):
        if role == "x":
            arguments.append(variant_argument(values, part))
            continue
        constant = literal_value(part.unnest())
        if not isinstance(constant, str if role == "p" else bool):
            raise SqlError(usage)
        constants.append(path_argument(part.unnest()).name if role == "p" else constant)  # type: ignore[union-attr]
    if roles.endswith("c") and len(further) < len(roles):
        constants.append(True)
    if len(arguments) < 1 + roles.count("x"):
        raise SqlError(usage)
    return values.call(function, *arguments, constants=(*constants, "null" if name != function else "raise"))


def _rewrite_entries(values: CallWriter, entries: exp.Expr) -> exp.Expr:
    """Rewrite ``variant_from_entries(list)`` as the object of the names and the values of its structs."""
    rows = values.expression(entries)[0]
    entry = exp.to_identifier("_entry")

    def part(name: str) -> exp.Expr:
        field = exp.Dot(this=exp.Paren(this=entry.copy()), expression=exp.to_identifier(name, quoted=True))
        each = exp.Lambda(this=field, expressions=[entry.copy()])
        return exp.Anonymous(this="list_transform", expressions=[rows.copy(), each])

    return values.call("variant_from_arrays", part("key"), values.variant_of(part("value"), None))


def path_argument(node: exp.Expr) -> exp.Expr | None:
    """Return a path in quotes for ``variant_get``; None if an argument is not a path.

    A path may omit ``$.``, as in DuckDB: ``'a'``, ``'a.b'``, and ``''`` for the value itself.

    >>> path_argument(exp.Literal.string("a.b")).name, path_argument(exp.Literal.string("")).name
    ('$.a.b', '$')
    """
    if not (isinstance(node, exp.Literal) and node.is_string):
        return None
    text = node.name
    if text.startswith("$"):
        return node
    return exp.Literal.string("$" if not text else f"${text}" if text.startswith("[") else f"$.{text}")


def returns_variant(name: str) -> bool:
    """Return whether a function returns a Variant."""
    return name in PARSERS or name in EDITS or name in BUILDERS or name.removeprefix("try_") in TRIES
