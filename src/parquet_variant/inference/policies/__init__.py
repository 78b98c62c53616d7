"""Policies: how a `ShreddingSchema` is chosen from a `Profile`, one a module.

Each is a frozen dataclass: its fields are its constants, its docstring names its source. `inference.infer` finds them
by name.
"""
