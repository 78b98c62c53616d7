"""Decisions for a schema that was not chosen path by path: what it does to the data of a profile.

Owns walking profile and schema together. Leaves where the schema came from to the policies that use this.
"""

from __future__ import annotations

from collections.abc import Callable

from parquet_variant.path import WILDCARD, VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.schema.tree import node_name
from parquet_variant.shredding.column_gain import bytes_saved, typed_share
from parquet_variant.shredding.policies.decision import Decision
from parquet_variant.shredding.profile import Profile
from parquet_variant.shredding.profile_path import PathProfile

Reason = Callable[[VariantPath], "str | None"]


def decisions_for(
    profile: Profile,
    schema: ShreddingSchema,
    *,
    chosen: str = "given",
    left: str = "not given",
    why: Reason | None = None,
) -> tuple[Decision, ...]:
    """A decision for every node of the schema, and for every path of the data that is just outside it.

    `chosen` and `left`: what to call what is in the schema and what is not.
    `why`: says more of a path, in the schema or not; None for nothing.
    """
    decisions: list[Decision] = []

    def reason(path: VariantPath, otherwise: str) -> str:
        return (why(path) if why is not None else None) or otherwise

    def walk(path_profile: PathProfile | None, node: ShreddingSchema, path: VariantPath) -> None:
        if path_profile is None:
            text = f"{reason(path, chosen)}, but not in the data"
            decisions.append(Decision(path, node_name(node), 0, 0.0, 0.0, 0, text))
        else:
            share = typed_share(path_profile, node)
            text = reason(path, chosen)
            if share < 1:
                text = f"{text}: {types_in_words(path_profile)}"
            decisions.append(
                Decision.of(path, path_profile, node_name(node), share, bytes_saved(path_profile, node), text)
            )
        fields = dict(node.fields)
        known = {str(child.segment): child for child in path_profile.fields} if path_profile is not None else {}
        names = sorted({*fields, *known}) if node.kind == "object" else []
        for name in names:
            if name in fields:
                walk(known.get(name), fields[name], path / name)
            else:
                outside(known[name], path / name)
        if node.element is not None:
            walk(path_profile.element if path_profile is not None else None, node.element, path / WILDCARD)

    def outside(path_profile: PathProfile, path: VariantPath) -> None:
        decisions.append(Decision.of(path, path_profile, None, 0.0, 0, reason(path, left)))

    walk(profile.root, schema, VariantPath())
    return tuple(decisions)


def types_in_words(path_profile: PathProfile) -> str:
    """The types at a path and their shares, the most frequent first."""
    types: dict[str, int] = {}
    for name, count in path_profile.types.items():
        group = "number" if name.startswith(("int", "decimal")) else str(name)
        types[group] = types.get(group, 0) + count
    parts = sorted(types.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count / path_profile.count:.1%} {name}" for name, count in parts)
