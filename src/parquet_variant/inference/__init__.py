"""Choosing what to shred: profiles of paths, policies that choose columns, drift, and statistics by path."""
