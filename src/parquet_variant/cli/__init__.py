"""The command `variant`: one module a command."""
