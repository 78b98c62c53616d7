"""Commands that change or tell of Delta tables: one a module."""
