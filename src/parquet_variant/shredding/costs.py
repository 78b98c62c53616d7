"""What a choice costs: for every path what is typed, null, in the residual and missing, and the bytes of each.

Owns these figures, all of them estimates from a profile, and what one more typed path would change. Leaves the choice
to the policies and the wording of the whole to `explain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parquet_variant.errors import SchemaError
from parquet_variant.path import VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.column_gain import bytes_saved, typed_count
from parquet_variant.shredding.profile import Profile

if TYPE_CHECKING:
    from parquet_variant.shredding.policies.decision import Decision, InferenceResult


@dataclass(frozen=True, slots=True)
class PathCost:
    """What becomes of the places where a path could have a value: the four counts are all of them."""

    # Values in the typed column or group; Variant nulls; values of other types; places without a value.
    typed: int
    null: int
    residual: int
    missing: int
    residual_bytes: int  # Encoded bytes that stay in the residual, with all that is inside them.

    @property
    def places(self) -> int:
        """Rows, or elements of the arrays above."""
        return self.typed + self.null + self.residual + self.missing

    def share(self, part: str) -> float:
        """One of the four counts as a share of the places."""
        count: int = getattr(self, part)
        return count / self.places if self.places else 0.0


@dataclass(frozen=True, slots=True)
class Costs:
    """The same for all paths that were looked at, and the encoded bytes of all values together."""

    total_bytes: int
    paths: dict[VariantPath, PathCost]

    @property
    def residual_bytes(self) -> int:
        """Encoded bytes that stay in residuals."""
        return min(sum(each.residual_bytes for each in self.paths.values()), self.total_bytes)


def costs_of(result: InferenceResult, profile: Profile) -> Costs:
    """What a choice costs, by the profile that it was made from."""
    root = profile.root
    cost_of_path = {
        decision.path: cost for decision in result.decisions if (cost := _cost(decision, profile)) is not None
    }
    return Costs(root.encoded_bytes if root is not None else 0, cost_of_path)


def _cost(decision: Decision, profile: Profile) -> PathCost | None:
    path_profile = profile.get(decision.path)
    if path_profile is None:
        return None
    values = path_profile.count - path_profile.null_count
    typed = round(decision.typed_share * values) if decision.type not in (None, "variant") else 0
    left = values - typed
    stay = (
        path_profile.encoded_bytes
        if decision.type is None
        else round(path_profile.scalar_bytes * left / max(path_profile.count, 1))
    )
    return PathCost(typed, path_profile.null_count, left, max(path_profile.places - path_profile.count, 0), stay)


@dataclass(frozen=True, slots=True)
class Also:
    """What one more typed path would change."""

    # The path, and the type as DDL.
    path: VariantPath
    type: str
    # Values at the path, and how many the column would hold.
    values: int
    typed: int
    # Encoded bytes that would leave the residual, and bytes of the column, before compression.
    taken: int
    column: int

    @property
    def saved(self) -> int:
        """What is saved; negative if it costs more than it saves."""
        return self.taken - self.column


def also(profile: Profile, path: str | VariantPath, kind: str) -> Also:
    """What typing one more path would cost and save.

    Raises `SchemaError` for a type that is none, or that has no column of its own.

    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"n": 1}', '{"n": "x", "brand": "one of two"}', '{"brand": "one of two"}'] * 50)
    >>> what = also(Profile.of_array(rows), "$.brand", "string")
    >>> what.values, what.typed, what.saved > 0
    (100, 100, True)
    """
    parsed = VariantPath.parse(path)
    node = ShreddingSchema.from_ddl(f"x {kind}").fields[0][1]
    if node.type is None:
        raise SchemaError(f"{kind} is no type of a column: give one such as string or bigint", reason="bad-type")
    path_profile = profile.get(parsed)
    if path_profile is None:
        return Also(parsed, kind, 0, 0, 0, 0)
    typed = typed_count(path_profile, node)
    taken = round(path_profile.scalar_bytes * typed / max(path_profile.count, 1)) + typed * path_profile.bytes_beside
    return Also(parsed, kind, path_profile.count, typed, taken, max(taken - bytes_saved(path_profile, node), 0))
