"""A schema as a printed tree. Owns the drawing; leaves colours and shares to the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.schema.primitive_types import ddl_name

if TYPE_CHECKING:
    from parquet_variant.schema.shredding_schema import ShreddingSchema


def node_name(schema: ShreddingSchema) -> str:
    """Name one node without what is below it: its DDL type, ``array``, ``object`` or ``variant``."""
    return schema.kind if schema.type is None else ddl_name(schema.type)


def render_tree(schema: ShreddingSchema) -> str:
    """Draw a schema, one line a node.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> print(render_tree(ShreddingSchema.from_ddl("a struct<b: int>, c array<variant>")))
    object
    ├─ a: object
    │  └─ b: int
    └─ c: array
       └─ [*]: variant
    """
    return "\n".join([node_name(schema), *_lines(schema)])


def _lines(schema: ShreddingSchema) -> list[str]:
    below = list(schema.fields) if schema.element is None else [("[*]", schema.element)]
    lines = []
    for position, (name, child) in enumerate(below):
        last = position == len(below) - 1
        shown = name if name.isprintable() and name else repr(name)
        lines.append(f"{'└─' if last else '├─'} {shown}: {node_name(child)}")
        lines.extend(("   " if last else "│  ") + line for line in _lines(child))
    return lines
