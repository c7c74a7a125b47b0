"""The files of other tools → schemas and graphs, and back."""
