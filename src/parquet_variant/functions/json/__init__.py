"""JSON text to Variants and back."""
