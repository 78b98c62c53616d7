"""Batches of parsed values: the tape, its tables of keys, paths and shapes, and its readers."""
