"""Answers of an artefact: records given rows or a condition, and tables with error bars."""
