"""Metadata of another table format over the data files of a table: one data set, several tables."""
