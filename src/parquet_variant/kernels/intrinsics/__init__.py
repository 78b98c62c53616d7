"""LLVM instructions of intrinsics: one module for each module that declares intrinsics.

Needs Numba. Imported only where kernels are compiled.
"""
