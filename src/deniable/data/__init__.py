"""Read tables, encode their cells as integer codes, and decode and write records."""
