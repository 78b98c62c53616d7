"""Rows into a table."""
