"""A small setup for reproductions, and made-up measurements of one."""

import copy

from deniable.evaluation.effort import Effort
from deniable.reproduction.experiments import OMEGA_ROWS, PAPER_LEARNERS, SIDES, Setup

SMALL_SETUP = Setup(
    runs=1,
    models=2,
    records=300,
    candidates=500,
    instances=2,
    paced=300,
    scanned=60,
    k=5,
    effort=Effort(runs=1, rows=300, trees=3, game=100),
)
NAMES = ("age", "race", "income")
# Of single columns and of pairs: least, quartiles, greatest.
NEAR, FAR = [0.01, 0.02, 0.03, 0.04, 0.05], [0.1, 0.2, 0.3, 0.4, 0.5]


def measured(table3, table4, table5, pairs):
    """Return one measured release: its tables, and its boxes."""
    return {
        "table3": [table3] * 2 * len(PAPER_LEARNERS),
        "table4": [table4] * 2,
        "table5": [table5] * 2,
        "boxes": {"attributes": NEAR, "pairs": pairs},
    }


def made_up_cells():
    """Build measurements that make every statement of the paper true."""
    found = {
        "setup": {"k": "50", "cores": "2"},
        "facts": {
            "records": 100, "numerical": 1, "categorical": 2, "possible": 1_000, "unique": 60,
            "unique_share": 0.6,
            "attributes": [{"name": name, "kind": "ordered", "size": 10} for name in NAMES],
        },
        "guesses": [
            {"attribute": name, "guessing": 0.1, "marginals": 0.5, "forest": 0.8} for name in NAMES
        ],
        "reals run 0": measured(0.8, 0.8, 0.5, NEAR)
        | {
            "private": {
                "output perturbation": [0.6, 0.6],
                "objective perturbation": [0.74, 0.755],
                "penalty": [1e-4, 1e-5],
            }
        },
    }  # fmt: skip
    instances = [
        {"records": records, "learning": 1.0, "generation": records / 1e4}
        for records in (5_000, 10_000)
    ]
    for side in (*SIDES, "scan"):
        found[f"pace {side}"] = {"cores": 2, "instances": instances}
    for side in SIDES:
        found[f"models {side} inf"] = {"mean": [0.7, 0.7, 0.7]}
        found[f"models {side} 1"] = {"mean": [0.7, 0.68, 0.7]}
        found[f"models {side} 0.1"] = {"mean": [0.65, 0.63, 0.7]}
        shares = [{"k": 50, "passed": 0.8}, {"k": 100, "passed": 0.6}]
        found[f"passing {side}"] = dict.fromkeys(OMEGA_ROWS, shares)
        found[f"release marginals {side} run 0"] = measured(0.5, 0.6, 0.8, FAR)
        for row in OMEGA_ROWS:
            found[f"release {row} {side} run 0"] = measured(0.75, 0.75, 0.6, NEAR)
        # Marginals are nearer for one of them, which the paper says too.
        found[f"release m-2 {side} run 0"]["boxes"] = {
            "attributes": [1.5 * value for value in NEAR],
            "pairs": NEAR,
        }
    return copy.deepcopy(found)
