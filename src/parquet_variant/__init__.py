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
    "files.parquet.writing.writer": "VariantWriter",
    "inference.contracts.contract": "Contract",
    "inference.contracts.path_rules": "PathRules",
    "encoding.variant": "Variant",
    "errors": (
        "CastError ConflictError ContractError DeltaError JsonError KernelsError MalformedVariantError "
        "PathError PredicateError SchemaError TableError VariantError VariantFileError"
    ),
    "ops.conversions": "cast_to_variant from_python to_json to_python",
    "ops.equals": "equals",
    "ops.variant_get": "VariantScalar get_variant_element get_variant_scalar variant_get",
    "ops.parse_json": "parse_json",
    "ops.value_types": "is_variant_null schema_of_variant schema_of_variant_agg variant_type",
    "ops.shred_variant": "infer_shredding_schema shred_variant unshred_variant",
    "ops.validate": "validate",
    "ops.value_edits": ("strip_nulls variant_array_append variant_delete variant_insert variant_normalize variant_set"),
    "ops.variant_explode": "variant_explode",
    "ingestion.ingest": "infer ingest profile read_json",
    "ingestion.result": "IngestResult",
    "kernels.machine_code.building": "warmup",
    "types.path": "VariantPath",
    "tables.publishing.source": "PublishResult",
    "quality.diff": "DataDiff",
    "layouts.shredding_schema": "ShreddingSchema",
    "inference.policies.auto": "AutoPolicy",
    "inference.policies.explicit": "ExplicitPolicy HintsPolicy WorkloadPolicy",
    "inference.policies.spark": "SparkPolicy",
    "inference.profile": "Profile",
    "sql_query.sql": "sql",
    "tables.integrations.polars": "scan_polars",
    "tables.creating": "create write",
    "tables.iceberg.writing.write": "create_namespace",
    "tables.opening": "open",
    "tables.table.delta": "DeltaTable",
    "tables.table.iceberg": "IcebergTable",
    "tables.table.files": "JsonTable MemoryTable ParquetTable SparkTable VortexTable",
    "tables.table.scan": "Scan",
    "tables.table.table": "Table",
    "types": "VariantType",
    # Public packages.
    "tables.integrations.duckdb": "duckdb",
    "spark": "spark",
    "files.vortex": "vortex",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names

# Methods that modules above those of their classes implement.
register_methods(
    {
        "VariantArray": {
            "ops.variant_get": "field:field_by_name",
            "ops.parse_json": "parse_json",
            "ops.interop.pandas": "from_pandas to_pandas",
            "ops.interop.polars": "to_polars",
            "arrays.tapes": "to_pylist:python_objects",
        },
        "Table": {
            "tables.table.delta": "delta:DeltaTable",
            "tables.table.iceberg": "iceberg:IcebergTable",
            "tables.table.files": (
                "json:JsonTable memory:MemoryTable parquet:ParquetTable spark:SparkTable vortex:VortexTable"
            ),
            "ingestion.formats.csv_rows": "is_csv",
            "ingestion.ingest": "rows_of_json",
            "ingestion.table_sources": "read_csv with_json_columns",
            "ingestion.json_files": "is_json",
            "quality.check": "check",
            "quality.sources": "column_name count_rows paths profile",
            "tables.opening": "open",
            "quality.compatibility.run": "compat",
            "quality.contract": "contract",
            "quality.diff": "diff",
            "quality.explorer.explore": "explore",
            "tables.integrations.polars": "lazy",
            "tables.integrations.duckdb": "to_ibis",
            "sql_query.sql": "sql",
            "sql_query.typed_view": "sql_view typed",
        },
        "Contract": {"inference.contracts.exports": "to_pandera to_soda"},
        "ParquetTable": {
            "files.parquet.format.files": "data_files",
            "ingestion.destinations.parquet": "append:append_parquet overwrite:overwrite_parquet",
            "files.parquet.operations.annotate": "annotate",
            "files.parquet.operations.rewrite": "optimize:ParquetFiles.optimize",
            "files.parquet.operations.inspect": "inspect",
            "files.parquet.reading.read": "read to_arrow:read_table",
            "files.parquet.scanning.scan": "scan schema:read_schema",
            "files.parquet.validation.validate": "validate",
            "ingestion.destination": "loads:directory_loads",
        },
        "VortexTable": {
            "files.vortex.paths": "data_files:vortex_files",
            "ingestion.destinations.parquet": "append:append_vortex overwrite:overwrite_vortex",
            "files.vortex.reader": "inspect read read_json schema:read_schema to_arrow:read_table",
            "files.vortex.rewriting": "optimize:VortexFiles.optimize",
            "files.vortex.scanner": "scan",
        },
        "JsonTable": {"ingestion.json_files": "read:read_values scan:scan_json schema:schema_of to_arrow:read_table"},
        "MemoryTable": {"tables.table.files": "read:read_column scan:MemoryScan.plan to_arrow:select_columns"},
        "SparkTable": {
            "spark.operations.contracts": "check",
            "spark.operations.write": "profile",
        },
        "DeltaTable": {
            "tables.delta.maintenance.evolution": (
                "add_columns drop_column drop_shredding erasable:ErasableDeltaTable history rename_column restore "
                "set_properties vacuum widen_column"
            ),
            "tables.delta.writing.write": "append commit_files overwrite plan",
            "tables.delta.dml.changeable": "changeable:DeltaTable replace_partitions",
            "tables.delta.log.snapshot": "checkpoint",
            "ingestion.destinations.delta": "loads:recorded_loads",
            "tables.delta.reading.read": (
                "added changes data_files parquet_files read:DeltaScan.read_column scan:DeltaScan.plan "
                "to_arrow:DeltaScan.read_table"
            ),
        },
        "IcebergTable": {
            "tables.iceberg.reading.planning": "data_files parquet_files",
            "ingestion.destinations.iceberg": "loads:recorded_loads",
            "tables.iceberg.maintenance.evolution": (
                "add_columns drop_column drop_reference fast_forward make_reference move_column "
                "rename_column restore:rollback set_default set_partitioning set_properties "
                "set_sort_order upgrade widen_column"
            ),
            "tables.iceberg.writing.write": "append commit_files drop:drop_table overwrite plan",
            "tables.iceberg.changes.changeable": "changeable:IcebergTable drop_shredding rewrite_manifests",
            "tables.iceberg.maintenance.expiration": (
                "erasable:ErasableIcebergTable expire_snapshots remove_orphan_files"
            ),
            "tables.iceberg.reading.snapshot": "history",
            "tables.iceberg.reading.scan": (
                "read:IcebergScan.read_column scan:IcebergScan.plan to_arrow:IcebergScan.read_table"
            ),
        },
        "ParquetTable VortexTable": {"tables.creating": "rewrite"},
        "ParquetTable VortexTable DeltaTable IcebergTable": {"tables.publishing.publish": "publish"},
        "DeltaTable IcebergTable": {
            "tables.changes.operations": "delete erase merge replace_where update",
            "tables.changes.optimizing": "annotate optimize",
        },
        "Scan": {
            "spark.operations.read": "to_spark:read",
            "sql_query.binding": "facts:bind_table with_cast_errors with_common_types",
        },
        "SparkSession": {
            "spark.operations.write": "ingest",
            "spark.operations.read": "sql",
            "spark.engine": "engine:SparkEngine",
        },
        "create": {
            "tables.delta.writing.write": "delta:create",
            "tables.iceberg.writing.write": "iceberg:create_table",
        },
        "ingest": {
            "ingestion.destinations.delta": "delta:open_delta",
            "ingestion.destinations.iceberg": "iceberg:open_iceberg",
            "ingestion.destinations.parquet": "parquet:open_parquet",
            "ingestion.destinations.vortex": "vortex:open_vortex",
        },
        "write": {
            "tables.delta.dml.changeable": "delta:write",
            "tables.iceberg.writing.write": "iceberg:write",
            "files.parquet.writing.writer": "parquet:write",
            "spark.operations.write": "spark:write",
            "files.vortex.writer": "vortex:write",
        },
    }
)
