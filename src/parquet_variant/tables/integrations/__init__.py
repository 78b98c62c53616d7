"""Adapters for libraries that others maintain, each over the public names; the core imports none of them."""
