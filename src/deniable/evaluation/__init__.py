"""Utility of released records: metrics, baselines, and an HTML report."""
