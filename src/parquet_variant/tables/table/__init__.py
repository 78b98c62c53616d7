"""`Table`: what `pv.open` returns, one class per format, with the same methods for all formats."""
