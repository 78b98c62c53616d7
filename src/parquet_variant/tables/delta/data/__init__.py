"""Data files of a table: their paths, partition values and deletion vectors."""
