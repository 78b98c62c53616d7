"""Scans by path over one or many Vortex files."""
