"""What is at a path of each value, or each element of it."""
