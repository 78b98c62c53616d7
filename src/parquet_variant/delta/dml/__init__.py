"""Rows that change: delete, update, merge."""
