"""JSON text: its tokens, and how scalars are spelled."""
