"""Python objects and Arrow columns to Variants, and back."""
