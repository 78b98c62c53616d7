"""`WorkloadPolicy`: what is queried is shredded first, whatever else the budget allows after it.

Owns weights and where they come from: a mapping, a query log, an earlier schema. Leaves the rest to another policy.

Source: the issue's own design, after the column selection of workload-driven stores: a column is worth what its queries
save, so its weight is the first order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from parquet_variant.errors import PathError
from parquet_variant.path import WILDCARD, VariantPath, is_within
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.estimate import predict
from parquet_variant.shredding.policies.auto import AutoPolicy
from parquet_variant.shredding.policies.column_types import best_column
from parquet_variant.shredding.policies.decision import (
    InferenceResult,
    Policy,
    check_constants,
    decisions_for,
    schema_of_leaves,
)
from parquet_variant.shredding.profile import Profile
from parquet_variant.shredding.profile_path import PathProfile

# A path as queries write it: in quotes, from the root.
_QUOTED_PATH = re.compile(r"""'(\$(?:[^']|'')*)'|"(\$[^"]*)\"""")


@dataclass(frozen=True, slots=True)
class WorkloadPolicy:
    """What is queried is shredded first.

    Parameters
    ----------
    weights
        Paths with how often (or how dearly) they are queried. An index stands for every element. Paths that the data
        does not have are passed over; a path to an object or array takes all below it, in the order of frequency.
    max_columns
        Most leaves.
    rest
        The policy for what is left of the budget; None for nothing but the workload.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.shredding.infer import infer
    >>> rows = pv.parse_json(['{"a": 1, "b": {"c": "x"}}', '{"a": 2, "b": {"d": "y"}}'])
    >>> log = ["SELECT variant_get(v, '$.b.d', 'string') FROM t", "SELECT variant_get(v, '$.b.d') FROM t"]
    >>> infer(rows, WorkloadPolicy.of_queries(log, max_columns=1)).schema.to_ddl()
    'b struct<d: string>'
    """

    name: ClassVar[str] = "workload"  # What `infer` takes.
    weights: Mapping[str, float] | tuple[tuple[str, float], ...]
    max_columns: int = 300
    rest: Policy | None = field(default_factory=AutoPolicy)

    def __post_init__(self) -> None:
        check_constants(self)
        weights: dict[str, float] = {}
        for path, weight in dict(self.weights).items():
            segments = VariantPath.parse(path).segments
            name = str(VariantPath(tuple(segment if isinstance(segment, str) else WILDCARD for segment in segments)))
            weights[name] = weights.get(name, 0.0) + float(weight)
        object.__setattr__(self, "weights", tuple(sorted(weights.items(), key=lambda item: (-item[1], item[0]))))

    @classmethod
    def of_queries(cls, queries: Iterable[str], **options: Any) -> WorkloadPolicy:
        """Weigh paths by how many of some SQL texts name them, in quotes: ``variant_get(v, '$.a.b', 'int')``.

        Parameters
        ----------
        queries
            SQL texts; those that name no path count for nothing.
        **options
            ``max_columns`` and ``rest``.
        """
        seen: Counter[str] = Counter()
        for query in queries:
            for text in {match[1] or match[2] for match in _QUOTED_PATH.finditer(query)}:
                try:
                    seen[str(VariantPath.parse(text.replace("''", "'")))] += 1
                except PathError:
                    continue  # a text that looks like a path
        return cls(dict(seen), **options)

    @classmethod
    def of_schema(cls, schema: ShreddingSchema, **options: Any) -> WorkloadPolicy:
        """Weigh the leaves of an earlier schema alike, so that they stay where the data still has them.

        Parameters
        ----------
        schema
            The earlier schema.
        **options
            ``max_columns`` and ``rest``.
        """
        return cls({str(path): 1.0 for path, _ in schema.leaves()}, **options)

    def choose(self, profile: Profile) -> InferenceResult:
        """The schema for data of this profile, and why."""
        leaves: dict[VariantPath, ShreddingSchema] = {}
        reasons: dict[VariantPath, str] = {}
        for queried, weight in dict(self.weights).items():
            path_profile = profile.get(queried)
            for leaf_path, leaf, _ in sorted(_leaves(path_profile), key=lambda item: (-item[2], str(item[0]))):
                self._add(leaves, reasons, leaf_path, leaf, f"queried, weight {weight:g}")
        if self.rest is not None:
            rest = self.rest.choose(profile)
            order = {decision.path: decision.row_share for decision in rest.decisions}
            for path, leaf in sorted(rest.schema.leaves(), key=lambda item: (-order.get(item[0], 0), str(item[0]))):
                self._add(leaves, reasons, path, leaf, f"room left: {self.rest.name}")
        schema = schema_of_leaves(leaves)
        decisions = decisions_for(
            profile, schema, chosen="on the way", left="neither queried nor chosen for the room left", why=reasons.get
        )
        return InferenceResult(schema, decisions, self, profile.rows, predict(profile, schema))

    def _add(
        self,
        leaves: dict[VariantPath, ShreddingSchema],
        reasons: dict[VariantPath, str],
        path: VariantPath,
        leaf: ShreddingSchema,
        reason: str,
    ) -> None:
        if path in leaves or any(is_within(path, taken) or is_within(taken, path) for taken in leaves):
            return
        if len(leaves) < self.max_columns:
            leaves[path] = leaf
            reasons[path] = reason
        else:
            reasons[path] = f"{reason}, over the budget of {self.max_columns} columns"


def _leaves(path_profile: PathProfile | None) -> list[tuple[VariantPath, ShreddingSchema, int]]:
    """The typed leaves at and below a path, with their values."""
    column = best_column(path_profile) if path_profile is not None else None
    if path_profile is None or column is None:
        return []
    if column.arrow is not None:
        return [(path_profile.path, ShreddingSchema.primitive(column.arrow), path_profile.count)]
    if column.name == "object":
        return [leaf for child in path_profile.fields for leaf in _leaves(child)]
    return _leaves(path_profile.element)
