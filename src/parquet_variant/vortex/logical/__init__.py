"""The logical type Variant in memory: its encodings, and what is asked over any of them."""
