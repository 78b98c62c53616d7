"""Rewriting expressions over Variants for the engine: names, paths, functions and comparisons."""
