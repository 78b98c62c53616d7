"""Iceberg tables with Variant columns: metadata, catalogs, planning, commits and maintenance, without a JVM."""
