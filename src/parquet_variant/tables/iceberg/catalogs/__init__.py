"""Catalogs: where the newest metadata of a table is found, and how a commit replaces it."""
