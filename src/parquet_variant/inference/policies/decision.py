"""The result of a policy: a schema, and for every considered path the decision and its reason.

Owns these records, the protocol of policies, and what policies share: checks of their constants, building a schema from
leaves, and decisions for a schema that was not chosen path by path. `inference.explain` formats the result.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Protocol

from parquet_variant.errors import VariantError
from parquet_variant.inference.columns import bytes_saved, type_groups, typed_share
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.inference.typed_strings import TypedStrings, TypeSuggestion, suggest_epochs, suggest_types
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import MAX_PHYSICAL_DEPTH
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, Segment, VariantPath


class Decision(Record):
    """The decision for one path, where ``[*]`` is every element of an array, and what it does to the values there.

    `type`: the DDL name of the typed column, ``"object"``, ``"array"``, ``"variant"`` for a separate column without a
      type, or None if the path is not shredded. Paths below such a path are not listed.
    `row_share`: share of all rows that have the path.
    `typed_share`: share of the values, Variant nulls excluded, that the typed column or group holds; the others are
      residual.
    `bytes_saved`: estimate of the bytes that leave the residual and need not be stored with each value.
    `null`, `places`: number of Variant nulls, and of places for a value: rows, objects above, or elements.
    `scalar_bytes`, `encoded_bytes`: encoded bytes of the values, without and with nested values.
    """

    path: VariantPath
    type: str | None
    count: int = 0
    row_share: float = 0.0
    typed_share: float = 0.0
    bytes_saved: int = 0
    reason: str = ""
    null: int = 0
    places: int = 0
    scalar_bytes: int = 0
    encoded_bytes: int = 0

    @property
    def shredded(self) -> bool:
        """Whether the path has its own column or group."""
        return self.type is not None

    @property
    def typed(self) -> int:
        """Number of values that are typed."""
        return round(self.typed_share * (self.count - self.null)) if self.type not in (None, "variant") else 0

    @property
    def residual(self) -> int:
        """Number of values of other types."""
        return self.count - self.null - self.typed

    @property
    def missing(self) -> int:
        """Number of places without a value."""
        return max(self.places - self.count, 0)

    @property
    def residual_bytes(self) -> int:
        """Encoded bytes that stay in the residual, nested values of a path that is not shredded included."""
        if self.type is None:
            return self.encoded_bytes
        return round(self.scalar_bytes * self.residual / max(self.count, 1))

    def share(self, part: str) -> float:
        """Return ``"typed"``, ``"null"``, ``"residual"`` or ``"missing"`` values as a share of the places."""
        count: int = getattr(self, part)
        return count / (self.count + self.missing) if self.count else 0.0


class InferenceResult(Record):
    """The result of `infer`.

    `schema`, `policy`: the shredding schema, and the policy that chose it.
    `decisions`: one decision per considered path, parents first.
    `rows`: rows of the profile.
    `typed_strings`: counts of strings that were to be typed, in the profiled rows.
    `suggested_types`: paths at which all profiled strings are dates, timestamps, UUIDs or numbers, or all numbers seem
      to count the time since 1970, with the types to use.
    """

    schema: ShreddingSchema
    decisions: tuple[Decision, ...]
    policy: Policy
    rows: int
    typed_strings: tuple[TypedStrings, ...] = ()
    suggested_types: tuple[TypeSuggestion, ...] = ()

    def narrowed(self, schema: ShreddingSchema, reason: str) -> InferenceResult:
        """Return the result with a part of its schema, and a reason for the paths that are not shredded any more."""

        def narrowed(decision: Decision) -> Decision:
            node = schema.get(decision.path)
            if not decision.shredded or (node is not None and (node.kind != "variant" or decision.type == "variant")):
                return decision
            kind = None if node is None else "variant"
            return replace(decision, type=kind, typed_share=0.0, bytes_saved=0, reason=reason)

        return replace(self, schema=schema, decisions=tuple(map(narrowed, self.decisions)))

    @property
    def total_bytes(self) -> int:
        """The encoded bytes of all values."""
        return self.decisions[0].encoded_bytes if self.decisions else 0

    @property
    def residual_bytes(self) -> int:
        """The encoded bytes that stay in residuals."""
        return min(sum(decision.residual_bytes for decision in self.decisions), self.total_bytes)

    @property
    def predictions(self) -> dict[VariantPath, Decision]:
        """The decisions for the leaves of the schema, with the expected numbers of values."""
        leaves = {path for path, _ in self.schema.leaves()}
        return {decision.path: decision for decision in self.decisions if decision.path in leaves}

    def compared_with(self, reports: Iterable[Any]) -> dict[VariantPath, tuple[float | None, float | None]]:
        """Return by leaf the predicted and the actual share of the values that are typed; None without values.

        `reports`: what a file contains at each path, as `Table.inspect` reports it.
        """

        def share(typed: int | None, untyped: int | None) -> float | None:
            return typed / (typed + untyped) if typed is not None and untyped is not None and typed + untyped else None

        actual = {report.path: share(report.typed, report.residual) for report in reports}
        return {
            path: (share(decision.typed, decision.null + decision.residual), actual.get(str(path)))
            for path, decision in self.predictions.items()
        }

    def __repr__(self) -> str:
        typed = sum(decision.shredded and decision.type not in ("object", "array") for decision in self.decisions)
        return f"<InferenceResult of {self.rows:,} rows by {self.policy.name}: {typed:,} typed paths; {self.schema!r}>"

    def _repr_html_(self) -> str:
        return self.schema._repr_html_()

    def decision(self, path: str | VariantPath) -> Decision | None:
        """Return the decision for a path, or for its nearest ancestor that was considered."""
        place = VariantPath.parse(path)
        by_path = {decision.path: decision for decision in self.decisions}
        while place not in by_path and place.segments:
            place = place.parent
        return by_path.get(place)


class Policy(Protocol):
    """A frozen dataclass with a name, its constants as fields, and `choose`."""

    @property
    def name(self) -> str:
        """The name that `infer` accepts."""

    def choose(self, profile: Profile) -> InferenceResult:
        """Return the schema for data with this profile, and the reasons."""


_SHARES = ("share", "filled", "alike", "common")


def check_constants(policy: Any) -> None:
    """Check that shares are between 0 and 1, and that counts are not negative.

    Raises `VariantError` with reason ``"bad-policy"``.

    >>> from parquet_variant.inference.policies.auto import AutoPolicy
    >>> AutoPolicy(min_row_share=2)
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: min_row_share is 2: it must be a share from 0 to 1, such as 0.15
    """
    for constant in fields(policy):
        if isinstance(constant.default, bool) or not isinstance(constant.default, int | float):
            continue
        value = getattr(policy, constant.name)
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
        if constant.name.endswith(_SHARES):
            allowed, is_allowed = "a share from 0 to 1", number and 0 <= value <= 1
        else:
            is_whole = number and (value == int(value) or not isinstance(constant.default, int))
            allowed, is_allowed = "a number of at least 0", is_whole and value >= 0
        if not is_allowed:
            problem = f"{constant.name} is {value!r}: it must be {allowed}, such as {constant.default}"
            raise VariantError(problem, reason="bad-policy")


def schema_of_leaves(leaves: Mapping[VariantPath, ShreddingSchema]) -> ShreddingSchema:
    """Build a schema from leaves, nested in the objects and arrays of their paths.

    A longer path takes precedence over its prefix. If some paths go through an object and others through an array, the
    side with more leaves is used, because a Parquet group is one or the other.

    >>> ddl = ShreddingSchema.from_ddl
    >>> paths = {"$.a.b": ddl("int"), "$.a": ddl("variant"), "$.c[*].d": ddl("date")}
    >>> schema_of_leaves({VariantPath.parse(path): leaf for path, leaf in paths.items()}).to_ddl()
    'a struct<b: int>, c array<struct<d: date>>'
    """
    return _node([(path.segments, leaf) for path, leaf in leaves.items()], 0)


def _node(leaves: list[tuple[tuple[Segment, ...], ShreddingSchema]], depth: int) -> ShreddingSchema:
    """Return the node that contains all these leaves, a number of segments below the root."""
    groups: dict[Segment, list[tuple[tuple[Segment, ...], ShreddingSchema]]] = {}
    leaf_here: ShreddingSchema | None = None
    for segments, leaf in leaves:
        if len(segments) > depth:
            groups.setdefault(segments[depth], []).append((segments, leaf))
        else:
            leaf_here = leaf
    if not groups:
        return leaf_here or ShreddingSchema.variant()
    elements = groups.pop(WILDCARD, None)
    if elements is not None and len(elements) >= sum(map(len, groups.values())):
        return ShreddingSchema.array(_node(elements, depth + 1))
    return ShreddingSchema.object({str(name): _node(leaves_below, depth + 1) for name, leaves_below in groups.items()})


def result_of(
    policy: Policy,
    profile: Profile,
    schema: ShreddingSchema | Mapping[VariantPath, ShreddingSchema] | None,
    reasons: Mapping[VariantPath, str],
    *,
    shredded_reason: str = "on the way",
    outside_reason: str | None = None,
) -> InferenceResult:
    """Return the result of a policy, with a decision for every node of a schema and for paths just outside of it.

    `schema`: the schema or its leaves; None or no leaves if nothing is shredded.
    `reasons`: the reasons by path. A path without one has `shredded_reason`, or outside of the schema `outside_reason`.
      Without `outside_reason`, the reasons are complete: paths outside of the schema that have none are not listed.
    """
    if isinstance(schema, Mapping):
        schema = schema_of_leaves(schema) if schema else None
    decisions: list[Decision] = []
    outside: dict[VariantPath, list[str]] = {}
    for path in reasons if outside_reason is None else ():
        if path.segments and isinstance(path.segments[-1], str):
            outside.setdefault(path.parent, []).append(path.segments[-1])

    def walk(path_profile: PathProfile | None, node: ShreddingSchema | None, path: VariantPath) -> None:
        default = outside_reason if node is None else shredded_reason
        reason, kind = reasons.get(path, default) or shredded_reason, None if node is None else node.type_name
        if path_profile is None:
            decisions.append(Decision(path, kind, reason=f"{reason}, but not in the data"))
        else:
            share = typed_share(path_profile, node)
            if node is not None and share < 1 and outside_reason is not None:
                types = type_groups(path_profile) | {"null": path_profile.null_count}
                parts = sorted(types.items(), key=lambda item: (-item[1], item[0]))
                reason = f"{reason}: " + ", ".join(f"{n / path_profile.count:.1%} {name}" for name, n in parts if n)
            decisions.append(Decision(
                path, kind, count=path_profile.count, row_share=path_profile.row_share, typed_share=share,
                bytes_saved=bytes_saved(path_profile, node), null=path_profile.null_count, places=path_profile.places,
                scalar_bytes=path_profile.scalar_bytes, encoded_bytes=path_profile.encoded_bytes, reason=reason,
            ))  # fmt: skip
        if node is not None and node.kind == "object":
            names = {name for name, _ in node.fields} | set(outside.get(path, ()))
            if outside_reason is not None and path_profile is not None:
                names |= {str(field.segment) for field in path_profile.fields}
            for name in sorted(names):
                walk(path_profile.field(name) if path_profile is not None else None, node.field(name), path / name)
        elif node is not None and node.element is not None:
            walk(path_profile.element if path_profile is not None else None, node.element, path / WILDCARD)

    if schema is not None or profile.root is not None:
        walk(profile.root, schema, VariantPath())
    schema = schema or ShreddingSchema.variant()
    result = InferenceResult(schema, tuple(decisions), policy, profile.rows)
    limited = schema.limited_to(MAX_PHYSICAL_DEPTH)
    if limited != schema:
        reason = f"deeper than {MAX_PHYSICAL_DEPTH} Parquet levels, which some readers refuse"
        result = result.narrowed(limited, reason)
    return replace(
        result,
        typed_strings=TypedStrings.of_counts(profile.typed_strings),
        suggested_types=(*suggest_types(profile), *suggest_epochs(profile)),
    )
