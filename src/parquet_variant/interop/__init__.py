"""Arrays at home in pandas, polars and DuckDB.

Owns what each of them needs to hold and ask Variants: a dtype and accessor, namespaces, a relation; and which data are
rows. Leaves the answers to `functions`.
"""
