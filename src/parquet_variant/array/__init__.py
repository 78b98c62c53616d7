"""The Arrow column of Variants: `VariantArray`, and what kernels need of its storage."""
