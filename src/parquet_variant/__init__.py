"""parquet-variant: the Variant toolkit for Python and PySpark.

Owns the public names (``import parquet_variant as pv``) and loads each on first use, so that the import costs little
more than pyarrow's. Leaves everything else to the layers below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.lazy_names import lazy_names

# Public name -> the module that owns it. One line a name.
_OWNERS = {
    "VariantArray": "array.variant_array",
    "parse_json": "functions.json.parse_json",
    "to_json": "functions.json.to_json",
    "unshred_variant": "functions.storage.shred_variant",
    "shred_variant": "functions.storage.shred_variant",
    "try_parse_json": "functions.json.parse_json",
    "variant_get": "functions.extraction.variant_get",
    "try_variant_get": "functions.extraction.variant_get",
    "schema_of_variant": "functions.inspection.schema_of_variant",
    "schema_of_variant_agg": "functions.inspection.schema_of_variant",
    "variant_type": "functions.inspection.variant_type",
    "is_variant_null": "functions.inspection.is_variant_null",
    "get_variant_element": "functions.extraction.get_variant_element",
    "get_variant_scalar": "functions.extraction.get_variant_element",
    "VariantScalar": "functions.extraction.get_variant_element",
    "cast_to_variant": "functions.conversions.cast_to_variant",
    "warmup": "machine_code.warmup",
    "explore": "explorer.explore",
    "read_json": "ingest.read_json",
    "Variant": "encoding.variant",
    "VariantType": "types",
    "VariantError": "errors",
    "CastError": "errors",
    "ConflictError": "errors",
    "DeltaError": "errors",
    "JsonError": "errors",
    "KernelsError": "errors",
    "MalformedVariantError": "errors",
    "PathError": "errors",
    "PredicateError": "errors",
    "SchemaError": "errors",
    "VariantFileError": "errors",
    "validate": "functions.storage.validate",
    "strip_nulls": "functions.edits.value_edits",
    "variant_insert": "functions.edits.value_edits",
    "variant_set": "functions.edits.value_edits",
    "variant_delete": "functions.edits.value_edits",
    "variant_array_append": "functions.edits.value_edits",
    "variant_explode": "functions.extraction.variant_explode",
    "variant_explode_outer": "functions.extraction.variant_explode",
    "equals": "functions.inspection.equals",
    "to_python": "functions.conversions.python_objects",
    "from_python": "functions.conversions.python_objects",
    "variant_normalize": "functions.edits.value_edits",
    "try_schema_of_variant": "functions.inspection.schema_of_variant",
    "try_schema_of_variant_agg": "functions.inspection.schema_of_variant",
    "try_variant_type": "functions.inspection.variant_type",
    "try_is_variant_null": "functions.inspection.is_variant_null",
    "try_to_json": "functions.json.to_json",
    "try_strip_nulls": "functions.edits.value_edits",
    "try_variant_insert": "functions.edits.value_edits",
    "try_variant_set": "functions.edits.value_edits",
    "try_variant_delete": "functions.edits.value_edits",
    "try_variant_array_append": "functions.edits.value_edits",
    "try_variant_explode": "functions.extraction.variant_explode",
    "try_variant_explode_outer": "functions.extraction.variant_explode",
    "try_equals": "functions.inspection.equals",
    "try_to_python": "functions.conversions.python_objects",
    "try_from_python": "functions.conversions.python_objects",
    "try_variant_normalize": "functions.edits.value_edits",
    "VariantPath": "path",
    "ShreddingSchema": "schema.shredding_schema",
    "infer_shredding_schema": "functions.storage.shred_variant",
    "Profile": "shredding.profile",
    "AutoPolicy": "shredding.policies.auto",
    "SparkPolicy": "shredding.policies.spark",
    "ExplicitPolicy": "shredding.policies.explicit",
    "HintsPolicy": "shredding.policies.hints",
    "TilesPolicy": "shredding.policies.tiles",
    "WorkloadPolicy": "shredding.policies.workload",
    "sql": "sql_query.sql",
    "sql_view": "sql_query.sql_view",
    # Packages: each owns its names.
    "parquet": "parquet",
    "delta": "delta",
    "vortex": "vortex",
    "spark": "spark",
    "testing": "testing",
}
if not TYPE_CHECKING:  # or every name would be known, as Any
    __getattr__, __dir__ = lazy_names(__name__, _OWNERS)
__all__ = sorted(_OWNERS)  # noqa: PLE0605 - the table above is the truth
__version__ = "0.1.0"

if TYPE_CHECKING:
    from parquet_variant import delta as delta
    from parquet_variant import parquet as parquet
    from parquet_variant import spark as spark
    from parquet_variant import testing as testing
    from parquet_variant import vortex as vortex
    from parquet_variant.array.variant_array import VariantArray as VariantArray
    from parquet_variant.encoding.variant import Variant as Variant
    from parquet_variant.errors import CastError as CastError
    from parquet_variant.errors import ConflictError as ConflictError
    from parquet_variant.errors import DeltaError as DeltaError
    from parquet_variant.errors import JsonError as JsonError
    from parquet_variant.errors import KernelsError as KernelsError
    from parquet_variant.errors import MalformedVariantError as MalformedVariantError
    from parquet_variant.errors import PathError as PathError
    from parquet_variant.errors import PredicateError as PredicateError
    from parquet_variant.errors import SchemaError as SchemaError
    from parquet_variant.errors import VariantError as VariantError
    from parquet_variant.errors import VariantFileError as VariantFileError
    from parquet_variant.explorer.explore import explore as explore
    from parquet_variant.functions.conversions.cast_to_variant import cast_to_variant as cast_to_variant
    from parquet_variant.functions.conversions.python_objects import from_python as from_python
    from parquet_variant.functions.conversions.python_objects import to_python as to_python
    from parquet_variant.functions.conversions.python_objects import try_from_python as try_from_python
    from parquet_variant.functions.conversions.python_objects import try_to_python as try_to_python
    from parquet_variant.functions.edits.value_edits import strip_nulls as strip_nulls
    from parquet_variant.functions.edits.value_edits import try_strip_nulls as try_strip_nulls
    from parquet_variant.functions.edits.value_edits import (
        try_variant_array_append as try_variant_array_append,
    )
    from parquet_variant.functions.edits.value_edits import try_variant_delete as try_variant_delete
    from parquet_variant.functions.edits.value_edits import try_variant_insert as try_variant_insert
    from parquet_variant.functions.edits.value_edits import try_variant_normalize as try_variant_normalize
    from parquet_variant.functions.edits.value_edits import try_variant_set as try_variant_set
    from parquet_variant.functions.edits.value_edits import variant_array_append as variant_array_append
    from parquet_variant.functions.edits.value_edits import variant_delete as variant_delete
    from parquet_variant.functions.edits.value_edits import variant_insert as variant_insert
    from parquet_variant.functions.edits.value_edits import variant_normalize as variant_normalize
    from parquet_variant.functions.edits.value_edits import variant_set as variant_set
    from parquet_variant.functions.extraction.get_variant_element import VariantScalar as VariantScalar
    from parquet_variant.functions.extraction.get_variant_element import get_variant_element as get_variant_element
    from parquet_variant.functions.extraction.get_variant_element import get_variant_scalar as get_variant_scalar
    from parquet_variant.functions.extraction.variant_explode import try_variant_explode as try_variant_explode
    from parquet_variant.functions.extraction.variant_explode import (
        try_variant_explode_outer as try_variant_explode_outer,
    )
    from parquet_variant.functions.extraction.variant_explode import variant_explode as variant_explode
    from parquet_variant.functions.extraction.variant_explode import (
        variant_explode_outer as variant_explode_outer,
    )
    from parquet_variant.functions.extraction.variant_get import try_variant_get as try_variant_get
    from parquet_variant.functions.extraction.variant_get import variant_get as variant_get
    from parquet_variant.functions.inspection.equals import equals as equals
    from parquet_variant.functions.inspection.equals import try_equals as try_equals
    from parquet_variant.functions.inspection.is_variant_null import is_variant_null as is_variant_null
    from parquet_variant.functions.inspection.is_variant_null import try_is_variant_null as try_is_variant_null
    from parquet_variant.functions.inspection.schema_of_variant import schema_of_variant as schema_of_variant
    from parquet_variant.functions.inspection.schema_of_variant import (
        schema_of_variant_agg as schema_of_variant_agg,
    )
    from parquet_variant.functions.inspection.schema_of_variant import try_schema_of_variant as try_schema_of_variant
    from parquet_variant.functions.inspection.schema_of_variant import (
        try_schema_of_variant_agg as try_schema_of_variant_agg,
    )
    from parquet_variant.functions.inspection.variant_type import try_variant_type as try_variant_type
    from parquet_variant.functions.inspection.variant_type import variant_type as variant_type
    from parquet_variant.functions.json.parse_json import parse_json as parse_json
    from parquet_variant.functions.json.parse_json import try_parse_json as try_parse_json
    from parquet_variant.functions.json.to_json import to_json as to_json
    from parquet_variant.functions.json.to_json import try_to_json as try_to_json
    from parquet_variant.functions.storage.shred_variant import (
        infer_shredding_schema as infer_shredding_schema,
    )
    from parquet_variant.functions.storage.shred_variant import shred_variant as shred_variant
    from parquet_variant.functions.storage.shred_variant import unshred_variant as unshred_variant
    from parquet_variant.functions.storage.validate import validate as validate
    from parquet_variant.ingest.read_json import read_json as read_json
    from parquet_variant.machine_code.warmup import warmup as warmup
    from parquet_variant.path import VariantPath as VariantPath
    from parquet_variant.schema.shredding_schema import ShreddingSchema as ShreddingSchema
    from parquet_variant.shredding.policies.auto import AutoPolicy as AutoPolicy
    from parquet_variant.shredding.policies.explicit import ExplicitPolicy as ExplicitPolicy
    from parquet_variant.shredding.policies.hints import HintsPolicy as HintsPolicy
    from parquet_variant.shredding.policies.spark import SparkPolicy as SparkPolicy
    from parquet_variant.shredding.policies.tiles import TilesPolicy as TilesPolicy
    from parquet_variant.shredding.policies.workload import WorkloadPolicy as WorkloadPolicy
    from parquet_variant.shredding.profile import Profile as Profile
    from parquet_variant.sql_query.sql import sql as sql
    from parquet_variant.sql_query.sql_view import sql_view as sql_view
    from parquet_variant.types import VariantType as VariantType
