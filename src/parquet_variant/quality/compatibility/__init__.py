"""Other engines on a user's own files: which of them open the files, and whether they return equal values."""
