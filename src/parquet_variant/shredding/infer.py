"""`infer`: from a profile to a shredding schema, by a named policy, with the reasons.

Owns finding the policy. Leaves the choice to `policies` and profiling to `profile`.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import cast

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.shredding.costs import costs_of
from parquet_variant.shredding.policies.decision import InferenceResult, Policy, RowsPolicy
from parquet_variant.shredding.profile import Profile
from parquet_variant.shredding.typed_texts import TypedText

# Policy name -> its class in the module of that name.
POLICIES = {
    "auto": "AutoPolicy",
    "spark": "SparkPolicy",
    "explicit": "ExplicitPolicy",
    "hints": "HintsPolicy",
    "tiles": "TilesPolicy",
    "workload": "WorkloadPolicy",
}


def policy_named(name: str) -> Policy:
    """A policy with its default constants; `VariantError` for one that is not there, or that needs to be told more.

    >>> policy_named("auto").max_columns
    300
    """
    if name not in POLICIES:
        raise VariantError(f"there is no policy {name!r}: use {', '.join(POLICIES)}", reason="bad-policy")
    policy = getattr(import_module(f"parquet_variant.shredding.policies.{name}"), POLICIES[name])
    try:
        return cast(Policy, policy())
    except TypeError:
        raise VariantError(
            f"the policy {name!r} has no defaults: pass a {POLICIES[name]} instead of its name", reason="bad-policy"
        ) from None


def infer(
    data: Profile | VariantArray, policy: str | Policy | None = None, *, threads: int | None = 1
) -> InferenceResult:
    """Choose what to shred.

    Parameters
    ----------
    data
        A profile, or an array to profile. Two policies look at rows where they get an array: ``spark`` at the first
        ones only, ``tiles`` at which paths occur together.
    policy
        A policy, or the name of one with default constants; ``"auto"`` if None.
    threads
        How many profile an array; None for one for each CPU that this process may use.

    Raises
    ------
    VariantError
        For an unknown policy (``bad-policy``).
    MalformedVariantError
        For an array of values that are no Variants.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> result = infer(pv.parse_json(['{"id": %d, "name": "row %d"}' % (n, n) for n in range(200)]))
    >>> result.schema.to_ddl()
    'id bigint, name string'
    >>> result.decision("$.id").reason
    'all bigint'
    """
    chosen = policy_named(policy or "auto") if policy is None or isinstance(policy, str) else policy
    if not isinstance(data, Profile) and isinstance(chosen, RowsPolicy):
        return chosen.choose_rows(data)
    if not hasattr(chosen, "choose"):
        raise VariantError(
            f"policy is a {type(chosen).__name__}: give the name of one ({', '.join(POLICIES)}), or a policy",
            reason="bad-policy",
        )
    profile = data if isinstance(data, Profile) else Profile.of_array(data, threads=threads)
    result = chosen.choose(profile)
    typed_texts = TypedText.of_counts(profile.typed_texts)
    return replace(result, costs=costs_of(result, profile), typed_texts=typed_texts)
