"""Kernels run by the Python interpreter: to step through one in a debugger, or to check every access to memory.

``PARQUET_VARIANT_KERNELS=python`` runs them unchecked, ``checked`` verifies each load and store. Both give the same
results as machine code, and are a hundred to a thousand times slower.
"""
