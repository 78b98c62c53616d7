"""Delta tables: TODO."""
