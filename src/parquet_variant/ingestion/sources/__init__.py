"""Input files of an ingest: listing, decompression, splits, samples, and chunks of whole lines."""
