"""Maintaining Iceberg tables: optimize, expire, orphan files, manifests, branches, schemas and partition specs."""
