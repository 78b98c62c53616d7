"""The command `variant`: one module a command, and what commands share. Imports nothing until a command runs."""
