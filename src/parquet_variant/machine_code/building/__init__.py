"""How kernels become machine code: Numba's typing and lowering, LLVM's optimizer for each CPU level, a linker.

Needs Numba; nothing here is imported where kernels were built with the package.
"""
