"""Utility on the ACS sample: our releases scored beside the graph without edges.

    python benchmarks/utility.py [--shared ../shared] [--runs 1] [--only NAME ...]

Every release is learnt from the training half and scored against the test half by the shared
scoring program. Columns: mean total variation of attributes, pairs and triples; accuracy on real
test records of a forest and a logistic regression trained on the release; accuracy of a forest
telling real from released (0.5 is best).
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import deniable as dn

ROOT = Path(__file__).parents[1]
RECORDS = 70_000
COLUMNS = ("tv1_mean", "tv2_mean", "tv3_mean", "acc_rf", "acc_lr", "dist_rf")


def settings(names):
    """Return the releases to compare, by name."""
    nobody = {name: [] for name in names}
    without = {"epsilon": math.inf}
    return {
        "no noise, all drawn": {**without, "mode": "seedless"},
        "no noise, two kept, k 50": {**without, "mode": "tested", "omega": "9"},
        "no noise, no edges": {**without, "mode": "seedless", "graph": nobody},
        "one-shot, eps 1": {"mode": "one-shot"},
        "seedless, eps 1": {"mode": "seedless"},
        "tested, eps 1": {"mode": "tested"},
        "one-shot, eps 1, split": {"mode": "one-shot", "data_use": "split"},
        "paper's noise, eps 1": {"mode": "seedless", "profile": "paper"},
    }


def score(program, data, file):
    command = [
        sys.executable, program, data / "acs13_train.csv", data / "acs13_test.csv", file,
        "--cache", tempfile.gettempdir(),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    data = options.shared / "data" / "acs13"
    schema = dn.Schema.read(ROOT / "examples/acs13/schema.toml")
    print(f"{'release':28}" + "".join(f"{name:>10}" for name in COLUMNS) + f"{'seconds':>10}")
    for name, setting in settings(schema.names).items():
        if options.only and name not in options.only:
            continue
        rows, seconds = [], []
        for _ in range(options.runs):
            with tempfile.TemporaryDirectory() as folder:
                start = time.perf_counter()
                release = dn.synthesize(
                    data / "acs13_train.csv", schema, records=RECORDS, **setting
                )
                release.write_file(Path(folder) / "records.csv")
                seconds.append(time.perf_counter() - start)
                found = score(options.shared / "tools/score.py", data, Path(folder) / "records.csv")
            rows.append([found[column] for column in COLUMNS])
        mean = np.mean(rows, axis=0)
        print(
            f"{name:28}" + "".join(f"{x:10.4f}" for x in mean) + f"{np.mean(seconds):10.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
