"""Shredding schemas: `ShreddingSchema`, its text forms, and the storage types of each layout.

Leaves the choice of a schema to `shredding` (inference) and values to `layouts` and `kernels`.
"""
