"""`WorkloadPolicy`: queried paths are shredded first, and another policy uses the rest of the budget.

Owns weights and their sources: a mapping, a query log, an earlier schema.

Source: the column selection of workload-driven stores. A column is worth what it saves its queries, so the weight
determines the order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from parquet_variant.errors import PathError
from parquet_variant.inference.columns import typed_leaves
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.decision import (
    InferenceResult,
    Policy,
    check_constants,
    result_of,
    schema_of_leaves,
)
from parquet_variant.inference.profile import Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.types.path import WILDCARD, VariantPath, is_within

# A path as queries write it: in quotes, from the root.
_QUOTED_PATH = re.compile(r"""'(\$(?:[^']|'')*)'|"(\$[^"]*)\"""")


@dataclass(frozen=True, slots=True)
class WorkloadPolicy:
    """Shred queried paths first.

    Parameters
    ----------
    weights
        How often (or at what cost) paths are queried. An index stands for every element. Paths that are not in the data
        are ignored; a path of an object or array includes all paths below it, in the order of frequency.
    max_columns
        Maximum number of leaves.
    fallback
        The policy for the rest of the budget; None to shred only queried paths.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = pv.parse_json(['{"a": 1, "b": {"c": "x"}}', '{"a": 2, "b": {"d": "y"}}'])
    >>> log = ["SELECT variant_get(v, '$.b.d', 'string') FROM t", "SELECT variant_get(v, '$.b.d') FROM t"]
    >>> infer(rows, WorkloadPolicy.of_queries(log, max_columns=1)).schema.to_ddl()
    'b struct<d: string>'
    """

    name: ClassVar[str] = "workload"  # What `infer` takes.
    weights: Mapping[str, float] | tuple[tuple[str, float], ...]
    max_columns: int = 300
    fallback: Policy | None = field(default_factory=AutoPolicy)

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
        """Weight paths by the number of SQL statements that contain them in quotes: ``variant_get(v, '$.a.b', 'int')``.

        Parameters
        ----------
        queries
            SQL statements; those without paths are ignored.
        **options
            ``max_columns`` and ``fallback``.
        """
        seen: Counter[str] = Counter()
        for query in queries:
            for text in {match[1] or match[2] for match in _QUOTED_PATH.finditer(query)}:
                try:
                    seen[str(VariantPath.parse(text.replace("''", "'")))] += 1
                except PathError:
                    continue  # a string that looks like a path
        return cls(dict(seen), **options)

    @classmethod
    def of_schema(cls, schema: ShreddingSchema, **options: Any) -> WorkloadPolicy:
        """Weight the leaves of an earlier schema equally, so that they are kept if the data still has them.

        Parameters
        ----------
        schema
            The earlier schema.
        **options
            ``max_columns`` and ``fallback``.
        """
        return cls({str(path): 1.0 for path, _ in schema.leaves()}, **options)

    def choose(self, profile: Profile) -> InferenceResult:
        """Return the schema for data with this profile, and the reasons."""
        leaves: dict[VariantPath, ShreddingSchema] = {}
        reasons: dict[VariantPath, str] = {}

        def add(path: VariantPath, leaf: ShreddingSchema, reason: str) -> None:
            if path in leaves or any(is_within(path, taken) or is_within(taken, path) for taken in leaves):
                return
            if len(leaves) < self.max_columns:
                leaves[path], reasons[path] = leaf, reason
            else:
                reasons[path] = f"{reason}, over the budget of {self.max_columns} columns"

        for queried, weight in dict(self.weights).items():
            below = typed_leaves(profile.get(queried))
            for path, _, leaf in sorted(below, key=lambda item: (-item[1].count, str(item[0]))):
                add(path, leaf, f"queried, weight {weight:g}")
        if self.fallback is not None:
            other = self.fallback.choose(profile)
            order = {decision.path: decision.row_share for decision in other.decisions}
            for path, leaf in sorted(other.schema.leaves(), key=lambda item: (-order.get(item[0], 0), str(item[0]))):
                add(path, leaf, f"chosen by {self.fallback.name}")
        return result_of(
            self,
            profile,
            schema_of_leaves(leaves) if leaves else None,
            reasons,
            outside_reason="neither queried nor chosen by the other policy",
        )
