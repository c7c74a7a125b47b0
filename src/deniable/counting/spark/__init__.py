"""Rows on an Apache Spark cluster. The only package that knows pyspark; see ADR 0028."""
