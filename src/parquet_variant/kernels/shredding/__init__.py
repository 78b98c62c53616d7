"""Between values and typed columns, guided by a schema."""
