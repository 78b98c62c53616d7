"""Statistics of data files, as the log stores them."""
