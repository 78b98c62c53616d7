"""Writing Iceberg tables: data files, deletion vectors, and the commit that puts them into a snapshot."""
