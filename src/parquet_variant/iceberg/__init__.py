"""Iceberg tables with Variant columns, shredded or not: create, write, read, change and maintain, without a JVM."""
