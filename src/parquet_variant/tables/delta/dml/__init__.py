"""Changing rows of tables: delete, update, replace, merge."""
