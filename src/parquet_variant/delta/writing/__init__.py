"""Writing rows to tables."""
