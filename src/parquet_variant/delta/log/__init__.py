"""Delta's log: actions, commits, checkpoints, replay, and what a version is made of."""
