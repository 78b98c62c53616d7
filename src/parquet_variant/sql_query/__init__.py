"""SQL over Variant columns: names bound to tables, paths read as typed columns, the rest run by an engine."""
