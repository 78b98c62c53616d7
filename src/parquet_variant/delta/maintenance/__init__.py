"""Looking after a table: compaction, going back, removing what is not needed."""
