"""Code that table formats share, apart from their logs: schemas, rows, statistics, changes."""
