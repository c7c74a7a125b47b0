"""Private drafts next to plain ones: what the cost of a draft leaves, at the same total ε.

    python benchmarks/private_drafts.py [--shared ../shared] [--tables adult titanic ...]
        [--epsilon 1] [--draft-epsilon 0.2] [--splits 2]

Each split learns from 7 rows in 10: once with a plain draft of these rows, at ε, and once with a
private draft, whose ε is part of the same total. Columns as in relations.py: a line for the plain
draft, one for the private draft, and their ratio. Shares kept should be at least 0.8 of the plain
draft's, distances at most 1.2 times.
"""

import argparse
from pathlib import Path

import numpy as np
from relations import COLUMNS, KEPT, ROOT, TABLES, load_program, measure

MORE_TABLES = {"german_credit": "german_credit/german_credit.csv"}
LEAST_KEPT, LARGEST_DISTANCE = 0.8, 1.2


def mean_of(rows):
    """Mean of each column over the splits."""
    return {column: float(np.mean([row[column] for row in rows])) for column in COLUMNS}


def exceeded(plain, private):
    """Name the columns in which the private draft is worse by more than a fifth."""
    kept = [each for each in KEPT if private[each] < LEAST_KEPT * plain[each]]
    return kept + [e for e in ("tvb2", "tvb3") if private[e] > LARGEST_DISTANCE * plain[e]]


def main():
    """Print three lines for each table."""
    tables = TABLES | MORE_TABLES
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--tables", nargs="+", default=list(tables), choices=list(tables))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draft-epsilon", type=float, default=0.2)
    parser.add_argument("--mode", default="one-shot")
    parser.add_argument("--splits", type=int, default=2)
    options = parser.parse_args()
    program = load_program(options.shared)
    print(f"{'table':16}{'draft':9}" + "".join(f"{column:>11}" for column in COLUMNS))
    for table in options.tables:
        found = {}
        for draft, own in (("plain", None), ("private", options.draft_epsilon)):
            rows = [
                measure(
                    program,
                    options.shared / "data" / tables[table],
                    seed,
                    epsilon=options.epsilon,
                    mode=options.mode,
                    draft_epsilon=own,
                )
                for seed in range(options.splits)
            ]
            found[draft] = mean_of(rows)
        plain, private = found["plain"], found["private"]
        found["ratio"] = {each: private[each] / (plain[each] or np.nan) for each in COLUMNS}
        for draft, row in found.items():
            numbers = "".join(f"{row[column]:11.3f}" for column in COLUMNS)
            print(f"{table:16}{draft:9}{numbers}", flush=True)
        print(f"{table:16}beyond a fifth: {', '.join(exceeded(plain, private)) or 'none'}")


if __name__ == "__main__":
    main()
