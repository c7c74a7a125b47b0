"""Artefacts, records, manifests and releases: what is published, and how it is written."""
