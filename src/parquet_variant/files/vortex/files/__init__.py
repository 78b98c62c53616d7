"""Vortex files: writing, verifying, inspecting and reading them."""
