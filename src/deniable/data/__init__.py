"""A table of values → a matrix of codes, and back."""
