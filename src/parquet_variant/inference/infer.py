"""`infer`: a shredding schema for a profile, chosen by a named policy, with the reasons.

Owns finding the policy. `policies` decides, `profile` profiles.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.decision import InferenceResult, Policy
from parquet_variant.inference.policies.explicit import ExplicitPolicy, HintsPolicy, WorkloadPolicy
from parquet_variant.inference.policies.spark import SparkPolicy
from parquet_variant.inference.profile import Profile

# The classes of the policies by name.
POLICIES: dict[str, type[Any]] = {
    "auto": AutoPolicy,
    "spark": SparkPolicy,
    "explicit": ExplicitPolicy,
    "hints": HintsPolicy,
    "workload": WorkloadPolicy,
}


def policy_named(name: str) -> Policy:
    """Return a policy with its default constants.

    Raises `VariantError` for an unknown policy, and for one that has required arguments.

    >>> policy_named("auto").max_columns
    300
    """
    if name not in POLICIES:
        raise VariantError(f"unknown policy {name!r}: use {', '.join(POLICIES)}", reason="bad-policy")
    try:
        policy: Policy = POLICIES[name]()
    except TypeError:
        raise VariantError(
            f"policy {name!r} has required arguments: pass a {POLICIES[name].__name__} object", reason="bad-policy"
        ) from None
    return policy


def infer(
    data: Profile | VariantArray, policy: str | Policy | None = None, *, threads: int | None = 1
) -> InferenceResult:
    """Infer a shredding schema.

    `data`: a profile, or an array to profile; the policy ``spark`` uses only its first rows.
    `policy`: a policy, or the name of a policy with default constants (default: ``"auto"``).
    `threads`: number of threads that profile an array; None for one per CPU of this process.
    Raises `VariantError` for an unknown policy (``bad-policy``), `MalformedVariantError` for an array with malformed
    bytes.

    >>> import parquet_variant as pv
    >>> result = infer(pv.parse_json(['{"id": %d, "name": "row %d"}' % (n, n) for n in range(200)]))
    >>> result.schema.to_ddl()
    'id bigint, name string'
    >>> result.decision("$.id").reason
    'all bigint'
    """
    chosen_policy = policy_named(policy or "auto") if policy is None or isinstance(policy, str) else policy
    if not isinstance(data, Profile) and isinstance(chosen_policy, SparkPolicy):
        return chosen_policy.choose_rows(data)
    if not hasattr(chosen_policy, "choose"):
        raise VariantError(
            f"policy is a {type(chosen_policy).__name__}: pass a name ({', '.join(POLICIES)}) or a policy object",
            reason="bad-policy",
        )
    return chosen_policy.choose(data if isinstance(data, Profile) else Profile.of_array(data, threads=threads))
