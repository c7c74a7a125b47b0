"""A first description of a table that nobody has described yet: ``deniable init``."""
