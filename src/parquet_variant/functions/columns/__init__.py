"""Typed columns and encoded values: where they lie, and casts between them."""
