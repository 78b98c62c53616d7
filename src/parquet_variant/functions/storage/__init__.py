"""How a column lies in memory: shredded or not, by which schema, and whether it is valid."""
