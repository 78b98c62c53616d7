"""The instructions of intrinsics, as LLVM's builder makes them: a module here for each that declares some.

Needs Numba. Imported where kernels are compiled, and nowhere else.
"""
