"""What changes between two schemas, path by path. Owns the comparison; leaves what to do about it to the caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parquet_variant.path import WILDCARD, VariantPath
from parquet_variant.schema.ddl import render_ddl

if TYPE_CHECKING:
    from parquet_variant.schema.shredding_schema import ShreddingSchema

ROOT = VariantPath()


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference.

    Parameters
    ----------
    path
        Where; ``[*]`` is every element.
    before, after
        The node there; None where the schema does not go.
    """

    path: VariantPath
    before: ShreddingSchema | None
    after: ShreddingSchema | None

    def __str__(self) -> str:
        before, after = _shown(self.before), _shown(self.after)
        return f"{self.path}: {before} -> {after}"


def diff_schemas(before: ShreddingSchema, after: ShreddingSchema) -> list[SchemaChange]:
    """List the differences, the topmost of each kind only.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> ddl = ShreddingSchema.from_ddl
    >>> [str(change) for change in diff_schemas(ddl("a array<int>"), ddl("a array<string>"))]
    ["$['a'][*]: int -> string"]
    """
    changes: list[SchemaChange] = []
    _compare(ROOT, before, after, changes)
    return changes


def _compare(
    path: VariantPath, a: ShreddingSchema | None, b: ShreddingSchema | None, changes: list[SchemaChange]
) -> None:
    if a == b:
        return
    if a is not None and b is not None and a.kind == b.kind == "object":
        for name in sorted({*dict(a.fields), *dict(b.fields)}):
            _compare(path / name, a.field(name), b.field(name), changes)
    elif a is not None and b is not None and a.kind == b.kind == "array":
        _compare(path / WILDCARD, a.element, b.element, changes)
    else:
        changes.append(SchemaChange(path, a, b))


def _shown(schema: ShreddingSchema | None) -> str:
    if schema is None:
        return "(not shredded)"
    return f"struct<{render_ddl(schema)}>" if schema.kind == "object" else render_ddl(schema)
