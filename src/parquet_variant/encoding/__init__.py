"""One value at a time, in plain Python: the readable reference that the kernels are held equal to.

Owns the Variant binary encoding, JSON both ways and the check of every byte. Leaves batches of values to `kernels` and
shredding to `shredding`.
"""
