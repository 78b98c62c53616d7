"""The three shredding layouts, one value at a time: the readable reference.

``final``: ``metadata``, ``value``, ``typed_value`` (Parquet's specification). ``draft_paths``: ``value``, ``metadata``,
``paths`` (Spark's first draft). ``draft_object``: ``untyped_value``, ``object``, ``array``, ``typed_value`` (Spark's
second draft). Each has ``shred_value`` and ``reconstruct``; `storages` carries rows to Arrow and back, and does whole
storage arrays. Leaves the storage types and which layout one has to `schema`, and the fast twin of ``final`` to
`kernels`.
"""
