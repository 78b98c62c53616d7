"""`shred_variant`, `unshred_variant` and `infer_shredding_schema`.

Owns the public operations. `arrays.storages` converts between layouts; `shredding` infers schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa

from parquet_variant.arrays.storages import shredded_storage, unshredded_storage
from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import check_choice
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.columns.arguments import as_variant_array, joined_slices
from parquet_variant.support.options import Layout, OnConflict

if TYPE_CHECKING:
    from parquet_variant.inference.policies.decision import Policy


def shred_variant(
    array: Any, schema: ShreddingSchema | str, *, layout: Layout = "final", threads: int | None = None
) -> VariantArray:
    r"""Shred an array under a schema.

    A value is stored in a typed column only if the column holds exactly the same value: integers and decimals in any
    numeric column that holds them, other values in a column of their own type. Other values stay in the residual.

    Parameters
    ----------
    array
        A column of Variants, or a single `Variant`, which becomes a column of one row. A shredded column is unshredded
        first, unless it has this schema and layout already.
    schema
        The shredding schema, as an object or DDL (``"a bigint, b struct<c: string>"``).
    layout
        ``"final"``, or one of the drafts: ``"draft-paths"``, ``"draft-object"``.
    threads
        Number of threads for a large column (default: one per CPU of this process).

    Raises
    ------
    MalformedVariantError
        For malformed bytes, with the row.
    SchemaError
        For invalid DDL, and for a schema with too many Parquet levels (``too-deep``).

    Examples
    --------
    >>> import parquet_variant as pv
    >>> shredded = pv.shred_variant(pv.parse_json(['{"a": 1, "b": "x"}', '{"a": "n/a"}']), "a bigint")
    >>> shredded.storage.field("typed_value").field("a").to_pylist()
    [{'value': None, 'typed_value': 1}, {'value': b'\rn/a', 'typed_value': None}]
    >>> shredded[0].to_json()
    '{"a":1,"b":"x"}'
    """
    schema = ShreddingSchema.of(schema)
    check_choice("layout", layout, get_args(Layout))
    array = as_variant_array(VariantArray.from_variants([array]) if isinstance(array, Variant) else array)
    if array.layout == layout and (layout == "unshredded" or array.schema == schema):
        return array

    def shredded(part: VariantArray) -> pa.StructArray:
        return shredded_storage(part.to_unshredded().storage, schema, layout)

    return trusted_array(joined_slices(shredded, array, threads), is_checked=True)


def unshred_variant(array: Any, *, on_conflict: OnConflict = "error", threads: int | None = None) -> VariantArray:
    """Unshred a column of any layout.

    Parameters
    ----------
    array
        A column of any layout; an unshredded column is returned unchanged.
    on_conflict
        Handling of rows whose ``value`` and ``typed_value`` contradict each other: ``"error"`` raises, ``"typed"`` uses
        ``typed_value`` (spec: "engines should fail. If engines choose to read …, the typed_value column must be used").
    threads
        Number of threads for a large column (default: one per CPU of this process).

    Raises
    ------
    ConflictError
        For contradictory columns, with row and path.
    MalformedVariantError
        For malformed bytes.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> shredded = pv.shred_variant(pv.parse_json(['{"a": 1, "b": 2}', "7"]), "a bigint")
    >>> pv.unshred_variant(shredded).to_pylist()
    [{'a': 1, 'b': 2}, 7]
    """
    check_choice("on_conflict", on_conflict, get_args(OnConflict))
    array = as_variant_array(array)
    layout = array.layout
    if layout == "unshredded":
        return array
    return trusted_array(
        joined_slices(lambda part: unshredded_storage(part.storage, layout, on_conflict), array, threads)
    )


def infer_shredding_schema(data: Any, policy: str | Policy = "auto", *, threads: int | None = None) -> ShreddingSchema:
    """Infer a shredding schema.

    Parameters
    ----------
    data
        A column of Variants, or its profile.
    policy
        ``"auto"`` or ``"spark"``; or a policy object, for other constants and for policies that have
        arguments (``ExplicitPolicy``, ``HintsPolicy``, ``WorkloadPolicy``).
    threads
        Number of threads for a large column (default: one per CPU of this process).

    Returns
    -------
    ShreddingSchema
        The schema; its `to_ddl` and `to_json` can be edited and passed wherever a schema is accepted. For the reasons
        see `parquet_variant.inference.infer.infer`.

    Raises
    ------
    VariantError
        For an unknown policy (``bad-policy``).
    MalformedVariantError
        For malformed bytes.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"id": %d, "price": %d.5}' % (n, n) for n in range(200)])
    >>> pv.infer_shredding_schema(rows).to_ddl()
    'id bigint, price decimal(4,1)'
    """
    # Imported here because queries of shredded files infer nothing.
    from parquet_variant.inference.infer import infer
    from parquet_variant.inference.profile import Profile

    return infer(data if isinstance(data, Profile) else as_variant_array(data), policy, threads=threads).schema
