"""Maintenance of tables: compaction, restoring, schema changes, removing files."""
