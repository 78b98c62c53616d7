"""`AutoPolicy`: shred what pays.

Owns the default rules and their constants. Leaves the type of a column to `column_types`.

Source: our own measurements (docs/inference.md). A path gets a column if what its values cost in the residual (their
bytes, field id and offset) outweighs what a column costs (pages, statistics, levels). The column has the type of most
values, whatever the rest; Variant nulls do not count against a type.
"""

from __future__ import annotations

from dataclasses import dataclass

from parquet_variant.path import WILDCARD, VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.policies.column_types import ColumnType, best_column
from parquet_variant.shredding.policies.decision import Decision, InferenceResult
from parquet_variant.shredding.profile import Profile
from parquet_variant.shredding.profile_path import PathProfile

__all__ = ["AutoPolicy"]


@dataclass(frozen=True, slots=True)
class AutoPolicy:
    """Shred what pays.

    Parameters
    ----------
    min_share
        A path that is in a smaller share of the objects above it is not shredded.
    min_type_share
        A column needs this share of a path's values to be of its type; else the path is a column without a type.
    column_bytes
        What a column must save at least, in bytes.
    max_columns
        Most typed columns; those that save most are kept.
    max_depth
        Deepest path.
    map_keys
        An object with at least so many distinct keys is a map if most of its fields have rare keys.
    rare_key
        A key in a smaller share of the objects is rare.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.shredding.infer import infer
    >>> rows = ['{"task": %d}' % n for n in range(72)] + ['{"task": "none"}'] * 28
    >>> result = infer(pv.parse_json(rows), AutoPolicy(column_bytes=0))
    >>> result.schema.to_ddl(), result.decision("$.task").typed_share
    ('task bigint', 0.72)
    """

    min_share: float = 0.01
    min_type_share: float = 0.5
    column_bytes: int = 256
    max_columns: int = 300
    max_depth: int = 50
    map_keys: int = 64
    rare_key: float = 0.05

    @property
    def name(self) -> str:
        """The name that `infer` takes."""
        return "auto"

    def choose(self, profile: Profile) -> InferenceResult:
        """The schema for data of this profile, and why."""
        return _Chooser(self, profile).result()


class _Chooser:
    def __init__(self, policy: AutoPolicy, profile: Profile) -> None:
        self.policy = policy
        self.profile = profile
        self.decisions: list[Decision] = []

    def result(self) -> InferenceResult:
        root = self.profile.root
        schema = self.node(root, VariantPath()) if root is not None else None
        return InferenceResult(
            schema or ShreddingSchema.variant(), tuple(self.decisions), self.policy, self.profile.rows
        )

    def decide(
        self, found: PathProfile, path: VariantPath, kind: str | None, share: float, saved: int, reason: str
    ) -> int:
        self.decisions.append(Decision(path, kind, found.count, found.row_share, share, saved, reason))
        return len(self.decisions) - 1

    def node(self, found: PathProfile, path: VariantPath) -> ShreddingSchema | None:
        """The schema at a path that is to have a column, or None if it had better not."""
        column = best_column(found)
        if column is None:
            self.decide(found, path, None, 0.0, 0, "only nulls")
            return None
        if column.share < self.policy.min_type_share:
            return self.untyped(found, path, f"no type has {self.policy.min_type_share:.0%}: {_mix(column)}")
        if column.name == "object":
            return self.object(found, path, column)
        if column.name == "array":
            return self.array(found, path, column)
        saved = round(found.encoded_bytes * column.share)
        if saved < self.policy.column_bytes:
            self.decide(found, path, None, 0.0, saved, f"would save {saved} bytes only")
            return None
        self.decide(found, path, column.name, column.share, saved, _typed_reason(column))
        return ShreddingSchema.primitive(column.arrow)

    def untyped(self, found: PathProfile, path: VariantPath, reason: str) -> ShreddingSchema | None:
        saved = found.encoded_bytes
        self.decide(found, path, "variant", 0.0, 0, reason)
        return ShreddingSchema.variant() if saved >= self.policy.column_bytes else None

    def object(self, found: PathProfile, path: VariantPath, column: ColumnType) -> ShreddingSchema | None:
        fields = found.fields
        reason = self.map_reason(found, fields)
        if reason is not None:
            return self.untyped(found, path, reason)
        if len(path) >= self.policy.max_depth:
            return self.untyped(found, path, f"deeper than {self.policy.max_depth}")
        at = self.decide(found, path, "object", column.share, 0, _typed_reason(column))
        shredded = {}
        for child in fields:
            here = path / str(child.segment)
            if child.share < self.policy.min_share:
                self.decide(
                    child, here, None, 0.0, 0, f"in {child.share:.2%} of the objects, under {self.policy.min_share:.0%}"
                )
                continue
            schema = self.node(child, here)
            if schema is not None:
                shredded[str(child.segment)] = schema
        if not shredded:
            del self.decisions[at:]
            return self.untyped(found, path, "no field is worth a column")
        return ShreddingSchema.object(shredded)

    def map_reason(self, found: PathProfile, fields: list[PathProfile]) -> str | None:
        if len(fields) < self.policy.map_keys or not found.field_count:
            return None
        common = sum(field.count for field in fields if field.share >= self.policy.rare_key)
        if common >= found.field_count / 2:
            return None
        rare = 1 - common / found.field_count
        return f"a map: {len(fields)} keys, {rare:.0%} of the fields have keys in under {self.policy.rare_key:.0%}"

    def array(self, found: PathProfile, path: VariantPath, column: ColumnType) -> ShreddingSchema | None:
        element = found.element
        if element is None:
            self.decide(found, path, None, 0.0, 0, "only empty arrays")
            return None
        if len(path) >= self.policy.max_depth:
            return self.untyped(found, path, f"deeper than {self.policy.max_depth}")
        at = self.decide(found, path, "array", column.share, 0, _typed_reason(column))
        schema = self.node(element, path / WILDCARD)
        if schema is None:
            del self.decisions[at:]
            return self.untyped(found, path, "its elements are not worth a column")
        return ShreddingSchema.array(schema)


def _mix(column: ColumnType) -> str:
    total = column.held + sum(column.others.values())
    parts = [(column.name, column.held), *sorted(column.others.items(), key=lambda item: -item[1])]
    return ", ".join(f"{count / total:.1%} {name}" for name, count in parts)


def _typed_reason(column: ColumnType) -> str:
    return f"all {column.name}" if not column.others else f"{_mix(column)}; the rest is residual"
