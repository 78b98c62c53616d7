"""Variants in pandas, polars and DuckDB.

Owns the classes that each library requires to hold and query Variants: a dtype and an accessor, namespaces, a relation;
and the conversion of rows of any library to a table. Leaves the operations to `functions`.
"""
