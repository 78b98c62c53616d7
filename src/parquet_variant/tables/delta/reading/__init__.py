"""Reading rows of tables."""
