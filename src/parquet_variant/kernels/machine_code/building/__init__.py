"""Build machine code: Numba types and lowers kernels, LLVM optimizes them for each CPU level, a linker makes libraries.

Needs Numba. Nothing here is imported if the package has built kernels.
"""
