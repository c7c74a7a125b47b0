"""Privacy audit: attack the shipped mechanism and its releases, and compare with the bound."""
