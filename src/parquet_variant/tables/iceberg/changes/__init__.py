"""Changing rows of Iceberg tables: delete, update and merge."""
