"""The Arrow column of Variants: `VariantArray`, and the parts of its storage that kernels read."""
