"""What an ingest writes into: how each kind of table takes the tasks' rows, and is committed or left as it was."""
