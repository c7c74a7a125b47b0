"""Draft a schema from a table, with or without differential privacy: ``deniable init``."""
