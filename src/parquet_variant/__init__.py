"""parquet-variant: the Variant toolkit for Python and PySpark.

Owns the public names (``import parquet_variant as pv``) and loads each on first use, so that the import takes little
longer than pyarrow's. Leaves everything else to the packages below.
"""

from __future__ import annotations

from parquet_variant._version import __version__ as __version__
from parquet_variant.support.lazy_names import lazy_names, register_methods

# Module -> the public names that it defines. `make snapshots` writes __init__.pyi from this table.
_NAMES = {
    "arrays.variant_array": "VariantArray",
    "quality.compatibility.run": "compat",
    "contracts.contract": "Contract",
    "contracts.path_rules": "PathRules",
    "encoding.variant": "Variant",
    "errors": (
        "CastError ConflictError ContractError DeltaError JsonError KernelsError MalformedVariantError "
        "PathError PredicateError SchemaError TableError VariantError VariantFileError"
    ),
    "explorer.explore": "explore",
    "ops.cast_to_variant": "cast_to_variant",
    "ops.equals": "equals",
    "ops.get_variant_element": "VariantScalar get_variant_element get_variant_scalar",
    "ops.is_variant_null": "is_variant_null",
    "ops.parse_json": "parse_json",
    "ops.python_objects": "from_python to_python",
    "ops.schema_of_variant": "schema_of_variant schema_of_variant_agg",
    "ops.shred_variant": "infer_shredding_schema shred_variant unshred_variant",
    "ops.to_json": "to_json",
    "ops.validate": "validate",
    "ops.value_edits": ("strip_nulls variant_array_append variant_delete variant_insert variant_normalize variant_set"),
    "ops.variant_explode": "variant_explode",
    "ops.variant_get": "variant_get",
    "ops.variant_type": "variant_type",
    "ingestion.ingest": "infer ingest profile read_json",
    "ingestion.result": "IngestResult",
    "kernels.machine_code.entry_points": "warmup",
    "path": "VariantPath",
    "tables.publishing.publish": "publish",
    "tables.publishing.result": "PublishResult",
    "quality.check": "check",
    "quality.contract": "contract",
    "quality.diff": "DataDiff diff",
    "layouts.shredding_schema": "ShreddingSchema",
    "inference.policies.auto": "AutoPolicy",
    "inference.policies.explicit": "ExplicitPolicy",
    "inference.policies.hints": "HintsPolicy",
    "inference.policies.spark": "SparkPolicy",
    "inference.policies.tiles": "TilesPolicy",
    "inference.policies.workload": "WorkloadPolicy",
    "inference.profile": "Profile",
    "sql_query.sql": "sql",
    "sql_query.sql_view": "sql_view",
    "sql_query.typed_view": "TypedView typed",
    "types": "VariantType",
    # Public packages.
    "tables.delta": "delta",
    "tables.iceberg": "iceberg",
    "files.parquet": "parquet",
    "spark": "spark",
    "testing": "testing",
    "files.vortex": "vortex",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names

# Methods that modules above those of their classes implement.
register_methods(
    {
        "Contract.load": "contracts.files:load_contract",
        "Contract.save": "contracts.files:save_contract",
        "Contract.from_yaml": "contracts.yaml_format:from_yaml",
        "Contract.to_yaml": "contracts.yaml_format:to_yaml",
        "Contract.from_json_schema": "contracts.json_schema:from_json_schema",
        "Contract.to_json_schema": "contracts.json_schema:to_json_schema",
        "Contract.from_odcs": "contracts.odcs:from_odcs",
        "Contract.to_odcs": "contracts.odcs:to_odcs",
        "VariantArray.field": "ops.variant_get:field_by_name",
        "VariantArray.from_pandas": "interop.pandas:from_pandas",
        "VariantArray.to_duckdb": "interop.duckdb:to_duckdb",
        "VariantArray.to_pandas": "interop.pandas:to_pandas",
        "VariantArray.to_polars": "interop.polars:to_polars",
        "VariantArray.to_pylist": "arrays.tapes:python_objects",
    }
)
