"""JSON text in kernels: tokens, and the spelling of scalars."""
