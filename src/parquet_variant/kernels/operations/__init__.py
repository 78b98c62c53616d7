"""What functions do with many encoded values at once."""
