"""Batches of parsed values: the tape, the tables beside it, and what is read off it."""
