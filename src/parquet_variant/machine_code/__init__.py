"""Kernels as machine code: what a kernel is, where its code comes from, and how the code is built.

A kernel is written in Python, with annotated parameters, for Numba to compile. Users get the code that was built with
the package (`library`); developers may have it compiled on first use (`jit`). Both run the same objects, made by
`building`, through the same entry.
"""
