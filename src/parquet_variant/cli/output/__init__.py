"""What a command shows while it runs and when it is done."""
