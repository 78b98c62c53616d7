"""A plugin of dbt-duckdb: sources and external models that are Parquet, Delta, Iceberg or Vortex tables of Variants.

Owns the options of sources and models. In ``profiles.yml``::

    plugins:
      - module: parquet_variant.tables.integrations.dbt
        alias: variant

A source with ``meta: {plugin: variant, table: PATH, columns: {mag: "$.properties.mag:double"}}`` is a scan of the
table; without ``columns`` it has all typed paths as columns. ``where``, ``version`` and ``at`` choose rows and
versions. A model with ``materialized="external", plugin="variant", meta={"table": PATH, "table_format": "delta"}``
replaces the rows of the table. SQL of models may call the functions of `pv.duckdb.register`.
"""

from __future__ import annotations

from typing import Any

from dbt.adapters.duckdb.plugins import BasePlugin

from parquet_variant.errors import bad_option
from parquet_variant.tables.creating import write
from parquet_variant.tables.integrations.duckdb import register
from parquet_variant.tables.opening import open as open_table

_OPEN_OPTIONS = ("version", "at", "catalog", "branch", "tag", "column", "storage_options")


class Plugin(BasePlugin):
    """The plugin, under the name that dbt-duckdb looks for."""

    def configure_connection(self, conn: Any) -> None:
        """Register the functions over Variants."""
        register(conn)

    def load(self, source_config: Any) -> Any:
        """Return the rows of a source as Arrow data."""
        options = source_config.meta
        if "table" not in options:
            raise bad_option(f"the source {source_config.identifier} has no table: write meta: {{table: PATH}}")
        table = open_table(options["table"], **{name: options[name] for name in _OPEN_OPTIONS if name in options})
        if "columns" not in options:
            return table.typed().to_arrow()
        return table.scan(options["columns"], options.get("where")).to_arrow()

    def store(self, target_config: Any) -> None:
        """Write the rows of a model, which dbt-duckdb has written to a Parquet file, to its table."""
        options = dict(target_config.config.get("meta", {}))
        if "table" not in options:
            raise bad_option('the model has no table: write meta={"table": PATH}')
        rows = open_table(target_config.location.path).to_arrow()
        # dbt warns of keys of its own, such as format, in meta.
        write(options.pop("table"), rows, format=options.pop("table_format", None), mode="overwrite", **options)
