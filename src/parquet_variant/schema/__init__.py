"""What is shredded, and as which type: `ShreddingSchema`, its spellings, and the storage types that it stands for.

Leaves the choice of a schema to `shredding` (inference) and the values to `layouts` and `kernels`.
"""
