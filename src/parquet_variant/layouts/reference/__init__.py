"""The three shredding layouts for one value at a time: the readable reference.

`rows` shreds and reconstructs values, and whole storage arrays. Leaves storage types to `layouts.storages`, their
detection to `layouts.layout`, and fast conversions to `kernels`.
"""
