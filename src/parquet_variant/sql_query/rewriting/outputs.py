"""Outputs of queries: their names under an alias, and the facts that two sides of a set operation share.

Owns changes of `OutputColumn`s. Leaves where outputs come from to `select_list` and `query`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from parquet_variant.sql_query.rewriting.scopes import OutputColumn, unique_names
from parquet_variant.sql_query.rewriting.select_list import numbered_variant

Outputs = Sequence[OutputColumn] | None


def in_common(output: OutputColumn, other: OutputColumn) -> OutputColumn:
    """Return an output with the type of all its values if another output has the same one."""
    return replace(output, common=output.common if output.common == other.common else None, place=None)


def name_variants(order: exp.Order, outputs: Sequence[OutputColumn]) -> None:
    """Write the names of outputs in place of their numbers and of ALL, since Variants are not ordered as they are."""
    if not any(output.is_variant for output in outputs):
        return
    names = [output.name for output in outputs]
    keys = list(order.expressions)
    if len(keys) == 1 and keys[0].this.name.upper() == "ALL" and all(name is not None for name in names):
        keys = [keys[0].copy() for _ in names]
        for number, key in enumerate(keys, 1):
            key.set("this", exp.Literal.number(number))
        order.set("expressions", keys)
    for key in keys:
        number = int(key.this.name) if isinstance(key.this, exp.Literal) and key.this.name.isdecimal() else 0
        if 0 < number <= len(names):
            key.set("this", numbered_variant(number, outputs) or key.this)


def rename_outputs(outputs: Outputs, alias: exp.Expr | None) -> Outputs:
    """Return outputs with the names of an alias such as ``x(a, b)``; repeated names are numbered."""
    names = [column.name for column in alias.args.get("columns") or ()] if isinstance(alias, exp.Expr) else []
    if outputs is None:
        return None
    if not names:
        shown = unique_names([output.name or "" for output in outputs])
        return [
            replace(output, name=name if output.name else output.name)
            for name, output in zip(shown, outputs, strict=True)
        ]
    names_of_outputs = [*names, *(output.name for output in outputs[len(names) :])]
    return [replace(output, name=name) for name, output in zip(names_of_outputs, outputs, strict=False)]
