"""Input formats other than NDJSON, converted to one JSON value per line: arrays, documents and CSV."""
