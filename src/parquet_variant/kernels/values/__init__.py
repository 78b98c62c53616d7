"""Encoded values, their names, and scalars in their forms."""
