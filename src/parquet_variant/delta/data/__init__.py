"""What lies in data files: columns as the table's schema has them, partition values, deleted rows."""
