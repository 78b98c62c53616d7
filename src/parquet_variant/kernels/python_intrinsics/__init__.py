"""Intrinsics in Python, for kernels that the interpreter runs: one module for each module that declares intrinsics.

Each function does what the instructions of the same name in `kernels.intrinsics` do. Accesses to memory are checked in
checked mode.
"""
