"""NIST's k-marginal score of our releases: ten demographic columns of national2019, all pairs.

    python benchmarks/k_marginal.py [--shared ../shared] [--epsilons 1] [--modes one-shot seedless]
        [--runs 5] [--worst 0]

The score is (2 - mean L1 distance of the pairs) · 500: 1000 is equality, 0 disjoint tables. Ages
are compared in at most 20 groups, by percentiles of the table. The whole table is learnt from, with
a schema drafted by `init` and accepted as it is, and compared with. NIST's own reports have 976 for
AIM and 958 for MST at an epsilon of 1. Random samples of the rows are scored first, as references.
--worst also prints the pairs that lose most.
"""

import argparse
import itertools
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import deniable as dn
from deniable.drafting.draft import draft_schema

ROOT = Path(__file__).parents[1]
TABLE = "sdnist/national2019.csv"
COLUMNS = (
    "AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE",
    "OWN_RENT", "EDU", "PINCP_DECILE", "DVET", "DEYE",
)  # fmt: skip
GROUPED, GROUPS = "AGEP", 20
DELTA = 1e-9
SAMPLES = (0.2, 0.5)


class Score:
    """Distances of a table's pairs from those of another, and their score."""

    def __init__(self, target):
        ages = target[GROUPED].cast(pl.Int64)
        groups = (GROUPS * ages.rank() / len(ages)).floor().clip(0, GROUPS - 1)
        # The least age of each group; ages between two groups of the table belong to the lower.
        self._starts = np.array(
            [ages.filter(groups == own).min() for own in groups.unique().sort()]
        )
        self._names = {
            name: {text: code for code, text in enumerate(target[name].unique().sort())}
            for name in COLUMNS
        }
        self._target = self._codes(target)

    def distances(self, made):
        """Return the L1 distance of each pair."""
        codes = self._codes(made)
        found = {}
        for one, other in itertools.combinations(COLUMNS, 2):
            width = max(len(self._names[other]), GROUPS) + 1
            cells = (max(len(self._names[one]), GROUPS) + 1) * width
            shares = [
                np.bincount(table[one] * width + table[other], minlength=cells) / len(table[one])
                for table in (self._target, codes)
            ]
            found[one, other] = float(np.abs(shares[0] - shares[1]).sum())
        return found

    def _codes(self, table):
        codes = {}
        for name in COLUMNS:
            if name == GROUPED:
                ages = table[name].cast(pl.Int64).to_numpy()
                codes[name] = np.searchsorted(self._starts[1:], ages, side="right")
            else:
                known = self._names[name]
                codes[name] = np.array([known.get(text, len(known)) for text in table[name]])
        return codes


def score(distances):
    """Return the score of the distances of all pairs."""
    return (2 - np.mean(list(distances.values()))) * 500


def release(folder, schema, rows, epsilon, mode):
    """Return our records of the table in a folder."""
    made = dn.synthesize(
        folder / "train.csv", schema, records=rows, epsilon=epsilon, delta=DELTA, mode=mode,
        accept_drafted_schema=True,
    )  # fmt: skip
    made.write_file(folder / "records.csv")
    records = pl.read_csv(folder / "records.csv", infer_schema=False)
    for file in folder.glob("records.csv*"):
        file.unlink()
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--modes", nargs="+", default=["one-shot", "seedless"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--worst", type=int, default=0, help="print so many pairs that lose most")
    options = parser.parse_args()
    rows = pl.read_csv(options.shared / "data" / TABLE, infer_schema=False)[list(COLUMNS)]
    target = Score(rows)
    for share in SAMPLES:
        sample = rows.sample(fraction=share, seed=0)
        print(f"{share:.0%} of the rows: {score(target.distances(sample)):.1f}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows.write_csv(folder / "train.csv")
        schema = dn.Schema.parse(draft_schema(folder / "train.csv").text)
        for mode, epsilon in itertools.product(options.modes, options.epsilons):
            found = [
                target.distances(release(folder, schema, len(rows), epsilon, mode))
                for _ in range(options.runs)
            ]
            scores = [score(distances) for distances in found]
            print(
                f"{mode}, eps {epsilon:g}: {np.mean(scores):.1f} ±{np.std(scores):.1f}", flush=True
            )
            means = {pair: np.mean([each[pair] for each in found]) for pair in found[0]}
            for pair in sorted(means, key=means.get, reverse=True)[: options.worst]:
                print(f"    {' × '.join(pair):28} {means[pair]:.4f}")


if __name__ == "__main__":
    main()
