"""Operations of `plain_model` on a Delta table, and a table's rows as the model has them.

Owns the SQL and the Arrow columns of an operation. Leaves what it should come to, to the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

import parquet_variant as pv
from soak.plain_model import NULL, PATHS, Operation

__all__ = ["arrow_columns", "perform", "plain", "rows_of", "sql_condition"]

_ARROW = {"bigint": pa.int64(), "int": pa.int32(), "string": pa.string()}


def _json(value: Any) -> str:
    return json.dumps(value, default=float)


def arrow_columns(rows: list[dict[str, Any]], columns: dict[str, str]) -> dict[str, Any]:
    """Rows as columns."""
    found: dict[str, Any] = {}
    for name, kind in columns.items():
        values = [row.get(name, NULL if kind == "variant" else None) for row in rows]
        if kind == "variant":
            texts = [None if value == NULL else _json(value) for value in values]
            found[name] = pv.parse_json(pa.array(texts, pa.string()))
        else:
            found[name] = pa.array(values, _ARROW[kind])
    return found


def sql_name(name: str) -> str:
    """A column or path, cast to its type, as SQL."""
    side, rest = "", name
    if name.startswith(("source.", "target.")):
        side, rest = name.split(".", 1)
        side += "."
    return f"{side}{rest}::{PATHS[rest]}" if rest in PATHS else f'{side}"{rest}"' if ":" not in rest else side + rest


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def sql_condition(condition: Any) -> str:
    """A condition as SQL."""
    kind, *rest = condition
    if kind == "compare":
        name, sign, literal = rest
        return f"{sql_name(name)} {sign} {_literal(literal)}"
    if kind == "null":
        return f"{sql_name(rest[0])} IS NULL"
    if kind == "not":
        return f"NOT ({sql_condition(rest[0])})"
    return f"({sql_condition(rest[0])}) {kind.upper()} ({sql_condition(rest[1])})"


def _sql_value(value: Any, side: str) -> str:
    kind, *rest = value
    if kind == "literal":
        return _literal(rest[0])
    name = rest[0] if rest[0].startswith("source.") else side + rest[0]
    return sql_name(name) + (f" + {rest[1]}" if kind == "plus" else "")


def _sql_set(values: dict[str, Any], side: str = "") -> dict[str, str]:
    return {name: _sql_value(value, side) for name, value in values.items()}


def _tagged(op: Operation) -> str:
    """The condition, with a name that identifies the commit."""
    return f"({sql_condition(op['where'])}) AND '{op['tag']}' <> ''"


def perform(op: Operation, table: str, columns: dict[str, str], **storage: Any) -> int | None:
    """Do an operation; the version that holds it, None if it makes none.

    Parameters
    ----------
    op
        The operation.
    table
        Where the table is.
    columns
        Of the table before the operation.
    **storage
        ``storage_options``.
    """
    kind, opened = op["op"], pv.open(table, **storage)
    columns = columns | op.get("new", {})
    if kind in ("append", "overwrite"):
        rows = arrow_columns(op["rows"], columns)
        options = {"schema_mode": "merge"} if op.get("new") else {}
        options |= {"file_bytes": op["file_bytes"]} if "file_bytes" in op else {}
        do = opened.append if kind == "append" else opened.overwrite
        return do(rows, batch=(op["tag"], 1), **options).version
    if kind == "replace_where":
        return opened.overwrite(arrow_columns(op["rows"], columns), where=_tagged(op)).version
    if kind == "replace_partitions":
        return opened.overwrite(arrow_columns(op["rows"], columns), partitions=True).version
    if kind == "delete":
        return opened.delete(_tagged(op)).version
    if kind == "update":
        return opened.update(_sql_set(op["set"]), _tagged(op)).version
    if kind == "merge":
        return _merge(op, table, columns, storage)
    if kind == "optimize":
        opened.optimize(reshred=op.get("reshred", False))
    elif kind == "restore":
        return opened.restore(version=op["version"]).version
    elif kind == "vacuum":
        now = {"retention": timedelta(0), "force": True} if op.get("now") else {}
        opened.vacuum(**now)
    elif kind == "checkpoint":
        opened.checkpoint()
    elif kind == "properties":
        return opened.set_properties(op["values"]).version
    elif kind == "add":
        f = {"name": op["name"], "type": {"bigint": "long", "int": "integer"}.get(op["type"], op["type"])}
        return opened.add_columns(json.dumps({"type": "struct", "fields": [f]})).version
    elif kind == "rename":
        return opened.rename_column(op["name"], op["to"]).version
    elif kind == "drop":
        return opened.drop_column(op["name"]).version
    else:
        assert kind == "widen", kind
        return opened.widen_column(op["name"], "long").version
    return None


def _merge(op: Operation, table: str, columns: dict[str, str], storage: dict[str, Any]) -> int:
    source = arrow_columns(op["rows"], {name: columns[name] for name in op["columns"]})
    on = " AND ".join(f"{sql_name(f'target.{left}')} = {sql_name(f'source.{right}')}" for left, right in op["on"])
    merge = pv.open(table, **storage).merge(source, f"{on} AND '{op['tag']}' <> ''")
    for clause in op["clauses"]:
        where = None if clause["where"] is None else sql_condition(clause["where"])
        name = f"when_{clause['when']}_{clause['action']}"
        if clause["action"] == "delete":
            merge = getattr(merge, name)(where)
        elif clause["set"] is None:
            merge = getattr(merge, f"{name}_all")(where)
        else:
            merge = getattr(merge, name)(_sql_set(clause["set"], "target."), where)
    return merge.execute().version


def rows_of(table: pa.Table, variants: Iterable[str]) -> list[dict[str, Any]]:
    """The rows of an Arrow table as the model has them."""
    found = {name: column.to_pylist() for name, column in zip(table.column_names, table.columns, strict=True)}
    for name in variants:
        column = table[name]
        storage = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        values = pv.VariantArray(storage).to_pylist() if len(storage) else []
        nulls = storage.is_null().to_pylist()
        found[name] = [NULL if null else value for value, null in zip(values, nulls, strict=True)]
    return [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]


def plain(value: Any) -> Any:
    """A value whose equality and text are those of SQL: all numbers alike, fields in order."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return Decimal(str(value)).normalize()
    return value
