"""The data source ``variant``: what Spark calls to read and write files and Delta tables with Variant columns."""
