"""Rows out of a table."""
