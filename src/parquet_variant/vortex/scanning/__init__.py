"""Scans by path: what a path needs of the columns, what Vortex may filter itself, one file or many."""
