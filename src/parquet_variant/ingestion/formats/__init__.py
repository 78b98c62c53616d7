"""Texts that are not JSON lines, as JSON lines: wrapped documents, CSV and XML; and JSON in a column of a table."""
