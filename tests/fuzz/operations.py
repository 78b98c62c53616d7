"""Everything that can be done with a column of Variants, each ending in a result or in an error of ours."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import parquet_variant as pv
from fuzz.samples import random_ddl
from parquet_variant.ops.columns.arguments import as_variant_array

__all__ = ["OPERATIONS", "ended"]

_PATHS = ["$", "$.a", "$.b[1]", "$[0]", "$.a.b", "$[*]", "$.a[*].b", "$['']"]
_TYPES = ["variant", "int", "string", "double", "decimal(20, 3)", "boolean", "timestamp", "date", "binary", "uuid",
          "array<int>", "struct<a: int>", "map<string, string>", "array<variant>"]  # fmt: skip

Operation = Callable[[random.Random, Any], Any]
OPERATIONS: dict[str, Operation] = {
    "to_json": lambda source, v: pv.to_json(v, on_conflict=source.choice(["error", "typed"])),
    "try_to_json": lambda source, v: pv.to_json(v, errors="null"),
    "validate": lambda source, v: pv.validate(v, source.choice([0, 3, 1000])),
    "infer": lambda source, v: pv.infer_shredding_schema(v),
    "shred": lambda source, v: pv.shred_variant(v, random_ddl(source)),
    "unshred": lambda source, v: pv.unshred_variant(v, on_conflict=source.choice(["error", "typed"])),
    "draft": lambda source, v: pv.shred_variant(
        v, random_ddl(source), layout=source.choice(["draft-paths", "draft-object"])
    ),
    "get": lambda source, v: pv.variant_get(v, source.choice(_PATHS), source.choice(_TYPES)),
    "try_get": lambda source, v: pv.variant_get(v, source.choice(_PATHS), source.choice(_TYPES), errors="null"),
    "type": lambda source, v: pv.variant_type(v),
    "is_null": lambda source, v: pv.is_variant_null(v, source.choice(_PATHS[:5])),
    "schema_of": lambda source, v: pv.schema_of_variant(v),
    "schema_of_agg": lambda source, v: pv.schema_of_variant_agg(v),
    "explode": lambda source, v: pv.variant_explode(v, outer=True),
    "normalize": lambda source, v: pv.variant_normalize(v),
    "strip": lambda source, v: pv.strip_nulls(v),
    "set": lambda source, v: pv.variant_set(v, "$.a", 1),
    "delete": lambda source, v: pv.variant_delete(v, "$[0]", "$.a"),
    "append": lambda source, v: pv.variant_array_append(v, "$", 1),
    "equals": lambda source, v: pv.equals(v, v),
    "to_python": lambda source, v: pv.to_python(v),
    "slice": lambda source, v: as_variant_array(v)[1:].to_pylist(),
}  # fmt: skip


def ended(operation: Operation, source: random.Random, column: Any) -> Any:
    """What comes out, or the error; any that is not ours fails."""
    try:
        return operation(source, column)
    except pv.VariantError as error:
        assert "\n" not in str(error)
        return error
