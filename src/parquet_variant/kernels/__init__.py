"""Numba kernels over Arrow buffers: the fast twins of `encoding` and `layouts`. They never raise; callers do."""
