"""Commands over files of any kind, and over this installation: one a module."""
