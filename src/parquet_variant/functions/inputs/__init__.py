"""What callers hand in, and rows at fault in it."""
