"""The Variant encoding for one value at a time, in plain Python: the readable reference for the kernels.

Owns the binary encoding, JSON in both directions and the complete check of the bytes. Leaves batches of values to
`kernels` and shredding to `shredding`.
"""
