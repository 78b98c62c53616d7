"""Iceberg metadata as the specification defines it: types, schemas, partition specs, snapshots, manifests, Puffin."""
