"""Commands by what they do: ingest, query, inspect, files, tables, quality, and this installation."""
