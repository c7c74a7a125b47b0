"""Full synthetic records with a privacy guarantee that is proved, printed and checkable."""
