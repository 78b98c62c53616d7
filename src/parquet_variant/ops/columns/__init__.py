"""Code that public functions, queries and file formats share: inputs, casts, walks over columns, paths in columns."""
