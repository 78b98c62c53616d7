"""Delta's log: commits, checkpoints, replay, and snapshots of versions."""
