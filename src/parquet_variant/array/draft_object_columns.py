"""Draft ``object`` and the final layout, column by column.

Owns turning one storage into the other: the same typed columns under other names. Leaves what the columns cannot decide
to the scalar fallback (`Undecided`), and the binaries to `draft_parts`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.draft_parts import (
    Binaries,
    Int64s,
    combined,
    final_storage,
    list_of,
    list_parts,
    struct_of,
    undecided_if,
)
from parquet_variant.array.parts import columns_of, metadata_parts
from parquet_variant.kernels.values.name_tables import NameTable, name_table
from parquet_variant.schema.draft_object_storage import ObjectNode, object_plan
from parquet_variant.schema.shredding_schema import ShreddingSchema


def draft_object_of_final(storage: pa.StructArray, schema: ShreddingSchema) -> pa.StructArray:
    """Turn a storage of the final layout, without conflicts as `shred_variant` makes it, into one of draft ``object``.

    Raises `Undecided` for values whose bytes only the scalar fallback can rewrite.
    """
    columns = columns_of(storage)
    metadata = metadata_parts(columns["metadata"])
    group = _draft(columns, schema, metadata.indices.astype(np.int64), name_table(metadata.dictionary))
    return struct_of(group, storage.is_null())


def _draft(
    columns: dict[str, pa.Array], schema: ShreddingSchema, rows: Int64s, names: NameTable
) -> dict[str, pa.Array]:
    draft = {"untyped_value": combined(columns.get("value"), rows, names)}
    if schema.kind == "variant":
        return draft
    typed = columns["typed_value"]
    if schema.kind == "object":
        below = columns_of(typed)
        fields = {}
        for name, child in schema.fields:
            pair = columns_of(below[name])
            missing = pc.and_(pair["value"].is_null(), pair["typed_value"].is_null() if "typed_value" in pair else True)
            fields[name] = struct_of(_draft(pair, child, rows, names), missing)
        draft["object"] = struct_of(fields, typed.is_null())
    elif schema.element is not None:
        lengths, elements = list_parts(typed)
        element = _draft(columns_of(elements), schema.element, np.repeat(rows, lengths), names)
        draft["array"] = list_of(lengths, struct_of(element, None), typed.is_null())
    else:
        draft["typed_value"] = typed
    return draft


def final_of_draft_object(storage: pa.StructArray) -> pa.StructArray:
    """Turn a storage of draft ``object`` into one of the final layout, with one dictionary for all rows.

    Conflicts are carried over: `kernels.shredding.unshred` finds them. Raises `Undecided` for groups of several shapes,
    and for binaries that only the scalar fallback can read.
    """
    plan = object_plan(storage.type)
    binaries, names = Binaries(), set[str]()
    _collect(storage, plan, binaries, names)
    return final_storage(storage.is_null(), names, binaries, lambda values, _: _final(storage, plan, values))


def _collect(group: pa.StructArray, node: ObjectNode, binaries: Binaries, names: set[str]) -> None:
    undecided_if((node.fields is not None) + (node.element is not None) + (node.typed is not None) > 1)
    columns = columns_of(group)
    if node.has_untyped:
        binaries.add_combined(columns["untyped_value"])
    if node.fields is not None:
        names.update(node.fields)
        below = columns_of(columns["object"])
        for name, child in node.fields.items():
            _collect(below[name], child, binaries, names)
    elif node.element is not None:
        _collect(list_parts(columns["array"])[1], node.element, binaries, names)


def _final(group: pa.StructArray, node: ObjectNode, values: Iterator[pa.Array]) -> dict[str, pa.Array]:
    columns = columns_of(group)
    final = {"value": next(values)} if node.has_untyped else {}
    if node.fields is not None:
        below = columns_of(columns["object"])
        fields = {name: struct_of(_final(below[name], child, values), None) for name, child in node.fields.items()}
        final["typed_value"] = struct_of(fields, columns["object"].is_null())
    elif node.element is not None:
        lengths, elements = list_parts(columns["array"])
        element = struct_of(_final(elements, node.element, values), None)
        final["typed_value"] = list_of(lengths, element, columns["array"].is_null())
    elif node.typed is not None:
        final["typed_value"] = columns["typed_value"]
    return final
