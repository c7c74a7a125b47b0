"""Verify a release: recompute its numbers, rewrite its files, regenerate its records."""
