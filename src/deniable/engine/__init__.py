"""Who moves the rows."""
