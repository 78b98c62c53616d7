"""Kernels as machine code: what a kernel is, where its code comes from, and how the code is built.

A kernel is a Python function with annotated parameters that Numba compiles. Users get the code that was built with the
package (`library`); developers may have it compiled on first use (`jit`), also with a check of each access to memory
(`checks`). Built and compiled code consist of the same objects, made by `building`, and are called through the same
entry points.
"""
