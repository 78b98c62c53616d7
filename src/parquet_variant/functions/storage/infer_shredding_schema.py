"""`infer_shredding_schema`: which paths of some Variants should be typed columns.

Owns the public operation. Leaves the profile and the choice to `shredding`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.functions.inputs.arrow_input import as_variant_array
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.infer import infer
from parquet_variant.shredding.policies.decision import Policy
from parquet_variant.shredding.profile import Profile


def infer_shredding_schema(data: Any, policy: str | Policy = "auto", *, threads: int | None = None) -> ShreddingSchema:
    """Choose a shredding schema.

    Parameters
    ----------
    data
        A column of Variants, or its profile.
    policy
        ``"auto"``, ``"spark"`` or ``"tiles"``; or an instance of a policy with other constants, or of one that must be
        told more (``ExplicitPolicy``, ``HintsPolicy``, ``WorkloadPolicy``).
    threads
        How many look at parts of a large column; by default one for each CPU that this process may use.

    Returns
    -------
    ShreddingSchema
        Its `to_ddl` and `to_json` can be edited and given back to whatever takes a schema. For the reasons see
        `parquet_variant.shredding.infer.infer`.

    Raises
    ------
    VariantError
        For an unknown policy (``bad-policy``).
    MalformedVariantError
        For values that are no Variants.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"id": %d, "price": %d.5}' % (n, n) for n in range(200)])
    >>> pv.infer_shredding_schema(rows).to_ddl()
    'id bigint, price decimal(4,1)'
    """
    return infer(data if isinstance(data, Profile) else as_variant_array(data), policy, threads=threads).schema
