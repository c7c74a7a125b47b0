"""``deniable studio``: the whole workflow in a browser, on this computer only."""
