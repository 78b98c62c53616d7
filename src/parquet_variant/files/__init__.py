"""File formats: Parquet and Vortex."""
