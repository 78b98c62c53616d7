"""Along paths, through values and shredded columns."""
