"""Reproduction of the paper's evaluation (Sec. 4 and 6): its tables, figures and statements."""
