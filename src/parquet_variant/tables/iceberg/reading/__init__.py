"""Reading Iceberg tables: snapshots, plans from manifests, rows of data files without deleted ones."""
