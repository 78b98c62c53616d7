"""Statistics of data files, and the files that they prove cannot match."""
