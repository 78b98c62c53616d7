"""The three shredding layouts for one value at a time: the readable reference.

``final``: ``metadata``, ``value``, ``typed_value`` (Parquet's specification). ``draft_paths``: ``value``, ``metadata``,
``paths`` (Spark's first draft). ``draft_object``: ``untyped_value``, ``object``, ``array``, ``typed_value`` (Spark's
second draft). Each module has ``shred_value`` and ``reconstruct``; `storages` converts rows to and from Arrow, and
whole storage arrays. Leaves storage types and their detection to `schema`, and fast conversions of ``final`` to
`kernels`.
"""
