"""Schema: the public description of a table's columns, and schema.toml."""
