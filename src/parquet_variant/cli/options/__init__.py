"""Options and arguments that commands share, and reading their values."""
