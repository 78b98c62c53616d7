"""The explorer: a page that shows how JSON is stored, what a query would read, and what another schema would cost.

Owns the room; `explore` is the public operation. Leaves the figures' meaning to `shredding` and `parquet`.
"""
