"""The explorer: a page that shows what became of JSON, what a query would read, and what another schema would cost.

Owns the room; `explore` is the public operation. Leaves the figures' meaning to `shredding` and `parquet`.
"""
