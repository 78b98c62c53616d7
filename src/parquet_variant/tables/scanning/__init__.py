"""Queries by path over the files of a table."""
