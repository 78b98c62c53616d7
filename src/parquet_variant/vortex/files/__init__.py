"""Vortex files: what lies in one, written, checked and read whole."""
