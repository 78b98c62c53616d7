"""Casts of one Variant to another type."""
