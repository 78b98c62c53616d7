"""The destinations of an ingest, one module per output format."""
