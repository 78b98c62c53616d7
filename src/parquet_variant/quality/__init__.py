"""The quality of data: summaries of data sets by path, and their differences."""
