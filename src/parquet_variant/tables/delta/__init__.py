"""Delta tables with Variant columns: the log, statistics, planning, commits and maintenance."""
