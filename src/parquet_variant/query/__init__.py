"""Requests of queries, and the data that statistics allow them to skip, for every format."""
