"""What public functions, queries and file formats share: inputs, casts, walks over columns, extraction of paths."""
