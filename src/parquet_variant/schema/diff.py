"""What changes between two schemas, path by path. Owns the comparison; leaves what to do about it to the caller."""

from __future__ import annotations

from dataclasses import dataclass

from parquet_variant.schema.ddl import render_ddl
from parquet_variant.schema.shredding_schema import ShreddingSchema, Steps
from parquet_variant.schema.steps import render_steps

__all__ = ["SchemaChange", "diff_schemas"]


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference.

    Parameters
    ----------
    steps
        The place: names of fields, None for "every element".
    before, after
        The node there; None where the schema does not go.
    """

    steps: Steps
    before: ShreddingSchema | None
    after: ShreddingSchema | None

    @property
    def path(self) -> str:
        """The place as a normalized path."""
        return render_steps(self.steps)

    def __str__(self) -> str:
        before, after = (
            "(not shredded)"
            if node is None
            else render_ddl(node)
            if node.kind != "object"
            else f"struct<{render_ddl(node)}>"
            for node in (self.before, self.after)
        )
        return f"{self.path}: {before} -> {after}"


def diff_schemas(before: ShreddingSchema, after: ShreddingSchema) -> list[SchemaChange]:
    """List the differences, the topmost of each kind only.

    Examples
    --------
    >>> ddl = ShreddingSchema.from_ddl
    >>> [str(change) for change in diff_schemas(ddl("a array<int>"), ddl("a array<string>"))]
    ['$.a[*]: int -> string']
    """
    changes: list[SchemaChange] = []
    _compare((), before, after, changes)
    return changes


def _compare(steps: Steps, a: ShreddingSchema | None, b: ShreddingSchema | None, changes: list[SchemaChange]) -> None:
    if a == b:
        return
    if a is not None and b is not None and a.kind == b.kind == "object":
        for name in sorted({*dict(a.fields), *dict(b.fields)}):
            _compare((*steps, name), a.field(name), b.field(name), changes)
    elif a is not None and b is not None and a.kind == b.kind == "array":
        _compare((*steps, None), a.element, b.element, changes)
    else:
        changes.append(SchemaChange(steps, a, b))
