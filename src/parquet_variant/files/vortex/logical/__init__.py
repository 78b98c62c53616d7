"""The logical type Variant in memory: its encodings, and the operations over any of them."""
