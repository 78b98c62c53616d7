"""Contracts: rules for the paths of a Variant column, their file formats, and their evaluation."""
