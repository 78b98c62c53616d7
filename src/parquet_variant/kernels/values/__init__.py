"""Encoded values in kernels: their bytes, their names, and the forms of scalars."""
