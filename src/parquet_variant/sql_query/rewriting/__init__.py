"""Rewriting a query over Variants as a query over typed columns."""
